// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetlink
internal import DialtoneNetworkPath
internal import DialtonePlatform

/// What the engine has recorded: the questions and whatever their answers depend on beside the kernel, when which of
/// them were evaluated, and each verdict that was another than the one before. ``Replay`` reads it.
@AgentQueue
final class EngineRecord {
    let recorder: Recorder
    private var numbers: [Question: Int] = [:]
    private var nextNumber = 1
    private var verdicts: [Question: [RecordingMark.Field]] = [:]
    private var facts: RecordingMark?

    init(_ recorder: Recorder) {
        self.recorder = recorder
    }

    /// A question is observed from now on.
    func watched(_ question: Question) {
        numbers[question] = nextNumber
        recorder.note(RecordingMark("watch", [.init("id", nextNumber)] + question.recordFields))
        nextNumber += 1
    }

    /// A question is observed no more.
    func forgot(_ question: Question) {
        guard let number = numbers.removeValue(forKey: question) else { return }
        verdicts[question] = nil
        recorder.note(RecordingMark("unwatch", [.init("id", number)]))
    }

    /// The user says what interfaces cost.
    func costs(_ costs: CostPolicy) {
        recorder.note(RecordingMark("costs", costs.recordFields))
    }

    /// A name stands for other addresses.
    func name(_ name: String, is state: NameTracker.State) {
        recorder.note(RecordingMark("name", [.init("name", name)] + state.recordFields))
    }

    /// These questions were evaluated.
    func evaluated(_ verdicts: [(WatchedQuestion, Path)], _ facts: FactFinder) {
        guard !verdicts.isEmpty else { return }
        note(facts)
        var answered: [String] = []
        var unanswered: [String] = []
        for (watched, path) in verdicts {
            guard let number = numbers[watched.question] else { continue }
            if path.status == .unknown { unanswered.append("\(number)") } else { answered.append("\(number)") }
            let fields = path.recordFields
            guard self.verdicts[watched.question] != fields else { continue }
            self.verdicts[watched.question] = fields
            let head: [RecordingMark.Field] = [.init("id", number), .init("generation", path.generation)]
            recorder.note(RecordingMark("verdict", head + fields))
        }
        // Last, so that who reads it knows each verdict that it brought.
        recorder.note(
            RecordingMark("evaluated", [.init("ids", list: answered), .init("unanswered", list: unanswered)]))
    }

    /// What the facts of the network are; the families that can leave are verdicts themselves, and found out again.
    private func note(_ facts: FactFinder) {
        let mark = RecordingMark(
            "facts",
            [
                .init("dns", facts.values.supportsDNS),
                .init("servers", list: facts.values.nameServers.map(\.description)),
                .init("known", facts.network.status != .unknown),
            ])
        guard mark != self.facts else { return }
        self.facts = mark
        recorder.note(mark)
    }
}
