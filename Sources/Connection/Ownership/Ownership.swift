// SPDX-License-Identifier: Apache-2.0

/// Who may read the sockets of flows that do not stand any more: those that ended before their client had read what
/// came on them, and those that another flow took the place of. Who has the flow that stands is in its own
/// ``FlowOwnership``.
///
/// TCP has acknowledged those bytes to the server, which will not send them again. So a flow that ended while nobody
/// read it waits to be taken, and who took it may lose it on its way, or end before its first read: it is kept until
/// its reader has shown that it has it. A socket has one reader at a time.
package struct Ownership: Sendable {
    /// How many ended flows are kept: who does not come has slept through as many losses of the line.
    static let most = 8
    /// How long a client has to change over to a flow that took the place of the one it has.
    static let lingeringTime = Duration.seconds(30)

    /// A flow that ended.
    struct Ended: Hashable, Sendable {
        let epoch: UInt64
        /// Who has it; `nil` while it waits.
        var reader: Reader?
        /// Whether it was given to that reader twice.
        var wasRepeated = false
        /// Whether nobody was logged in on it, and the server hung up.
        var isRefusal = false
        /// Of one whose reader was gone when it ended, though nobody had said so: what that one had done on it.
        var left: Touch?
    }

    /// A flow that another one took the place of while a client had it.
    struct Lingering: Hashable, Sendable {
        let reader: Reader
        /// How long it has to change over.
        let end: Duration
    }

    /// Oldest first.
    private var ended: [Ended] = []
    /// Until their clients take the successor, or their time is over.
    private var lingering: [UInt64: Lingering] = [:]

    /// The flows that ended and may be taken, the oldest first.
    package var endedEpochs: [UInt64] { ended.map(\.epoch) }

    /// Whether one of them waits to be taken.
    package var isWaiting: Bool { ended.contains { $0.reader == nil } }

    /// Whether one of them waits that its client is to be woken for. What a server said that turned the agent away is
    /// there for who asks.
    var isOwed: Bool { ended.contains { $0.reader == nil && !$0.isRefusal } }

    /// When the first of those is closed that another flow took the place of.
    var deadline: Duration? { lingering.values.map(\.end).min() }

    /// Who has the flow of a number; `nil` where nobody has, or where it is not kept.
    package func reader(of epoch: UInt64) -> Reader? {
        lingering[epoch]?.reader ?? ended.first { $0.epoch == epoch }?.reader
    }

    /// All that have flows which ended, those of the oldest first.
    var readersOfEnded: [Reader] { ended.compactMap(\.reader) }

    /// All that have any.
    var readers: [Reader] { readersOfEnded + lingering.values.map(\.reader) }

    /// What a later run of the agent needs to go on with them.
    var saved: [Clientele.EndedFlow] { ended.map { .init(epoch: $0.epoch, reader: $0.reader, left: $0.left) } }

    // MARK: - What ends

    /// Keeps a flow that ended while nobody read it, or closes it where that is of no use.
    ///
    /// - Parameter left: who had it and is gone, which is about to be told, and what that one had done on it.
    mutating func keep(
        _ epoch: UInt64, left: (reader: Reader, touch: Touch)? = nil, isRefusal: Bool = false,
        _ effects: inout [ConnectionEffect]
    ) {
        if isRefusal {
            // It is of less use than what waits on other flows, and takes the place of what the server said before.
            dropRefusal(&effects)
            if ended.count == Self.most { return effects.append(.close(epoch: epoch, aborting: false)) }
        } else if ended.count == Self.most {
            // What somebody has taken is not lost by that.
            drop(at: ended.firstIndex { $0.reader != nil } ?? 0, &effects)
        }
        ended.insert(
            Ended(epoch: epoch, reader: left?.reader, isRefusal: isRefusal, left: left?.touch),
            at: ended.firstIndex { $0.epoch > epoch } ?? ended.endIndex)
        effects.append(.retire(epoch: epoch, survivesAgent: !isRefusal, isHeld: false))
    }

    /// Keeps a flow that ended while somebody had it who may never come to read it.
    private mutating func keep(_ epoch: UInt64, for reader: Reader, _ effects: inout [ConnectionEffect]) {
        ended.insert(
            Ended(epoch: epoch, reader: reader), at: ended.firstIndex { $0.epoch > epoch } ?? ended.endIndex)
        effects.append(.retire(epoch: epoch, survivesAgent: true, isHeld: true))
    }

    /// Nobody wants to know any more why the server turned the agent away; who has taken it reads on.
    mutating func dropRefusal(_ effects: inout [ConnectionEffect]) {
        if let index = ended.firstIndex(where: { $0.isRefusal && $0.reader == nil }) { drop(at: index, &effects) }
    }

    /// Goes on with flows that an earlier run of the agent left.
    mutating func restore(_ flows: [Clientele.EndedFlow]) {
        ended = flows.map { Ended(epoch: $0.epoch, reader: $0.reader, left: $0.left) }
    }

    /// A client has a flow that another one took the place of.
    mutating func linger(_ epoch: UInt64, of reader: Reader, until end: Duration) {
        lingering[epoch] = Lingering(reader: reader, end: end)
    }

    /// Closes flows that others took the place of. What a client that is gone has not read is kept.
    ///
    /// - Parameter keepsRest: as of ``abandon(_:keepsRest:_:_:)``.
    mutating func endLingering(
        where isOver: (Lingering) -> Bool = { _ in true }, keepsRest: Bool, _ facts: some ConnectionFacts,
        _ effects: inout [ConnectionEffect]
    ) {
        for (epoch, flow) in lingering.sorted(by: { $0.key < $1.key }) where isOver(flow) {
            lingering[epoch] = nil
            release(epoch, of: flow.reader, aborting: false, keepsRest: keepsRest, facts, &effects)
        }
    }

    /// Closes a flow that a reader has: when it has read it, where it lives. What came on it is kept where it does not,
    /// until its end is told; and where the reader has shown no sign of having it.
    ///
    /// - Parameter keepsRest: as of ``abandon(_:keepsRest:_:_:)``.
    mutating func release(
        _ epoch: UInt64, of reader: Reader?, aborting: Bool, keepsRest: Bool, _ facts: some ConnectionFacts,
        _ effects: inout [ConnectionEffect]
    ) {
        guard let reader, facts.mayHaveUnread(epoch) else {
            return effects.append(.letGo(epoch: epoch, aborting: aborting))
        }
        let touch = facts.touch(of: epoch)
        if let process = reader.process, !facts.presence(of: process).contains(.alive) {
            return keep(epoch, left: (reader, touch), &effects)
        }
        let mayBeLost =
            switch reader {
            case .launch: true
            // The descriptor may never come to it, or it may end before it has read anything.
            case .client, .program: keepsRest || touch != .touched
            case .unknown: false
            }
        guard mayBeLost, ended.count < Self.most else {
            return effects.append(.letGo(epoch: epoch, aborting: aborting))
        }
        keep(epoch, for: reader, &effects)
    }

    /// Nobody wants to read any more: closes all but the flow that stands.
    mutating func close(_ effects: inout [ConnectionEffect]) {
        for epoch in lingering.keys.sorted() { effects.append(.letGo(epoch: epoch, aborting: false)) }
        for flow in ended { effects.append(.close(epoch: flow.epoch, aborting: false)) }
        (lingering, ended) = ([:], [])
    }

    // MARK: - Who reads what ended

    /// The oldest ended flow that `reader` has not had; `nil` when there is none.
    ///
    /// Who comes again has what it took before, if it has read any of it. Else it may never have got the descriptor,
    /// and is given it once more: but not for ever, since it may be about to take everything first, and then read.
    mutating func next(
        for reader: Reader, _ facts: some ConnectionFacts, _ effects: inout [ConnectionEffect]
    ) -> UInt64? {
        var index = 0
        while index < ended.count {
            let flow = ended[index]
            let isAgain = Self.isAgain(reader, after: flow.reader)
            if !facts.mayHaveUnread(flow.epoch)
                || (isAgain && (flow.wasRepeated || facts.touch(of: flow.epoch) == .touched))
            {
                drop(at: index, &effects)
            } else if flow.reader == nil || isAgain {
                return flow.epoch
            } else {
                index += 1
            }
        }
        return nil
    }

    /// A reader was given an ended flow.
    mutating func give(_ epoch: UInt64, to reader: Reader) {
        guard let index = ended.firstIndex(where: { $0.epoch == epoch }) else { return }
        let former = ended[index].reader
        // A program that takes again what it was launched with is that program still.
        let isProgram = former?.isProcess(of: reader) ?? false
        ended[index].wasRepeated = isProgram || former == reader
        if !isProgram { (ended[index].reader, ended[index].left) = (reader, nil) }
    }

    /// Whether a reader comes again, as far as is known: of one that cannot be watched anybody may be the next.
    private static func isAgain(_ reader: Reader, after former: Reader?) -> Bool {
        guard let former else { return false }
        return former == reader || former == .unknown || former.isProcess(of: reader)
    }

    /// What a reader has is somebody's that it turned into.
    mutating func replace(_ reader: Reader, by next: Reader) {
        lingering = lingering.mapValues { $0.reader == reader ? Lingering(reader: next, end: $0.end) : $0 }
        for index in ended.indices where ended[index].reader == reader { ended[index].reader = next }
    }

    /// The ended flows that a reader has.
    func flows(of reader: Reader) -> [UInt64] { ended.filter { $0.reader == reader }.map(\.epoch) }

    /// Whether it is an ended flow that somebody has.
    func isGiven(_ epoch: UInt64) -> Bool { index(of: epoch).map { ended[$0].reader != nil } ?? false }

    /// Its reader has shown that it has it.
    ///
    /// - Returns: whether it is an ended flow that somebody had.
    @discardableResult
    mutating func settle(_ epoch: UInt64, _ effects: inout [ConnectionEffect]) -> Bool {
        guard let index = index(of: epoch) else { return false }
        drop(at: index, &effects)
        return true
    }

    /// Who has taken one has shown that it has it, unless it has died of that.
    ///
    /// - Parameter process: who that is; `nil` for one that cannot be watched.
    mutating func settleAll(
        of process: KnownProcess?, _ facts: some ConnectionFacts, _ effects: inout [ConnectionEffect]
    ) {
        for (index, flow) in ended.enumerated().reversed() {
            switch flow.reader {
            case .client(let reader), .program(let reader):
                if reader == process, facts.presence(of: reader).contains(.alive) { drop(at: index, &effects) }
            case .unknown: if process == nil { drop(at: index, &effects) }
            case .launch, nil: break
            }
        }
    }

    /// Its reader ended in order: it has read what it wanted, or the flow stood when that one went.
    mutating func finish(_ epoch: UInt64, _ effects: inout [ConnectionEffect]) {
        guard let index = index(of: epoch) else { return }
        if ended[index].left == nil { drop(at: index, &effects) } else { wait(index, &effects) }
    }

    /// A reader never came to read what does not stand any more.
    mutating func giveBack(_ reader: Reader, _ facts: some ConnectionFacts, _ effects: inout [ConnectionEffect]) {
        for epoch in flows(of: reader) { wait(index(of: epoch), &effects) }
        for (epoch, flow) in lingering where flow.reader == reader {
            lingering[epoch] = nil
            if facts.mayHaveUnread(epoch) {
                keep(epoch, &effects)
            } else {
                effects.append(.close(epoch: epoch, aborting: false))
            }
        }
    }

    /// Its reader is gone without a word.
    ///
    /// - Parameter keepsRest: whether what is left is of use to another one that did not read what came before it.
    /// - Returns: whether it waits to be taken again.
    mutating func abandon(
        _ epoch: UInt64, keepsRest: Bool, _ facts: some ConnectionFacts, _ effects: inout [ConnectionEffect]
    ) -> Bool {
        guard let index = index(of: epoch) else { return false }
        if facts.mayHaveUnread(epoch), keepsRest || (ended[index].left ?? facts.touch(of: epoch)) != .touched {
            wait(index, &effects)
            return true
        }
        drop(at: index, &effects)
        return false
    }

    /// One that somebody has taken.
    private func index(of epoch: UInt64) -> Int? { ended.firstIndex { $0.epoch == epoch && $0.reader != nil } }

    private mutating func wait(_ index: Int?, _ effects: inout [ConnectionEffect]) {
        guard let index else { return }
        (ended[index].reader, ended[index].wasRepeated, ended[index].left) = (nil, false, nil)
        effects.append(.rest(epoch: ended[index].epoch))
    }

    private mutating func drop(at index: Int, _ effects: inout [ConnectionEffect]) {
        effects.append(.letGo(epoch: ended.remove(at: index).epoch, aborting: false))
    }
}
