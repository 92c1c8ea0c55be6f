// SPDX-License-Identifier: Apache-2.0

/// What a collector asks by HTTP/1.1 (RFC 9112): as much of the protocol as it takes to answer one request for one
/// document, and then to close.
package struct ScrapeRequest: Hashable, Sendable {
    /// What may be asked of the document.
    package enum Method: String, Hashable, Sendable, CaseIterable {
        case get = "GET"
        case head = "HEAD"
    }

    /// Where the metrics are.
    package static let path = "/metrics"

    /// The most that is read of a request. Prometheus sends some 400 bytes; a proxy may add as much again.
    package static let longest = 8192

    /// What is asked.
    package let method: Method
    /// In which format the answer is wanted.
    package let format: ExpositionFormat

    /// What the bytes that came are.
    package enum Reading: Hashable, Sendable {
        /// The beginning of a request.
        case unfinished
        /// A request that can be answered.
        case request(ScrapeRequest)
        /// One that is answered with an error.
        case refused(ScrapeResponse)
    }

    /// Reads what came so far.
    package static func read(_ bytes: [UInt8]) -> Reading {
        // RFC 9112, section 2.2: empty lines before a request are passed over.
        let request = bytes.drop { $0 == UInt8(ascii: "\r") || $0 == UInt8(ascii: "\n") }
        guard let lines = lines(of: request) else {
            return bytes.count < longest ? .unfinished : .refused(.error(.tooLarge))
        }
        do throws(ScrapeResponse) {
            return .request(try ScrapeRequest(lines))
        } catch {
            return .refused(error)
        }
    }

    /// The lines before the empty one that ends the head; `nil` before that has come. A line may end with LF alone
    /// (RFC 9112, section 2.2).
    private static func lines(of bytes: ArraySlice<UInt8>) -> [ArraySlice<UInt8>]? {
        var (lines, rest) = ([ArraySlice<UInt8>](), bytes)
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            var line = rest[..<end]
            if line.last == UInt8(ascii: "\r") { line = line.dropLast() }
            if line.isEmpty { return lines }
            lines.append(line)
            rest = rest[(end + 1)...]
        }
        return nil
    }

    private init(_ lines: [ArraySlice<UInt8>]) throws(ScrapeResponse) {
        let words = lines[0].split(separator: UInt8(ascii: " "), omittingEmptySubsequences: false).map(Self.text)
        guard words.count == 3, words[2].hasPrefix("HTTP/") else { throw .error(.malformed) }
        guard ["HTTP/1.0", "HTTP/1.1"].contains(words[2]) else { throw .error(.version) }
        var accepted: [String] = []
        var hosts = 0
        for line in lines.dropFirst() {
            guard let field = HeaderField(line) else { throw .error(.malformed) }
            if field.name == "accept" { accepted.append(field.value) }
            if field.name == "host" { hosts += 1 }
        }
        // RFC 9112, section 3.2.
        guard hosts == 1 || hosts == 0 && words[2] == "HTTP/1.0" else { throw .error(.malformed) }
        guard Self.path(of: words[1]) == Self.path else {
            throw .error(.notFound, isHead: words[0] == Method.head.rawValue)
        }
        guard let method = Method(rawValue: words[0]) else { throw .error(.method) }
        self.method = method
        format = AcceptedFormats(accepted).best
    }

    /// The path of a request's target, which may be a whole URL (RFC 9112, section 3.2).
    private static func path(of target: String) -> String {
        var path = target[...]
        if let scheme = ["http://", "https://"].first(where: { path.lowercased().hasPrefix($0) }) {
            path = path.dropFirst(scheme.count).drop { $0 != "/" && $0 != "?" }
        }
        return String(path.prefix { $0 != "?" })
    }

    private static func text(_ bytes: some Collection<UInt8>) -> String { String(decoding: bytes, as: UTF8.self) }
}

/// One field of a request's head (RFC 9112, section 5).
private struct HeaderField {
    /// In lower case.
    let name: String
    let value: String

    init?(_ line: ArraySlice<UInt8>) {
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { return nil }
        let name = line[..<colon]
        // The characters of a token (RFC 9110, section 5.6.2): no blank before the colon, and no continued line.
        let isToken = name.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"):
                true
            default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
            }
        }
        guard !name.isEmpty, isToken else { return nil }
        self.name = String(decoding: name, as: UTF8.self).lowercased()
        value = String(decoding: line[(colon + 1)...], as: UTF8.self)
    }
}

/// Which formats a collector takes, and which one it likes best (RFC 9110, section 12.5.1).
private struct AcceptedFormats {
    private var openMetrics = 0.0
    private var text = 0.0

    init(_ values: [String]) {
        for range in values.flatMap({ $0.split(separator: ",") }) {
            let parts = range.split(separator: ";").map { part in
                String(part.filter { $0 != " " && $0 != "\t" }).lowercased()
            }
            guard let type = parts.first else { continue }
            var (weight, version) = (1.0, String?.none)
            for part in parts.dropFirst() {
                if part.hasPrefix("q=") { weight = Double(part.dropFirst(2)) ?? 0 }
                if part.hasPrefix("version=") { version = part.dropFirst(8).filter { $0 != "\"" } }
            }
            switch type {
            case "application/openmetrics-text" where version == nil || version == "1.0.0":
                openMetrics = max(openMetrics, weight)
            case "text/plain" where version == nil || version == "0.0.4": text = max(text, weight)
            default: break
            }
        }
    }

    /// OpenMetrics only for a collector that asks for it: a browser or curl shows plain text.
    var best: ExpositionFormat { openMetrics > 0 && openMetrics >= text ? .openMetrics : .prometheus }
}
