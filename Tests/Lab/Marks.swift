// SPDX-License-Identifier: Apache-2.0

import LabSupport

/// Counts packets on a machine by how they are marked, with nft(8): those marked `cs5`, the `syn` among them, and those
/// marked `other`wise or not at all.
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
        try await machine.nft(
            ["add table inet marks"] + ["cs5", "syn", "other"].map { "add counter inet marks \($0)" } + [
                "add chain inet marks chain { type filter hook \(hook) priority filter; }",
                "add rule inet marks chain \(packets) ip dscp cs5 tcp flags & (syn | ack) == syn counter name syn",
                "add rule inet marks chain \(packets) ip6 dscp cs5 tcp flags & (syn | ack) == syn counter name syn",
                "add rule inet marks chain \(packets) ip dscp cs5 counter name cs5 \(verdict)",
                "add rule inet marks chain \(packets) ip6 dscp cs5 counter name cs5 \(verdict)",
                "add rule inet marks chain \(packets) counter name other \(verdict)",
            ])
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
