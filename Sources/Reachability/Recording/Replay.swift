// SPDX-License-Identifier: Apache-2.0

package import DialtoneNetlink
package import DialtoneNetworkPath

/// Runs a recording through the decoding, the snapshot and the verdicts of this program: what would it have said?
///
/// The kernel's messages and answers, names and settings are those of the recording, and so is the moment of each
/// evaluation; every path is derived anew. A recording carries the verdicts that were given, so a replay also says
/// where this program would have given another.
package struct Replay {
    /// A path that is another than the one before.
    package struct Change: Sendable {
        /// When, on the boot clock of the recorded machine.
        package let time: Duration
        /// What was asked.
        package let question: Question
        /// The path, as this program derives it.
        package let path: Path
        /// What is different; empty for a question's first path.
        package let changes: [PathChange]
    }

    /// A verdict that is not the recorded one.
    package struct Deviation: Sendable, CustomStringConvertible {
        /// When it was given, on the boot clock of the recorded machine.
        package let time: Duration
        /// What was asked.
        package let question: Question
        /// What differs: the name of each value, what was recorded, and what this program says.
        package let differences: [(name: String, recorded: String, replayed: String)]

        /// `gateway was 192.0.2.1, is now 192.0.2.9`
        package var description: String {
            differences.map { difference in
                func text(_ value: String) -> String { value.isEmpty ? "none" : value }
                return "\(difference.name) was \(text(difference.recorded)), is now \(text(difference.replayed))"
            }.joined(separator: "; ")
        }
    }

    /// Why there is nothing to replay.
    package struct Failure: Error, CustomStringConvertible {
        /// What was tried, and what came back.
        package let description: String
        /// Whether the file system refused the file, and nobody knows what is in it.
        package let isUnreadable: Bool
    }

    /// The paths as they changed.
    package private(set) var changes: [Change] = []
    /// Where this program judges otherwise than the one that recorded; empty where they agree.
    package private(set) var deviations: [Deviation] = []
    /// Where the file ends in the middle of a record, as after a crash; `nil` for one that is whole.
    package let cutAt: Int?
    /// What the wall clock would have shown, in time since 1970, when the boot clock began; as it was set when the
    /// recording began.
    package let wallAtBoot: Duration

    private var kernel: ReplayedKernel
    private var watched: [Int: Watched] = [:]
    private var names: [String: NameTracker.State] = [:]
    private var supportsDNS = false
    private var nameServers: [IPAddress] = []
    private var isKnown = true
    private var network = Path(status: .unknown)

    private struct Watched {
        let question: Question
        var path: Path?
        var recorded: RecordingMark?
    }

    /// Replays `recording` from its beginning to its end.
    package init(_ recording: Recording) {
        kernel = ReplayedKernel(recording)
        (cutAt, wallAtBoot) = (recording.cutAt, recording.wallAtBoot)
        for (position, entry) in recording.entries.enumerated() {
            kernel.take(entry, at: position)
            if case .mark(let mark) = entry.content { take(mark, at: entry.time) }
        }
    }

    /// Replays the recording in a file.
    ///
    /// - Throws: why it cannot be read, or is none.
    package init(contentsOf path: String) throws(Failure) {
        do throws(RecordingError) {
            self.init(try Recording(contentsOf: path))
        } catch {
            var isUnreadable = false
            if case .unreadable = error { isUnreadable = true }
            throw Failure(description: "\(path): \(error)", isUnreadable: isUnreadable)
        }
    }

    private mutating func take(_ mark: RecordingMark, at time: Duration) {
        let number = mark["id"].flatMap { Int($0) }
        switch mark.word {
        case "watch":
            if let number, let question = Question(mark) { watched[number] = Watched(question: question) }
        case "unwatch": if let number { watched[number] = nil }
        case "name": if let name = mark["name"] { names[name] = NameTracker.State(mark) }
        case "costs": kernel.setCosts(CostPolicy(mark))
        case "facts":
            (supportsDNS, isKnown) = (mark["dns"] == "true", mark["known"] == "true")
            nameServers = mark.list("servers").compactMap { IPAddress($0) }
        case "verdict": if let number { watched[number]?.recorded = mark }
        case "evaluated": evaluate(mark, at: time)
        // What the kernel's side understands, and what a later version may add.
        default: break
        }
    }

    // MARK: Evaluation

    private mutating func evaluate(_ mark: RecordingMark, at time: Duration) {
        let facts = findFacts()
        for number in mark.list("ids").compactMap({ Int($0) }) {
            guard let question = watched[number]?.question, let path = path(for: question) else { continue }
            take(path.with(facts, for: question), for: number, at: time)
        }
        for number in mark.list("unanswered").compactMap({ Int($0) }) {
            let unknown = Path.unknown(generation: kernel.snapshot.generation, destination: nil)
            take(unknown.with(facts), for: number, at: time)
        }
    }

    /// Derives the path to the network as such, and what follows for every path.
    private mutating func findFacts() -> NetworkFacts {
        let snapshot = kernel.snapshot
        guard isKnown else {
            network = .unknown(generation: snapshot.generation, destination: nil)
            return NetworkFacts()
        }
        let internet = Inquiry(network: .any, in: snapshot)
        guard let answers = answers(to: internet) else {
            return NetworkFacts(supportsDNS: supportsDNS, nameServers: nameServers)
        }
        let facts = NetworkFacts(
            supportsIPv4: internet.reaches(.v4, by: answers[...], in: snapshot),
            supportsIPv6: internet.reaches(.v6, by: answers[...], in: snapshot), supportsDNS: supportsDNS,
            nameServers: nameServers)
        network = internet.path(by: answers[...], in: snapshot).with(facts)
        network.destination = nil
        return facts
    }

    private func path(for question: Question) -> Path? {
        let snapshot = kernel.snapshot
        let inquiry: Inquiry
        switch question {
        case .network(let requirement, let user):
            inquiry = Inquiry(network: requirement, user: user, in: snapshot)
        case .host(let target):
            switch target.host {
            case .address(let address): inquiry = Inquiry(target, at: [address], in: snapshot)
            case .name(let name):
                switch names[name] {
                case .resolved(let addresses): inquiry = Inquiry(target, at: addresses, in: snapshot)
                case .unresolved(let isFinal): return .unresolved(network: network, isFinal: isFinal)
                case .pending, nil: return .unresolved(network: network)
                }
            }
        }
        // A question that was not asked: the lookups of this program are others than the recorded ones.
        guard let answers = answers(to: inquiry) else {
            return .unknown(generation: snapshot.generation, destination: nil)
        }
        return inquiry.path(by: answers[...], in: snapshot)
    }

    private func answers(to inquiry: Inquiry) -> [RouteAnswer]? {
        let answers = inquiry.queries.compactMap { kernel.answer(to: $0.query) }
        return answers.count == inquiry.queries.count ? answers : nil
    }

    private mutating func take(_ path: Path, for number: Int, at time: Duration) {
        guard let known = watched[number] else { return }
        var path = path
        // The count of the recorded engine, which had dropped what concerned nobody.
        path.generation = known.recorded?["generation"].flatMap { UInt64($0) } ?? 0
        watched[number]?.path = path
        let news = known.path.map { path.changes(from: $0) }
        if news?.isEmpty != true {
            changes.append(Change(time: time, question: known.question, path: path, changes: news ?? []))
        }
        guard let recorded = known.recorded else { return }
        let differences = path.recordFields.compactMap { field in
            // A value that the recording program did not know of is none that it judged otherwise.
            recorded[field.name].flatMap { field.isLike($0) ? nil : (field.name, $0, field.value) }
        }
        if !differences.isEmpty {
            deviations.append(Deviation(time: time, question: known.question, differences: differences))
        }
    }
}
