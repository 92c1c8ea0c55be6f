// SPDX-License-Identifier: Apache-2.0

/// A step after which the product and the kernel disagree.
struct Failure: Sendable {
    /// The run's.
    let seed: UInt64
    /// Its number in the run, from one.
    let step: Int
    /// The network's number in the run, and the buffer that it was watched with.
    let episode: Int
    let receiveBuffer: Int
    /// What happened to the network since its birth; the last step is the one.
    let past: [Step]
    let disagreements: [Disagreement]
    /// What was still wrong when the product was started anew.
    let secondOpinion: [Disagreement]
    /// The network as it was then.
    let state: String

    /// The account of it, with a history that is as short as could be found.
    func account() async throws -> String {
        var shrinking = Shrinking(receiveBuffer: receiveBuffer)
        let shortest = try await shrinking.shrink(past)
        let repetition =
            shortest.map { shortest in
                """
                This is enough for it (\(shrinking.replays) shorter and shorter histories were played), in a network \
                like that of Tests/Soak/Topology.swift; an empty line is where the product was left to settle:
                \(Self.text(shortest.history))
                and then the product says, the kernel says
                \(Self.text(shortest.disagreements))
                """
            } ?? "Played once more, the same history does not end so: it takes a coincidence."
        return """
            SEED=\(seed): step \(step) (step \(past.count) of network \(episode), receive buffer \(receiveBuffer)) after
            \(Self.text([past.last ?? Step(changes: [])]))
            the product says, the kernel says
            \(Self.text(disagreements))
            started anew, the product \(secondOpinion.isEmpty ? "agrees" : "says\n\(Self.text(secondOpinion))")
            \(repetition)
            the host's network then
            \(state)
            """
    }

    private static func text(_ steps: [Step]) -> String {
        steps.map { $0.changes.map { "  \($0)" }.joined(separator: "\n") }.joined(separator: "\n\n")
    }

    private static func text(_ disagreements: [Disagreement]) -> String {
        disagreements.map { "  \($0)" }.joined(separator: "\n")
    }
}
