// SPDX-License-Identifier: Apache-2.0

import DialtoneNetworkPath
import DialtoneResolver
import Testing

@testable import Reachability

/// A record that an expectation may change: the macro takes no mutating call.
private final class Record {
    private var record = NameRecord()

    var answer: Result<Resolution, ResolutionError>? { record.answer }

    func take(_ answer: Result<Resolution, ResolutionError>, for family: IPAddress.Family) -> Bool {
        record.take(answer, for: family)
    }

    func finishRound(now: Duration) -> Duration? { record.finishRound(now: now) }
    func networkChanged() { record.networkChanged() }
}

/// What is known of a name, and when it is asked for again, in virtual time.
struct NameRecordTests {
    private let v4 = IPAddress(v4: 0xC633_6407)
    private let other = IPAddress(v4: 0xC633_6408)
    private let v6 = IPAddress(v6: 0x2001_0db8 << 96 | 7)
    private let noSuchName = ResolutionError(.noSuchName, "no such name")
    private let noAddress = ResolutionError(.noRecord, "no address")
    private let silence = ResolutionError(.noAnswer, "silence")

    /// A round of questions for both families at `now`: an IPv4 answer, and no IPv6 address.
    private func round(
        _ record: Record, _ addresses: [IPAddress], ttl: Duration, now: Duration
    ) -> Duration? {
        let answer = Resolution(addresses: addresses, expires: now + ttl, source: .nameServer)
        _ = record.take(.success(answer), for: .v4)
        _ = record.take(.failure(noAddress), for: .v6)
        return record.finishRound(now: now)
    }

    private func resolution(_ address: IPAddress, expires: Duration = .seconds(60)) -> Resolution {
        Resolution(addresses: [address], expires: expires, source: .nameServer)
    }

    @Test(arguments: [(5, 60), (60, 60), (300, 300), (86_400, 3600)])
    func `a name is asked for again when it expires within a minute and an hour`(ttl: Int, wait: Int) {
        let record = Record()
        #expect(round(record, [v4], ttl: .seconds(ttl), now: .seconds(1000)) == .seconds(1000 + wait))
    }

    @Test func `a name that stays the same is asked for less and less until it changes`() {
        let record = Record()
        var now = Duration.zero
        var waits: [Duration] = []
        for _ in 0..<9 {
            guard let next = round(record, [v4, other], ttl: .seconds(20), now: now) else { break }
            waits.append(next - now)
            now = next
        }
        #expect(waits == [60, 120, 240, 480, 960, 1920, 3600, 3600, 3600].map { .seconds($0) })
        // The order is no change.
        #expect(round(record, [other, v4], ttl: .seconds(20), now: now) == now + .seconds(3600))
        #expect(round(record, [v4], ttl: .seconds(20), now: now) == now + .seconds(60))
        #expect(round(record, [v4], ttl: .seconds(20), now: now) == now + .seconds(120))
        record.networkChanged()
        #expect(round(record, [v4], ttl: .seconds(20), now: now) == now + .seconds(60))
    }

    @Test func `the shortest of both families counts`() {
        let record = Record()
        _ = record.take(.success(resolution(v4, expires: .seconds(400))), for: .v4)
        _ = record.take(.success(resolution(v6, expires: .seconds(200))), for: .v6)
        #expect(record.finishRound(now: .zero) == .seconds(200))
    }

    @Test func `an answer of the hosts file is not asked for again`() {
        let record = Record()
        let entry = Resolution(addresses: [v4], expires: nil, source: .hostsFile)
        #expect(record.take(.success(entry), for: .v4))
        _ = record.take(.failure(noAddress), for: .v6)
        #expect(record.finishRound(now: .zero) == nil)
    }

    @Test(arguments: [(nil, 60), (10, 60), (300, 300), (86_400, 3600)])
    func `an absence is asked for again when its authority says`(ttl: Int?, wait: Int) {
        let record = Record()
        let error = ResolutionError(.noSuchName, "no such name", expires: ttl.map { .seconds($0) })
        #expect(!record.take(.failure(error), for: .v4))
        #expect(record.take(.failure(error), for: .v6))
        #expect(record.answer == .failure(error))
        #expect(record.finishRound(now: .zero) == .seconds(wait))
        #expect(record.finishRound(now: .zero) == max(.seconds(wait), .seconds(120)))
    }

    @Test func `silence is asked into again soon then less`() {
        let record = Record()
        _ = record.take(.failure(silence), for: .v4)
        _ = record.take(.failure(noAddress), for: .v6)
        #expect(record.answer == .failure(silence))
        let waits = (0..<11).map { _ in record.finishRound(now: .zero) }
        #expect(waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300].map { .seconds($0) })
        record.networkChanged()
        #expect(record.finishRound(now: .zero) == .seconds(1))
    }

    @Test func `what is no name is never asked for again`() {
        let record = Record()
        let error = ResolutionError(.malformed, "no name")
        _ = record.take(.failure(error), for: .v4)
        _ = record.take(.failure(error), for: .v6)
        #expect(record.finishRound(now: .zero) == nil)
    }

    @Test func `one family is enough and the other is added when it comes`() throws {
        let record = Record()
        #expect(record.take(.success(resolution(v4)), for: .v4))
        #expect(record.answer == .success(resolution(v4)))
        #expect(record.take(.success(resolution(v6)), for: .v6))
        #expect(try record.answer?.get().addresses == [v6, v4])
        #expect(!record.take(.success(resolution(v6, expires: .seconds(90))), for: .v6))
    }

    @Test func `addresses outlive silence and not their name`() {
        let record = Record()
        _ = record.take(.success(resolution(v4)), for: .v4)
        _ = record.take(.success(resolution(v6)), for: .v6)
        #expect(!record.take(.failure(silence), for: .v6))
        #expect(!record.take(.failure(ResolutionError(.serverFailure, "SERVFAIL")), for: .v4))
        #expect(record.finishRound(now: .seconds(3000)) == .seconds(3060))
        #expect(record.take(.failure(noAddress), for: .v6))
        #expect(record.answer == .success(resolution(v4)))
        #expect(record.take(.failure(noSuchName), for: .v4))
        #expect(record.answer == .failure(noAddress))
    }

    @Test func `one family that failed for now is no reason to hurry`() {
        let record = Record()
        _ = record.take(.success(resolution(v4, expires: .seconds(300))), for: .v4)
        _ = record.take(.failure(silence), for: .v6)
        #expect(record.finishRound(now: .zero) == .seconds(300))
    }
}
