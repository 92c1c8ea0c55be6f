// SPDX-License-Identifier: Apache-2.0

internal import Connection
internal import TOML

extension ConfigurationReader {
    /// `keepalive = { … }`. The protocol, which is the scheme's where none is named, decides what else may be said, and
    /// so does an opening that promises the server how often it hears of its client.
    func readKeepalive(
        _ table: TableReader, for scheme: Remote.Scheme?, under opening: Opening?
    ) -> KeepaliveSettings {
        var table = table
        var settings = KeepaliveSettings()
        let method: Located<KeepaliveSettings.Method>? = table.choice("protocol")
        settings.method = method?.value
        readCustom(&settings, &table)
        let kind = settings.kind(for: scheme)
        readCadence(&settings, &table, of: kind, in: kind.intervals(under: opening))
        settings.isAdaptive = table.boolean("adaptive")
        if settings.isAdaptive == true, kind == .kernel, let node = table.any("adaptive") {
            table.notice("adaptive", node.position, "without effect: the kernel's keepalive keeps its interval")
        }
        settings.wakesMachine = table.boolean("wake_machine") ?? false
        if settings.wakesMachine, kind == .kernel, settings.method != .client, let node = table.any("wake_machine") {
            table.notice("wake_machine", node.position, "without effect: the kernel's keepalive wakes no machine")
        }
        table.finish()
        // What it lacks was reported: nothing more is to be said of it.
        if settings.method == .custom, settings.send.isEmpty { settings.method = nil }
        return settings
    }

    private func readCadence(
        _ settings: inout KeepaliveSettings, _ table: inout TableReader, of kind: KeepaliveProtocol,
        in intervals: ClosedRange<Duration>
    ) {
        let interval = table.duration("interval", intervals)
        settings.interval = interval?.value
        if kind == .kernel, let interval, interval.value.components.attoseconds != 0 {
            let text = "\"\(interval.value.configurationText)\" is not in whole seconds, as the kernel takes it"
            table.error("interval", interval.position, text)
            settings.interval = nil
        }
        guard let tolerance = table.duration("tolerance", .zero...intervals.upperBound) else { return }
        settings.tolerance = tolerance.value
        if table.isAbsent("interval") {
            table.error("tolerance", tolerance.position, "needs an interval to be earlier than")
        } else if let interval = settings.interval, tolerance.value >= interval {
            let text = "\"\(tolerance.value.configurationText)\" is not shorter than the interval"
            table.error("tolerance", tolerance.position, "\(text), \"\(interval.configurationText)\"")
        }
    }

    private func readCustom(_ settings: inout KeepaliveSettings, _ table: inout TableReader) {
        let isCustom = settings.method == .custom
        if isCustom, table.isAbsent("send") { table.error("send", table.position, "missing") }
        settings.send = readBytes("send", in: &table, isCustom, atLeast: 1)
        settings.expect = readBytes("expect", in: &table, isCustom, atLeast: 0)
    }

    private func readBytes(
        _ key: String, in table: inout TableReader, _ isCustom: Bool, atLeast least: Int
    ) -> [UInt8] {
        guard let text = table.string(key) else { return [] }
        guard isCustom else {
            table.error(key, text.position, "only a keepalive with protocol = \"custom\" has it")
            return []
        }
        do throws(EscapeError) {
            let bytes = try [UInt8](escapedText: text.value)
            let sizes = least...KeepaliveProtocol.longestCustom
            if !sizes.contains(bytes.count) {
                table.error(
                    key, text.position, "\(bytes.count) bytes; from \(sizes.lowerBound) to \(sizes.upperBound)")
            }
            return bytes
        } catch {
            table.error(key, text.position, error.description)
            return []
        }
    }
}
