// SPDX-License-Identifier: Apache-2.0

import DialtoneTestSupport
import Testing

@testable import DialtoneConnection

/// What comes from earlier runs, servers and files, as far out as its type allows.
@Suite struct ExtremeTests {
    @Test(arguments: [UInt64.max, UInt64.max - 1, UInt64(1) << 53])
    func `flows and wakes are counted on from any number`(number: UInt64) {
        var harness = Harness(.office)
        harness.tell(.adopted(Adoption(epoch: number, local: .local, remote: .office, ownership: .new)))
        harness.tell(all: .pathChanged(.wifi), .redialRequested())
        #expect(harness.machine.newestEpoch <= ConnectionStateMachine.largestNumber + 1)
        var reopened = Harness(.office)
        reopened.tell(all: .reopened(epoch: number, .flowLost), .pathChanged(.wifi))
        #expect(reopened.machine.newestEpoch == ConnectionStateMachine.largestNumber + 1)
        var wakes = WakeHarness([.signal])
        wakes.tell(.restored(StandingWake(number: number, reasons: [.data], since: .zero)))
        wakes.tell(.taken)
        wakes.tell(.needed(.data, .alive))
        #expect(wakes.machine.standing?.number == ConnectionStateMachine.largestNumber + 1)
    }

    @Test func `the kernel's keepalive is one that the kernel takes, however long a client promised to be silent`()
        throws
    {
        let connect: [UInt8] = [0x10, 12, 0, 4] + Array("MQTT".utf8) + [4, 2, 0xFF, 0xFF]
        let opening = Opening([.init(send: connect, answer: ExpectedAnswer(BytePattern([0x20, 2, 0, 0])))])
        let heartbeat = try Heartbeat(
            .mqtt, interval: .seconds(62_000), tolerance: nil, wakesMachine: false, isAdaptive: nil, under: opening)
        var policy = ConnectionPolicy(remote: .of("mqtt://192.0.2.7"))
        (policy.heartbeat, policy.opening) = (heartbeat, opening)
        try policy.validate()
        try policy.socketOptions.keepalive?.check()
    }

    @Test func `a heartbeat has the figures of its protocol, or none`() {
        let extremes: [Duration] = [
            .zero, .nanoseconds(1), .nanoseconds(-1), .seconds(Int64.min), .seconds(Int64.max), .milliseconds(Int.max),
        ]
        let kinds: [KeepaliveProtocol] = [
            .crlf, .whitespace, .xmppPing, .mqtt, .websocket, .custom(send: [1], expect: []),
        ]
        for kind in kinds {
            for interval in extremes {
                for (tolerance, isAdaptive) in [(Duration?.none, Bool?.none), (.zero, true), (interval, false)] {
                    #expect(throws: PolicyError.self, "\(kind), \(interval)") {
                        try Heartbeat(
                            kind, interval: interval, tolerance: tolerance, wakesMachine: false,
                            isAdaptive: isAdaptive, under: nil)
                    }
                }
            }
            #expect(throws: PolicyError.self) {
                try Heartbeat(
                    kind, interval: nil, tolerance: .seconds(Int64.max), wakesMachine: false, isAdaptive: nil,
                    under: nil)
            }
        }
    }

    @Test(arguments: seeds(4))
    func `whatever a server sends and a file says can be read`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        func bytes(_ most: Int) -> [UInt8] {
            (0..<random.below(most)).map { _ in
                random.chance(50)
                    ? [0, 0xFF, 0x7F, 0x80, 10, 13, 0x3C, 0x20][random.below(8)]
                    : UInt8(truncatingIfNeeded: random.next())
            }
        }
        for _ in 0..<300 {
            for kind in ExpectedAnswer.MessageFormat.allCases {
                _ = ExpectedAnswer(.message(kind), content: [1]).match(bytes(200)[...])
            }
            _ = XMPPElement.match(Array("<iq".utf8)[...] + bytes(200), name: "iq") { _ in true }
            let text = String(decoding: bytes(80), as: UTF8.self)
            for scheme in Remote.Scheme.allCases {
                _ = (try? Remote("\(scheme.rawValue)://\(text)"))?.description
            }
            _ = Remote.hostProblem(text)
            _ = TrafficClass(text)
            _ = CertificatePin(text)
            let numbers = ["0", "-1", "1", "86400000", "86400001", "999999999999", "9223372036854775807", "-", ""]
            func number() -> String { numbers[random.below(numbers.count)] }
            let line =
                "wifi 020000000001 192.0.2.0/\(number()) - \(number()) \(number()) \(number()) \(number()) \(number())"
            let users = AdaptiveInterval.users(
                in: "dialtone-keepalive-intervals 2\n1000 \(line)\n\(number()) wifi \(text)\n")
            guard var learned = users.first?.learned, let network = learned.networks.first?.identity else { continue }
            for kind in [KeepaliveProtocol.crlf, .mqtt] {
                learned.survived(.seconds(Int64.max), on: network, kind.figures)
                learned.died(after: .seconds(Int64.max), sentAt: .zero, on: network, kind.figures)
                _ = learned.trial(on: network, kind.figures)
            }
            let kept = AdaptiveInterval.text(of: [.init(user: 1000, learned)])
            #expect(AdaptiveInterval.users(in: kept).first?.learned.networks.count == learned.networks.count)
        }
    }
}
