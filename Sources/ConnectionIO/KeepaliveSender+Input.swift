// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnection
internal import DialtonePlatform

// What has come on a flow: answers are read, messages are answered, the rest is the client's.

extension KeepaliveSender {
    /// Has the flow tell of bytes as long as somebody wants to know.
    func awaitInput(on epoch: UInt64) {
        guard let kept = kept[epoch] else { return }
        if kept.isWatched || kept.further != nil || kept.input.isLooked || kept.awaitsRoom {
            kept.flow.awaitInput(orRoom: kept.awaitsRoom) { [weak self] in self?.inputArrived(on: epoch) }
        } else {
            kept.flow.stopAwaitingInput()
        }
    }

    /// Sorts what has come, also where nobody was told of it yet: answers are read, the rest is the client's.
    func sortInput(on epoch: UInt64) {
        if let flow = kept[epoch]?.flow, flow.mayHaveUnread { inputArrived(on: epoch) }
    }

    /// Reads the answer, or the message, that may have come. A flow on which none is looked for is not asked for
    /// anything.
    func takeAnswer(on epoch: UInt64) {
        if kept[epoch]?.input.isLooked == true { sortInput(on: epoch) }
    }

    /// Writes the rest of a reply, of which the socket took a part before.
    ///
    /// - Returns: whether nothing is left of it: nobody else may write before.
    func finishReply(on epoch: UInt64) -> Bool {
        guard let kept = kept[epoch], !kept.unsent.isEmpty else { return true }
        let rest = kept.unsent.dropFirst(kept.flow.sendPart(kept.unsent))
        self.kept[epoch]?.unsent = rest
        return rest.isEmpty
    }

    /// Looks again at a socket that said nothing, or at what is not whole.
    private func lookLater(at epoch: UInt64, on deadline: Duration) {
        kept[epoch]?.look = Timers.shared.schedule(at: deadline) { [weak self] in self?.inputArrived(on: epoch) }
    }

    /// Something has come on a flow, or there is room on it.
    func inputArrived(on epoch: UInt64) {
        kept[epoch]?.look?.cancel()
        kept[epoch]?.look = nil
        switch read(epoch) {
        case .undecided(let end?): lookLater(at: epoch, on: end)
        case .undecided(nil): break
        case .decided:
            guard let kept = kept[epoch], kept.isWatched || kept.further != nil else { break }
            if let count = kept.flow.knownUnread {
                tell(of: count, on: epoch)
            } else {
                lookLater(at: epoch, on: BootClock.now() + Self.nextLook)
            }
        }
        awaitInput(on: epoch)
    }

    /// So many bytes wait that are not an answer.
    private func tell(of count: Int, on epoch: UInt64) {
        if kept[epoch]?.isWatched == true, count > 0 {
            kept[epoch]?.isWatched = false
            owner.keepaliveSender(heard: .arrived(epoch: epoch))
        }
        if let further = kept[epoch]?.further, count > further.count {
            kept[epoch]?.further = nil
            further.handler()
        }
    }

    /// What is known of the bytes that wait.
    enum Reading {
        /// They may yet become an answer or a message, until then at the latest.
        case undecided(until: Duration?)
        /// They are the client's, or there are none.
        case decided
    }

    /// Reads answers and messages, as long as one stands first.
    @discardableResult
    func read(_ epoch: UInt64) -> Reading {
        guard finishReply(on: epoch) else { return .undecided(until: nil) }
        guard var input = kept[epoch]?.input, let flow = kept[epoch]?.flow else { return .decided }
        var (reading, random) = (Reading.decided, Chance())
        var (count, replies, isHidden) = (0, 0, false)
        kept[epoch]?.lacksRoom = false
        loop: while input.isLooked {
            let unread = flow.peek()
            if unread.isEmpty { break }
            let (before, now) = (input, BootClock.now())
            switch input.next(unread, at: now, using: &random) {
            case .answer(let length, let answers):
                flow.discard(length)
                count += answers
            case .reply(let length, let reply):
                let sent = reply.isEmpty ? 0 : flow.sendPart(reply[...])
                if sent == 0, !reply.isEmpty {
                    input = before
                    guard let end = input.lacksRoom(at: now) else { continue }
                    kept[epoch]?.lacksRoom = true
                    reading = .undecided(until: end)
                    break loop
                }
                // Only now: should this process end in between, the next one answers twice and loses nothing.
                flow.discard(length)
                input.answered(at: now)
                replies += 1
                guard sent < reply.count else { continue }
                kept[epoch]?.unsent = reply[sent...]
                reading = .undecided(until: nil)
                break loop
            case .wait(let end):
                reading = .undecided(until: end)
                break loop
            case .forClient:
                // What comes behind the client's bytes cannot be seen. The server's kernel is asked instead.
                isHidden = input.keepalive?.isAwaitingAnswer == true
                _ = input.keepalive?.giveUp()
            }
        }
        kept[epoch]?.input = input
        for _ in 0..<replies { owner.keepaliveSenderAnswered(on: epoch) }
        if count > 0 {
            settle(epoch)
            owner.keepaliveSender(heard: .answered(epoch: epoch, count: count))
        }
        guard isHidden, kept[epoch] != nil else { return reading }
        owner.keepaliveSender(heard: .answerHidden(epoch: epoch))
        if kept[epoch] != nil { probeByKernel(flow) }
        return .decided
    }
}
