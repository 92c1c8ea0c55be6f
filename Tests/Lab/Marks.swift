// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport

/// Counts packets on a machine by how they are marked, with nft(8): those of `signaling` (CS5), the `first` of each
/// connection among them, and all `other`.
struct Marks {
    let machine: Namespace
    /// Of the packet filter: `input`, `output`.
    let hook: String
    /// Which packets, in nft's words.
    let packets: String

    /// Begins to count.
    ///
    /// - Parameter verdict: what becomes of the packets.
    func count(_ verdict: String = "accept") async throws {
        let counters = ["signaling", "first", "other"].map { "add counter inet marks \($0)" }
        let first = "\(packets) tcp flags & (syn | ack) == syn"
        // What comes after a socket was closed is reset by the kernel, on behalf of no socket.
        let resets = packets.hasPrefix("tcp") ? ["\(packets) tcp flags & rst == rst \(verdict)"] : []
        let rules =
            resets
            + ["ip", "ip6"].flatMap { family in
                (packets.hasPrefix("tcp") ? ["\(first) \(family) dscp cs5 counter name first"] : [])
                    + ["\(packets) \(family) dscp cs5 counter name signaling \(verdict)"]
            } + ["\(packets) counter name other \(verdict)"]
        try await machine.nft(
            ["add table inet marks"] + counters
                + ["add chain inet marks \(hook) { type filter hook \(hook) priority filter; }"]
                + rules.map { "add rule inet marks \(hook) \($0)" })
    }

    /// How many packets a counter counted.
    func packets(_ counter: String) async throws -> Int {
        let text = try await machine.command(["nft", "list", "counter", "inet", "marks", counter])
        let words = text.split { $0 == " " || $0 == "\n" || $0 == "\t" }
        guard let place = words.firstIndex(of: "packets"), let number = Int(words[place + 1]) else {
            throw LabError.unexpectedOutput(command: "nft list counter", output: text)
        }
        return number
    }
}
