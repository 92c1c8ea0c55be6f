// SPDX-License-Identifier: Apache-2.0

import DialtoneTestSupport
import Testing

@testable import DialtonePresentation

/// A scrape by HTTP.
@Suite struct ScrapeTests {
    private func read(_ text: String) -> ScrapeRequest.Reading { ScrapeRequest.read(Array(text.utf8)) }

    private func request(_ head: String, _ fields: String...) -> ScrapeRequest? {
        let text = ([head, "Host: 127.0.0.1:20910"] + fields).map { $0 + "\r\n" }.joined() + "\r\n"
        guard case .request(let request) = read(text) else { return nil }
        return request
    }

    /// What a request is refused with, by the first line of the answer.
    private func refusal(_ text: String) -> String? {
        guard case .refused(let response) = read(text) else { return nil }
        return String(decoding: response.bytes.prefix { $0 != 13 }, as: UTF8.self)
    }

    @Test func `the metrics can be had, or their head alone`() {
        #expect(request("GET /metrics HTTP/1.1")?.method == .get)
        #expect(request("HEAD /metrics HTTP/1.1")?.method == .head)
        #expect(request("GET /metrics?name[]=up HTTP/1.1")?.method == .get)
        #expect(request("GET http://machine:20910/metrics HTTP/1.1")?.method == .get, "RFC 9112, section 3.2.2")
        #expect(read("GET /metrics HTTP/1.0\r\n\r\n") != .unfinished, "which needs no host")
        #expect(read("\r\nGET /metrics HTTP/1.1\nhost:a\n\n") != .unfinished, "lines may end with LF alone")
    }

    @Test func `a request that is not all there is waited for, up to a limit`() {
        let whole = "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n"
        for length in 0..<whole.count { #expect(read(String(whole.prefix(length))) == .unfinished, "\(length)") }
        let long = "GET /metrics HTTP/1.1\r\n" + String(repeating: "A", count: ScrapeRequest.longest)
        #expect(refusal(String(long.prefix(ScrapeRequest.longest))) == "HTTP/1.1 431 Request Header Fields Too Large")
    }

    @Test(arguments: [
        ("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "404 Not Found"),
        ("GET /metrics/x HTTP/1.1\r\nHost: a\r\n\r\n", "404 Not Found"),
        ("GET http://metrics HTTP/1.1\r\nHost: a\r\n\r\n", "404 Not Found"),
        ("POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", "405 Method Not Allowed"),
        ("get /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "405 Method Not Allowed"),
        ("GET /metrics HTTP/2.0\r\nHost: a\r\n\r\n", "505 HTTP Version Not Supported"),
        ("GET /metrics\r\n\r\n", "400 Bad Request"),
        ("GET  /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "400 Bad Request"),
        ("GET /metrics HTTP/1.1\r\n\r\n", "400 Bad Request"),
        ("GET /metrics HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400 Bad Request"),
        ("GET /metrics HTTP/1.1\r\nHost : a\r\n\r\n", "400 Bad Request"),
        ("GET /metrics HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", "400 Bad Request"),
        ("\u{16}\u{3}\u{1}\u{2}\r\n\r\n", "400 Bad Request"),
    ])
    func `what cannot be answered gets an error`(text: String, status: String) {
        #expect(refusal(text) == "HTTP/1.1 \(status)")
    }

    @Test(arguments: [
        // Prometheus 2.42, and 3.
        (
            "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
                + "text/plain;version=0.0.4;q=0.5,*/*;q=0.1", ExpositionFormat.openMetrics
        ),
        (
            "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.3",
            .openMetrics
        ),
        ("text/plain;version=0.0.4;q=0.9, application/openmetrics-text; version=\"1.0.0\"; q=0.2", .prometheus),
        ("application/openmetrics-text;version=2.0.0", .prometheus), ("application/openmetrics-text;q=0", .prometheus),
        ("application/openmetrics-text;q=x", .prometheus), ("*/*", .prometheus), ("", .prometheus),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", .prometheus),
    ])
    func `the collector says which format it wants`(accept: String, format: ExpositionFormat) {
        #expect(request("GET /metrics HTTP/1.1", "Accept: \(accept)")?.format == format)
    }

    @Test func `an answer says how long it is, and that it is the last`() throws {
        let request = try #require(self.request("GET /metrics HTTP/1.1"))
        let answer = ScrapeResponse.metrics("a{b=\"ä\"} 1\n", for: request)
        #expect(
            String(decoding: answer.bytes, as: UTF8.self)
                == [
                    "HTTP/1.1 200 OK", "Content-Type: text/plain; version=0.0.4; charset=utf-8", "Content-Length: 12",
                    "Cache-Control: no-store", "Connection: close", "", "a{b=\"ä\"} 1\n",
                ].joined(separator: "\r\n"))
        let head = try #require(self.request("HEAD /metrics HTTP/1.1"))
        let short = String(decoding: ScrapeResponse.metrics("a 1\n", for: head).bytes, as: UTF8.self)
        #expect(short.contains("Content-Length: 4\r\n") && short.hasSuffix("\r\n\r\n"), "\(short)")
        let refusal = ScrapeResponse.error(.method).bytes
        #expect(String(decoding: refusal, as: UTF8.self).contains("\r\nAllow: GET, HEAD\r\n"))
    }

    @Test(arguments: seeds(4)) func `bytes in any pieces come to the same as at once`(seed: UInt64) {
        var random = SplitMix64(seed: seed)
        let words = [
            "GET", " ", "/metrics", "HTTP/1.1", "\r\n", "Host:", "a", "\r\n\r\n", "Accept:", ":", "\u{0}", "\n",
        ]
        for _ in 0..<5000 {
            let text = (0..<random.below(16)).map { _ in words[random.below(words.count)] }.joined()
            let bytes = Array(text.utf8)
            let whole = ScrapeRequest.read(bytes)
            for length in 0..<bytes.count {
                let reading = ScrapeRequest.read(Array(bytes.prefix(length)))
                #expect(reading == .unfinished || reading == whole, "\(text.debugDescription) at \(length)")
            }
        }
    }
}
