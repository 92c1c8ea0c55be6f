// SPDX-License-Identifier: Apache-2.0

import CDialtonePlatform
import DialtoneConnection
import DialtoneTLSTestSupport
import Foundation
import Testing

@testable import DialtoneTLS

/// What an idle session costs. Not a test: run it alone, with `DIALTONE_BENCH=1` in the environment.
@Suite(
    .serialized, .enabled(if: getenv("DIALTONE_BENCH") != nil, "a measurement: run it alone, with DIALTONE_BENCH=1"))
struct MemoryFixture {
    private static let sessions = 4000

    @Test(arguments: TLSPolicy.Version.allCases)
    func `an idle session`(version: TLSPolicy.Version) throws {
        let surroundings = Surroundings()
        // As of a public server: an intermediate between its certificate and the authority.
        let middle = TestCertificate(.authority("Middle"), issuer: surroundings.authority)
        let certificate = TestCertificate(.init("x", alternatives: "DNS:\(Surroundings.name)"), issuer: middle)
        var settings = TestServer.Settings()
        settings.versions = version.number...version.number
        let server = TestServer(certificate, settings)
        let policy = surroundings.policy
        let context = try TLSContext(policy)
        var kept: [(TLSSession, TLSResumption)] = []
        func open(_ count: Int, again: Bool) throws {
            for index in 0..<count {
                let resumption = again ? kept[index].1 : TLSResumption()
                let link = try surroundings.link(policy, server: server, in: context, resuming: resumption)
                link.run()
                try #require(link.client.summary?.isResumed == again)
                if again { kept[index].0 = link.client } else { kept.append((link.client, resumption)) }
            }
        }
        try open(Self.sessions / 4, again: false)
        let before = try residentBytes()
        try open(Self.sessions, again: false)
        let after = try residentBytes()
        print("TLS \(version.rawValue): \((after - before) / Self.sessions) bytes an idle session with its tickets")
        for (_, resumption) in kept { resumption.forget() }
        print("TLS \(version.rawValue): \((after - (try residentBytes())) / kept.count) of them the tickets")
    }

    /// What of this process's heap is in memory, after its free pages went back.
    private func residentBytes() throws -> Int {
        malloc_trim(0)
        let text = try String(contentsOfFile: "/proc/self/smaps_rollup", encoding: .utf8)
        let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("Private_Dirty:") })
        return try #require(line.split(separator: " ").dropFirst().first.flatMap { Int($0) }) * 1024
    }
}
