// SPDX-License-Identifier: Apache-2.0

import DialtoneNetlink
import DialtoneNetworkPath
import DialtoneTestSupport
import Foundation
import Testing

@testable import Reachability

/// Each file of `Recordings` is a test: what was recorded is what this program says. See `docs/recording.md`.
@Suite struct ReplayTests {
    private static let folder = Bundle.module.url(forResource: "Recordings", withExtension: nil)?.path ?? ""

    private static let names: [String] =
        ((try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []).filter { $0.hasSuffix(".pcapng") }
        .sorted()

    @Test func `there are recordings`() {
        #expect(Set(Self.names).isSuperset(of: ["changes.pcapng", "overrun.pcapng"]))
    }

    @Test(arguments: names) func `the verdicts are those that were given`(name: String) throws {
        let replay = try Self.replay(name)
        #expect(!replay.changes.isEmpty)
        #expect(replay.deviations.isEmpty, "\(replay.deviations)")
    }

    @Test func `a session of changes is told in order`() throws {
        let told = try Self.replay("changes.pcapng").changes.filter { $0.question.description == "203.0.113.10:1883" }
        let steps = told.map { Step($0.path) }
        #expect(
            steps.removingRepeats == [
                Step(interface: "wan0", source: "192.0.2.2"),
                Step(interface: "wan0", source: "192.0.2.2", reason: .noCarrier),
                Step(interface: "wan0", source: "192.0.2.2"),
                Step(interface: "wan1", source: "198.51.100.2"),
                Step(interface: "wan0", source: "192.0.2.2"),
                Step(interface: "wan0", source: "192.0.2.77"),
                Step(interface: "wan1", source: "198.51.100.2"),
                Step(interface: "wan1", source: "198.51.100.2", isExpensive: true),
                Step(interface: nil, source: nil, reason: .prohibited),
            ])
        #expect(told.first?.changes == [] && told[1].changes.contains(.reason))
        #expect(zip(told, told.dropFirst()).allSatisfy { $0.time < $1.time })
    }

    @Test func `an overrun leaves the state incoherent until it is read again`() throws {
        let paths = try Self.replay("overrun.pcapng").changes.map(\.path)
        let loss = try #require(paths.firstIndex { !$0.isCoherent })
        #expect(paths[..<loss].allSatisfy { $0.status == .satisfied })
        #expect(paths.last?.isCoherent == true && paths.last?.reason == .prohibited)
    }

    @Test func `a verdict that is another than the recorded one is pointed at`() throws {
        let marker = "name=wan1 kind=virtual up=true carrier=true addresses=198.51.100.2/24"
        let bytes = try Self.bytes("changes.pcapng")
        var altered = bytes
        let place = try #require(Data(bytes).range(of: Data(marker.utf8)))
        altered[place.upperBound - 4] = UInt8(ascii: "9")
        let replay = Replay(try Recording(altered))
        let deviation = try #require(replay.deviations.first)
        #expect(deviation.differences.map(\.name) == ["addresses"])
        #expect(deviation.description.hasPrefix("addresses was 198.51.100.9/24"), "\(deviation)")
    }

    @Test func `a lookup that was not recorded gives no verdict, and says so`() throws {
        // The port of the target, in the mark that watches it: the lookups that were recorded are for another.
        var bytes = try Self.bytes("changes.pcapng")
        let place = try #require(Data(bytes).range(of: Data("host=203.0.113.10 port=1883".utf8)))
        bytes[place.upperBound - 1] = UInt8(ascii: "4")
        let replay = Replay(try Recording(bytes))
        #expect(
            replay.changes.contains { $0.question.description == "203.0.113.10:1884" && $0.path.status == .unknown })
        #expect(replay.deviations.contains { $0.differences.contains { $0.name == "status" } })
    }

    @Test(arguments: seeds(2)) func `damage of any kind is survived`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let whole = try Self.bytes("overrun.pcapng")
        for _ in 0..<40 {
            var damaged = whole
            random.damage(&damaged, upTo: 40)
            if random.chance(30) { damaged.removeLast(Int.random(in: 0..<damaged.count, using: &random)) }
            if let recording = try? Recording(damaged) { _ = Replay(recording) }
        }
    }

    private static func replay(_ name: String) throws -> Replay { Replay(try Recording(bytes(name))) }

    private static func bytes(_ name: String) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(filePath: "\(folder)/\(name)")))
    }
}

/// What of a path the story is about.
private struct Step: Hashable {
    var interface: String?
    var source: String?
    var reason: Path.Reason?
    var isExpensive = false
}

extension Step {
    init(_ path: Path) {
        self.init(
            interface: path.interface?.name, source: path.source?.description, reason: path.reason,
            isExpensive: path.isExpensive)
    }
}

extension [Step] {
    fileprivate var removingRepeats: [Step] {
        enumerated().filter { $0.offset == 0 || self[$0.offset - 1] != $0.element }.map(\.element)
    }
}
