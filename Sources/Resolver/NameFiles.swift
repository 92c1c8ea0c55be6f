// SPDX-License-Identifier: Apache-2.0

// `timespec` is in the headers of both, and counts as a member of the one that the compiler happens to read first.
internal import CDialtoneAres
internal import DialtonePlatform
internal import Glibc

/// Where a machine's configuration of names stands.
package struct NameFiles: Hashable, Sendable {
    /// The name servers and search domains, in the form of resolv.conf(5).
    package var resolvConf: String
    /// Names with their addresses, in the form of hosts(5).
    package var hosts: String
    /// Which of the two is asked, and in which order: nsswitch.conf(5).
    package var nsswitch: String

    /// Files; by default this machine's own.
    package init(
        resolvConf: String = "/etc/resolv.conf", hosts: String = "/etc/hosts", nsswitch: String = "/etc/nsswitch.conf"
    ) {
        self.resolvConf = resolvConf
        self.hosts = hosts
        self.nsswitch = nsswitch
    }

    /// More than any resolv.conf or nsswitch.conf holds; a larger file is read this far.
    private static let configurationLimit = 64 * 1024

    /// A hosts file of a million lines; a larger one is read this far.
    private static let hostsLimit = 32 * 1024 * 1024

    /// The servers of ``resolvConf`` as it is now; for those who do not follow it by a ``NameConfigurationWatch``.
    package func readNameServers() -> [NameServer] { nameServers(inConfiguration: readResolvConf()) }

    /// The text of ``resolvConf`` as it is now; empty where there is none.
    func readResolvConf() -> String { String(decoding: Self.read(resolvConf, Self.configurationLimit), as: UTF8.self) }

    /// The order of ``nsswitch`` as it is now.
    func readOrder() -> NameOrder {
        NameOrder(inConfiguration: String(decoding: Self.read(nsswitch, Self.configurationLimit), as: UTF8.self))
    }

    /// The content of ``hosts`` as it is now.
    func readHosts() -> HostsFile { HostsFile(Self.read(hosts, Self.hostsLimit)) }

    private static func read(_ path: String, _ limit: Int) -> [UInt8] {
        FileContent.bytes(of: path, limit: limit) ?? []
    }
}

/// What tells one content of a file from the next without reading it.
struct FileVersion: Equatable {
    private let numbers: [Int]

    /// The version of the file at `path`, symbolic links followed; equal to itself when there is none.
    init(of path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else {
            numbers = []
            return
        }
        let changed = status.st_mtim
        numbers = [Int(status.st_dev), Int(status.st_ino), Int(status.st_size), changed.tv_sec, changed.tv_nsec]
    }
}
