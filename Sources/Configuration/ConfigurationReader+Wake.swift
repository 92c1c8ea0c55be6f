// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnection
internal import DialtonePlatform
internal import DialtoneProcesses
internal import DialtoneTOML
internal import Glibc

extension ConfigurationReader {
    /// Signals that are a nudge. The others end a program, stop it or mean a fault, and a wake must not.
    private enum Signal: String, CaseIterable {
        case hangUp = "SIGHUP"
        case user1 = "SIGUSR1"
        case user2 = "SIGUSR2"
        case proceed = "SIGCONT"
        case urgent = "SIGURG"
        case inputOutput = "SIGIO"

        var number: Int32 {
            switch self {
            case .hangUp: SIGHUP
            case .user1: SIGUSR1
            case .user2: SIGUSR2
            case .proceed: SIGCONT
            case .urgent: SIGURG
            case .inputOutput: SIGIO
            }
        }
    }

    private static let answers = Duration.milliseconds(100)...Duration.seconds(60)
    private static let starts = Duration.seconds(1)...Duration.seconds(600)

    /// `wake = { … }`.
    ///
    /// - Parameters:
    ///   - owner: the connection's owner, where the file names one.
    ///   - isOwnerKnown: false where it may name one that could not be read.
    func readWake(_ table: TableReader, owner: UInt32?, isOwnerKnown: Bool) -> WakeSettings {
        var table = table
        var settings = WakeSettings()
        readUnit(&settings, &table)
        readProgram(&settings, &table, owner: owner, isOwnerKnown: isOwnerKnown)
        settings.signal = readSignal(&table)
        settings.thaw = readThaw(&table)
        readReasons(&settings, &table)
        settings.answerTime = table.duration("answer", Self.answers)?.value
        settings.startTime = table.duration("start", Self.starts)?.value
        settings.rounds = table.integer("attempts", 1...20)
        settings.pause = table.duration("pause", BackoffPolicy.waits)?.value
        let longest = table.duration("longest_pause", BackoffPolicy.waits)
        settings.longestPause = longest?.value
        if let longest, let pause = settings.pause, longest.value < pause {
            let text = "\"\(longest.value.configurationText)\" is shorter than pause"
            table.error("longest_pause", longest.position, "\(text), \"\(pause.configurationText)\"")
        }
        // An unknown key may be a misspelled one that is missed here.
        if !table.finish() { checkNeeds(of: settings, &table) }
        return settings
    }

    /// Reports what makes sense only together with something that is absent.
    private func checkNeeds(of settings: WakeSettings, _ table: inout TableReader) {
        guard table.isAbsent("exec") else { return }
        for key in ["stdio", "relaunch"] {
            if let node = table.any(key) { table.error(key, node.position, "only a wake with exec has it") }
        }
        if settings.launch == .always, table.isAbsent("unit"), let node = table.any("launch") {
            table.error("launch", node.position, "\"always\" needs something to launch: exec, or unit")
        }
    }

    private func readUnit(_ settings: inout WakeSettings, _ table: inout TableReader) {
        guard let unit = table.string("unit") else { return }
        settings.unit = unit.value
        if !Self.isUnitName(unit.value, of: ["service", "socket", "target", "timer", "path"]) {
            table.error("unit", unit.position, "\"\(unit.value)\" is no unit name; write \"baresip.service\"")
        }
    }

    private func readProgram(
        _ settings: inout WakeSettings, _ table: inout TableReader, owner: UInt32?, isOwnerKnown: Bool
    ) {
        let before = report.count
        // Where one of its arguments could not be read, that was told.
        if let command = table.strings("exec"), report.count == before {
            let position = command.first?.position ?? table.position
            settings.command = command.map(\.value)
            if command.first?.value.hasPrefix("/") != true {
                let text = "begins with the absolute path of a program; nothing is searched in PATH"
                table.error("exec", position, text)
            } else if command.contains(where: { $0.value.contains("\0") }) {
                table.error("exec", position, "holds a null character, which no argument can")
            } else if isOwnerKnown {
                settings.identity = readIdentity(owner, position, table)
            }
        }
        settings.usesStandardStreams = table.boolean("stdio")
        let launch: Located<WakePolicy.Launch>? = table.choice("launch")
        settings.launch = launch?.value
        settings.relaunches = table.boolean("relaunch")
    }

    /// Whose the program is. Root's only where the file says so: a daemon of root's without an owner does not mean it.
    private func readIdentity(
        _ owner: UInt32?, _ position: TOMLPosition, _ table: TableReader
    ) -> ProgramIdentity? {
        guard owner != nil || checks.daemonUser != 0 else {
            table.error("exec", position, "would run as root; say whose it is with owner, \"root\" if that is meant")
            return nil
        }
        let user = owner ?? checks.daemonUser
        if checks.isMachineService, user == checks.daemonUser {
            let text = "would run as the agent's own user, within its service; say with owner whose it is"
            table.error("exec", position, text)
            return nil
        }
        guard let identity = checks.identity(user) else {
            table.error("exec", position, "user \(user), whose it would be, is not in the system's list of users")
            return nil
        }
        return identity
    }

    private func readSignal(_ table: inout TableReader) -> Int32? {
        guard let node = table.any("signal") else { return nil }
        if case .boolean(let isWanted) = node.value { return isWanted ? SIGCONT : nil }
        guard case .string = node.value else {
            _ = table.string("signal", expected: "true or a signal's name")
            return nil
        }
        let signal: Located<Signal>? = table.choice("signal")
        return signal?.value.number
    }

    private func readThaw(_ table: inout TableReader) -> WakeTargets.Thaw? {
        guard let node = table.any("thaw") else { return nil }
        if case .boolean(let isWanted) = node.value { return isWanted ? .ownGroup : nil }
        guard let name = table.string("thaw", expected: "true, a unit or the path of a control group") else {
            return nil
        }
        if name.value.hasPrefix("/") {
            if !name.value.split(separator: "/").contains("..") { return .group(name.value) }
        } else if Self.isUnitName(name.value, of: ["service", "scope", "slice"]) {
            return .unit(name.value)
        }
        let text = "\"\(name.value)\" is neither a unit (\"baresip.service\") nor the absolute path of a control group"
        table.error("thaw", name.position, text)
        return nil
    }

    private func readReasons(_ settings: inout WakeSettings, _ table: inout TableReader) {
        guard let names = table.strings("reasons") else { return }
        settings.reasons = Set(
            names.compactMap { name in
                if let reason = WakeReason(rawValue: name.value) { return reason }
                let problem = unknownValue(name.value, among: WakeReason.allCases.map(\.rawValue))
                table.error("reasons", name.position, problem)
                return nil
            })
    }

    /// The characters of systemd.unit(5), and a kind that makes sense here.
    private static func isUnitName(_ name: String, of kinds: Set<Substring>) -> Bool {
        guard let dot = name.lastIndex(of: "."), dot != name.startIndex, name.utf8.count < 256 else { return false }
        return kinds.contains(name[name.index(after: dot)...])
            && name.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || ":-_.\\@".contains($0)) }
    }
}
