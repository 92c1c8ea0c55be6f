// SPDX-License-Identifier: Apache-2.0

@testable internal import DialtonePresentation

extension FuzzTarget {
    /// What a collector, or anybody who reaches the port, sends to be answered with metrics.
    static let scrapes = FuzzTarget(name: "scrapes") { bytes in
        let whole = ScrapeRequest.read(bytes)
        // It comes in pieces: what is a request with less of it, stays that with more.
        let some = ScrapeRequest.read(Array(bytes.prefix(bytes.count / 2)))
        precondition(some == .unfinished || some == whole, "\(some), and then \(whole)")
        switch whole {
        case .unfinished: precondition(bytes.count < ScrapeRequest.longest)
        case .request(let request): check(ScrapeResponse.metrics("a 1\n", for: request).bytes)
        case .refused(let refusal): check(refusal.bytes)
        }
    }

    /// Nothing that came stands in the head of an answer.
    private static func check(_ answer: [UInt8]) {
        precondition(answer.starts(with: "HTTP/1.1 ".utf8))
        let lines = String(decoding: answer, as: UTF8.self).split(separator: "\r\n", omittingEmptySubsequences: false)
        let fields = lines.dropFirst().prefix { !$0.isEmpty }.map { $0.prefix { $0 != ":" } }
        precondition(fields.contains("Content-Length") && fields.last == "Connection", "\(fields)")
    }
}
