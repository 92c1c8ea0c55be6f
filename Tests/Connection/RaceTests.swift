// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import Testing

@testable import DialtoneConnection

/// RFC 8305 in virtual time.
struct RaceTests {
    /// A race that is run by a driver of its own: time passes when it says so, and every step is written down.
    private struct Runner {
        var race: Race
        var now = Duration.zero
        var newestEpoch: UInt64 = 0
        /// What was started when, in milliseconds.
        var starts: [String] = []
        var isOver = false

        init(ports: [UInt16] = [5060]) {
            race = Race(now: .zero)
            for port in ports { _ = race.expect(port: port) }
        }

        /// Does what the race wants until nothing is left to do before `end`.
        mutating func run(until milliseconds: Int) {
            let end = Duration.milliseconds(milliseconds)
            while true {
                if let attempt = race.overdue(now: now) {
                    _ = race.failed(attempt.epoch, .timedOut)
                    continue
                }
                switch race.step(now: now) {
                case .start(let start):
                    newestEpoch += 1
                    starts.append("\(Int(now / .milliseconds(1))) \(start.remote)")
                    race.began(
                        Race.Attempt(
                            epoch: newestEpoch, remote: start.remote, source: start.source, began: now,
                            deadline: now + .seconds(10)))
                case .wait(let instant):
                    guard let instant, instant <= end else {
                        now = end
                        return
                    }
                    now = instant
                case .over:
                    isOver = true
                    now = end
                    return
                }
            }
        }

        mutating func answer(_ family: IPAddress.Family, of service: Int = 0, _ addresses: String...) {
            let candidates = addresses.compactMap { text in
                IPAddress(text).map {
                    DestinationOrder.Candidate(
                        $0, source: family == .v4 ? IPAddress("192.0.2.1") : IPAddress("2001:db8::1"))
                }
            }
            race.answered(family, of: service, with: candidates, now: now)
        }
    }

    @Test func `of a thousand addresses those are kept that can be tried`() {
        var runner = Runner(ports: [5060, 5061])
        for service in 0...1 {
            for family in [IPAddress.Family.v6, .v4] {
                let candidates = (0..<4000).map { number in
                    DestinationOrder.Candidate(
                        family == .v4 ? IPAddress(v4: 0xCB00_7100 + number) : IPAddress(v6: UInt128(number) + 2),
                        source: IPAddress(family == .v4 ? "192.0.2.1" : "2001:db8::1"))
                }
                runner.race.answered(family, of: service, with: candidates, now: .zero)
            }
        }
        #expect(runner.race.waitingCount == 4 * Race.limit)
        runner.run(until: 60_000)
        #expect(runner.starts.count == Race.limit)
    }

    @Test func `IPv6's answer is acted on at once, and IPv4 has its turn after a quarter of a second`() {
        var runner = Runner()
        runner.answer(.v6, "2001:db8::7")
        runner.run(until: 20)
        runner.answer(.v4, "198.51.100.7")
        runner.run(until: 1000)
        #expect(runner.starts == ["0 [2001:db8::7]:5060", "250 198.51.100.7:5060"])
    }

    @Test func `IPv4's answer waits fifty milliseconds for IPv6's`() {
        var early = Runner()
        early.answer(.v4, "198.51.100.7")
        early.run(until: 30)
        early.answer(.v6, "2001:db8::7")
        early.run(until: 1000)
        #expect(early.starts == ["30 [2001:db8::7]:5060", "280 198.51.100.7:5060"])

        var late = Runner()
        late.answer(.v4, "198.51.100.7")
        late.run(until: 60)
        late.answer(.v6, "2001:db8::7")
        late.run(until: 1000)
        #expect(late.starts == ["50 198.51.100.7:5060", "300 [2001:db8::7]:5060"])
    }

    @Test func `a host without IPv6 is not waited for`() {
        var runner = Runner()
        runner.answer(.v4, "198.51.100.7")
        runner.answer(.v6)
        runner.run(until: 1000)
        #expect(runner.starts == ["0 198.51.100.7:5060"])
    }

    @Test func `families take turns`() {
        var runner = Runner()
        runner.answer(.v6, "2001:db8::7", "2001:db8::8", "2001:db8::9")
        runner.answer(.v4, "198.51.100.7", "198.51.100.8")
        runner.run(until: 2000)
        #expect(
            runner.starts == [
                "0 [2001:db8::7]:5060", "250 198.51.100.7:5060", "500 [2001:db8::8]:5060", "750 198.51.100.8:5060",
                "1000 [2001:db8::9]:5060",
            ])
    }

    @Test func `an attempt that fails makes room at once`() {
        var runner = Runner()
        runner.answer(.v6, "2001:db8::7")
        runner.answer(.v4, "198.51.100.7")
        runner.run(until: 10)
        let failed = runner.race.failed(1, .refused)
        #expect(failed?.remote.description == "[2001:db8::7]:5060")
        runner.run(until: 20)
        #expect(runner.starts == ["0 [2001:db8::7]:5060", "10 198.51.100.7:5060"])
        let again = runner.race.failed(1, .refused)
        #expect(again == nil)
        #expect(!runner.isOver)
    }

    @Test func `so does one that fails beside others`() {
        var runner = Runner()
        runner.answer(.v6, "2001:db8::7", "2001:db8::8")
        runner.answer(.v4, "198.51.100.7")
        runner.run(until: 260)
        _ = runner.race.failed(1, .refused)
        runner.run(until: 270)
        #expect(runner.starts == ["0 [2001:db8::7]:5060", "250 198.51.100.7:5060", "260 [2001:db8::8]:5060"])
    }

    @Test func `it is over when everything failed, and says what of`() {
        var runner = Runner()
        runner.answer(.v6, "2001:db8::7")
        runner.answer(.v4, "198.51.100.7")
        runner.run(until: 300)
        _ = runner.race.failed(1, .networkUnreachable)
        _ = runner.race.failed(2, .refused)
        runner.run(until: 300)
        #expect(runner.isOver)
        #expect(runner.race.miss?.failure == .refused)
        #expect(runner.race.miss?.remote.description == "198.51.100.7:5060")
    }

    @Test func `each attempt has its own deadline`() {
        var runner = Runner()
        runner.answer(.v6, "2001:db8::7")
        runner.answer(.v4, "198.51.100.7")
        runner.run(until: 10_100)
        #expect(runner.race.running.map(\.epoch) == [2])
        runner.run(until: 10_300)
        #expect(runner.isOver)
        #expect(runner.race.miss?.failure == .timedOut)
    }

    @Test func `while an answer may come it is not over`() {
        var runner = Runner()
        runner.answer(.v6)
        runner.run(until: 5000)
        #expect(!runner.isOver)
        runner.answer(.v4)
        runner.run(until: 5000)
        #expect(runner.isOver)
        #expect(runner.race.miss == nil)
    }

    @Test func `the second service has its turn after the first one's addresses`() {
        var runner = Runner(ports: [5060, 5070])
        runner.answer(.v4, of: 1, "198.51.100.8")
        runner.answer(.v6, of: 1)
        runner.answer(.v4, of: 0, "198.51.100.7")
        runner.answer(.v6, of: 0)
        runner.run(until: 1000)
        #expect(runner.starts == ["0 198.51.100.7:5060", "250 198.51.100.8:5070"])
    }

    @Test func `a service whose names are not answered holds the next one up for a moment only`() {
        var runner = Runner(ports: [5060, 5070])
        runner.answer(.v4, of: 1, "198.51.100.8")
        runner.answer(.v6, of: 1)
        runner.run(until: 1000)
        #expect(runner.starts == ["250 198.51.100.8:5070"])
        runner.answer(.v4, of: 0, "198.51.100.7")
        runner.run(until: 2000)
        #expect(runner.starts.last == "1000 198.51.100.7:5060")
    }

    @Test func `no endpoint is tried twice, and no more than eight are`() {
        var runner = Runner(ports: [5060, 5060])
        runner.answer(.v6)
        runner.answer(.v4, "198.51.100.1", "198.51.100.2", "198.51.100.3", "198.51.100.4", "198.51.100.5")
        runner.answer(.v6, of: 1)
        runner.answer(
            .v4, of: 1, "198.51.100.1", "198.51.100.6", "198.51.100.7", "198.51.100.8", "198.51.100.9", "198.51.100.10")
        runner.run(until: 9000)
        #expect(runner.starts.count == 8)
        #expect(Set(runner.starts.map { $0.split(separator: " ")[1] }).count == 8)
    }

    @Test func `what cannot be reached is tried last`() throws {
        var race = Race(now: .zero)
        _ = race.expect(port: 5060)
        let (reachable, other) = (try #require(IPAddress("198.51.100.7")), try #require(IPAddress("2001:db8::7")))
        race.answered(.v6, of: 0, with: [.init(other, source: nil)], now: .zero)
        race.answered(.v4, of: 0, with: [.init(reachable, source: IPAddress("192.0.2.1"))], now: .zero)
        let step1 = race.step(now: .zero)
        #expect(
            step1 == .start(.init(remote: Endpoint(address: reachable, port: 5060), source: IPAddress("192.0.2.1"))))
        race.began(
            .init(
                epoch: 1, remote: Endpoint(address: reachable, port: 5060), source: nil, began: .zero,
                deadline: .seconds(10)))
        #expect(race.step(now: .milliseconds(100)) == .wait(until: .milliseconds(250)))
        #expect(
            race.step(now: .milliseconds(250))
                == .start(.init(remote: Endpoint(address: other, port: 5060), source: nil)))
    }

    @Test func `one address is tried at once, and nothing is waited for`() throws {
        let address = try #require(IPAddress("198.51.100.7"))
        var race = Race(now: .seconds(7))
        race.add(.init(address, source: nil), port: 5060, now: .seconds(7))
        #expect(
            race.step(now: .seconds(7)) == .start(.init(remote: Endpoint(address: address, port: 5060), source: nil)))
        race.began(
            .init(
                epoch: 1, remote: Endpoint(address: address, port: 5060), source: nil, began: .seconds(7),
                deadline: .seconds(17)))
        #expect(race.step(now: .seconds(8)) == .wait(until: .seconds(17)))
    }
}
