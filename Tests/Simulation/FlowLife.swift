// SPDX-License-Identifier: Apache-2.0

@testable import DialtoneConnection

/// What is known of whether the other end of the flow that stands is there.
struct FlowLife {
    var figures = KeepaliveProtocol.kernel.figures
    var hasAnswered = false
    /// When the keepalives under way were sent.
    var probes: [Duration] = []
    /// Since when a proof is owed, and since when none was made.
    var event: Duration?
    var firstEvent: Duration?
    /// Up to when keepalives were sent that owe no answer in time: before an event, and where the kernel vouched since.
    var excused: Duration?
    /// Since when a keepalive waits behind bytes without acknowledgement.
    var undelivered: Duration?
    var lastProof: Duration?

    mutating func begin(_ policy: ConnectionPolicy, _ now: Duration) {
        figures = (policy.heartbeat?.kind ?? .kernel).figures
        (probes, event, firstEvent, excused, undelivered, lastProof) = ([], nil, nil, nil, nil, now)
    }

    mutating func end() {
        (probes, event, firstEvent, excused, undelivered, lastProof) = ([], nil, nil, nil, nil, nil)
    }

    /// Nothing is owed until it is doubted again.
    mutating func suspend() { (event, firstEvent, undelivered) = (nil, nil, nil) }

    mutating func doubt(_ now: Duration) {
        undelivered = nil
        // What was doubted before a sleep has its time anew.
        if let event, let firstEvent, now < min(event + .seconds(3), firstEvent + .seconds(9)) {
            (self.event, self.firstEvent, excused) = (now, firstEvent, now)
        } else {
            (event, firstEvent, excused) = (now, now, now)
        }
    }

    mutating func acknowledged(_ begun: Duration, _ now: Duration) {
        let wasDoubted = event != nil
        if begun >= undelivered ?? .zero { undelivered = nil }
        proved(begun, now)
        if wasDoubted, event == nil { excused = now }
    }

    private var owing: Duration? { probes.first { $0 > excused ?? .zero } }

    mutating func adopt(_ figures: KeepaliveFigures) {
        self.figures = figures
        (probes, undelivered) = ([], nil)
        hasAnswered = false
    }

    mutating func sent(_ now: Duration) { probes = (probes + [now]).suffix(2) }

    mutating func answered(_ count: Int, _ now: Duration) {
        guard let begun = probes.prefix(count).last else { return }
        probes.removeFirst(min(count, probes.count))
        hasAnswered = true
        proved(begun, now)
    }

    mutating func proved(_ begun: Duration, _ now: Duration) {
        guard begun <= now, begun >= event ?? begun else { return }
        (event, firstEvent) = (nil, nil)
        lastProof = now
    }

    var deadline: Duration? {
        let owed = [event.map { $0 + .seconds(3) }, firstEvent.map { $0 + .seconds(9) }].compactMap(\.self)
        return (owed + [owing, undelivered].compactMap { $0.map { $0 + figures.answerDeadline } }).min()
    }

    func isLost(at now: Duration) -> Bool {
        if let event, let firstEvent, now >= min(event + .seconds(3), firstEvent + .seconds(9)) { return true }
        if let undelivered, now >= undelivered + figures.answerDeadline { return true }
        guard let owing, now >= owing + figures.answerDeadline else { return false }
        return hasAnswered || figures.isAnswerMandatory
    }
}
