// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import DialtoneTOML
internal import Glibc

/// Which files hold the configuration.
package struct ConfigurationFiles: Hashable, Sendable {
    /// The main file.
    package var main: String
    /// Whether the main file was named by the user and so must be there.
    package var mainIsRequired: Bool
    /// The directory whose `*.toml` hold further connections. It need not exist.
    package var connections: String

    /// Whether they are the machine's, and not a user's.
    package var areTheMachines: Bool { main == Self(directory: ConfigurationDirectory.machine).main }

    /// The file that `--config` names, and `connections.d` beside it.
    package init(main: String) {
        self.main = main
        mainIsRequired = true
        let directory = main.lastIndex(of: "/").map { main[...$0] } ?? ""
        connections = "\(directory)connections.d"
    }

    private init(directory: String) {
        main = "\(directory)/dialtone.toml"
        mainIsRequired = false
        connections = "\(directory)/connections.d"
    }

    /// The files where nobody named one: in `$CONFIGURATION_DIRECTORY`, which the service manager sets from the unit;
    /// else where ``ConfigurationDirectory`` says.
    ///
    /// - Parameters:
    ///   - user: the effective user of the process.
    ///   - environment: looks up an environment variable.
    package static func standard(user: UInt32, environment: (String) -> String?) -> ConfigurationFiles {
        // Several directories are separated by colons (systemd.exec(5)); the unit names one.
        if let directory = environment("CONFIGURATION_DIRECTORY")?.split(separator: ":").first {
            return ConfigurationFiles(directory: String(directory))
        }
        let directory = ConfigurationDirectory.standard(user: user, environment: environment)
        return ConfigurationFiles(directory: directory ?? "/.config/dialtone")
    }
}

/// A configuration with what is worth saying of it.
package struct LoadedConfiguration: Hashable, Sendable {
    /// The configuration.
    package var configuration: Configuration
    /// Settings that are understood and kept but have no effect in this version.
    package var notices: [ConfigurationIssue]
    /// The files it was read from, in order; empty when there was none and this is the embedded default.
    package var files: [String]
}

extension Configuration {
    /// Reads and checks all files. It blocks on the file system and on the look-up of users: never on the agent's
    /// queue.
    ///
    /// - Throws: every error of every file.
    package static func load(
        _ files: ConfigurationFiles, _ checks: ConfigurationChecks
    ) throws(ConfigurationError) -> LoadedConfiguration {
        let report = ConfigurationReport()
        var reader = ConfigurationReader(checks, report)
        var (read, size) = ([String](), 0)
        for file in [files.main] + connectionFiles(in: files.connections, report) {
            let isMain = file == files.main
            let start = report.errors.count
            guard let text = text(of: file, mayBeMissing: isMain && !files.mainIsRequired, report) else { continue }
            size += text.utf8.count
            guard size <= mostBytes else {
                report.error(file, nil, nil, "with this file, the configuration is larger than \(mostBytes) bytes")
                break
            }
            read.append(file)
            do throws(TOMLError) {
                reader.read(try TOMLDocument.parse(text), of: file, isMain: isMain)
            } catch {
                report.error(file, error.position, nil, error.message)
            }
            report.sortErrors(from: start)
        }
        try report.check()
        return LoadedConfiguration(configuration: reader.configuration, notices: report.notices, files: read)
    }

    /// A thousand connections take about 200 KB. The limit is there for what is no configuration at all.
    private static let sizeLimit = 1 << 20
    /// Eighty thousand connections, more than one process has descriptors for.
    private static let mostBytes = 16 << 20
    /// A file for each of ten times the connections that the daemon's memory and wake-ups are measured with.
    private static let mostFiles = 10_000

    /// The text of a file that only its owner can have written; `nil`, and an error in the report, otherwise.
    static func text(of file: String, mayBeMissing: Bool, _ report: ConfigurationReport) -> String? {
        // Not to be stopped by a named pipe that nobody writes to.
        let number = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        if number < 0 {
            if !(mayBeMissing && errno == ENOENT) {
                report.error(file, nil, nil, SystemError.last("reading it").description)
            }
            return nil
        }
        let descriptor = OwnedDescriptor(number)
        var status = stat()
        fstat(descriptor.number, &status)
        guard status.st_mode & S_IFMT == S_IFREG else {
            report.error(file, nil, nil, "not a regular file")
            return nil
        }
        guard isTrustworthy(status, file, report) else { return nil }
        guard status.st_size <= sizeLimit else {
            report.error(file, nil, nil, "larger than \(sizeLimit) bytes")
            return nil
        }
        let bytes = [UInt8](unsafeUninitializedCapacity: sizeLimit) { buffer, count in
            while count < buffer.count {
                let more = Glibc.read(descriptor.number, buffer.baseAddress.map { $0 + count }, buffer.count - count)
                if more <= 0 { break }
                count += more
            }
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            report.error(file, nil, nil, "not UTF-8")
            return nil
        }
        return text
    }

    private static func connectionFiles(in directory: String, _ report: ConfigurationReport) -> [String] {
        let entries: DirectoryStream
        do throws(SystemError) {
            entries = try DirectoryStream(directory)
        } catch {
            if error.code != ENOENT {
                report.error(directory, nil, nil, SystemError("reading it", code: error.code).description)
            }
            return []
        }
        guard isTrustworthy(entries.status, directory, report) else { return [] }
        var names: [String] = []
        var count = 0
        while let name = entries.next() {
            count += 1
            // Hidden files are what editors and package managers leave behind.
            if name.hasSuffix(".toml"), !name.hasPrefix(".") { names.append(name) }
            // There may be a million that are none of ours.
            guard count <= mostFiles else {
                report.error(directory, nil, nil, "holds more than \(mostFiles) files")
                return []
            }
        }
        return names.sorted { $0.utf8.lexicographicallyPrecedes($1.utf8) }.map { "\(directory)/\($0)" }
    }

    /// A configuration names the users that connections belong to and the programs that a wake runs. So whoever can
    /// write it can act as the daemon, and that must be nobody but root and the daemon's own user.
    private static func isTrustworthy(_ status: stat, _ path: String, _ report: ConfigurationReport) -> Bool {
        if status.st_uid != 0, status.st_uid != geteuid() {
            report.error(
                path, nil, nil, "owned by user \(status.st_uid); it must be owned by root or user \(geteuid())")
            return false
        }
        if status.st_mode & (S_IWGRP | S_IWOTH) != 0 {
            report.error(
                path, nil, nil, "writable by others than its owner, who could name programs to run; chmod go-w")
            return false
        }
        return true
    }
}

/// A user's number from the system's own list of users, getpwnam(3). It may block, for as long as a directory service
/// of the network takes.
package func systemUserNumber(_ name: String) -> UInt32? {
    // Sixteen times what sysconf(_SC_GETPW_R_SIZE_MAX) advises; a directory's entries can be long.
    withUnsafeTemporaryAllocation(of: CChar.self, capacity: 16_384) { buffer in
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        guard let start = buffer.baseAddress, getpwnam_r(name, &entry, start, buffer.count, &found) == 0 else {
            return nil
        }
        guard found != nil else { return nil }
        return entry.pw_uid
    }
}
