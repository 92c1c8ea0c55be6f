// SPDX-License-Identifier: Apache-2.0

/// What a collector gets (RFC 9112). The connection ends after it, so a body may be as long as it likes.
package struct ScrapeResponse: Error, Hashable, Sendable {
    /// Why there are no metrics.
    package enum Trouble: Hashable, Sendable {
        /// The request is none.
        case malformed
        /// It is longer than is read.
        case tooLarge
        /// It did not come in time.
        case tooSlow
        /// Another version of HTTP.
        case version
        /// Something else is asked for than the metrics.
        case notFound
        /// Something is to be done with the metrics but read them.
        case method
        /// The agent does not run, or not yet again, or did not answer in time; what came back.
        case unavailable(String)
        /// The agent refuses; what it said.
        case refused(String)
    }

    private let status: String
    private let fields: [String]
    private let body: String
    private let isHead: Bool

    /// The metrics, for a request.
    package static func metrics(_ text: String, for request: ScrapeRequest) -> ScrapeResponse {
        .init(
            status: "200 OK", fields: ["Content-Type: \(request.format.mediaType)"], body: text,
            isHead: request.method == .head)
    }

    /// The answer to a request for which there are none.
    ///
    /// - Parameter isHead: whether only the head of the answer is wanted.
    package static func error(_ trouble: Trouble, isHead: Bool = false) -> ScrapeResponse {
        .init(
            status: trouble.status, fields: trouble.fields + ["Content-Type: text/plain; charset=utf-8"],
            body: trouble.text + "\n", isHead: isHead)
    }

    /// The bytes of it.
    package var bytes: [UInt8] {
        let head =
            ["HTTP/1.1 \(status)"] + fields + [
                "Content-Length: \(body.utf8.count)", "Cache-Control: no-store", "Connection: close",
            ]
        return Array("\(head.joined(separator: "\r\n"))\r\n\r\n\(isHead ? "" : body)".utf8)
    }
}

extension ScrapeResponse.Trouble {
    /// The code and the phrase of RFC 9110, section 15, and RFC 6585.
    fileprivate var status: String {
        switch self {
        case .malformed: "400 Bad Request"
        case .tooLarge: "431 Request Header Fields Too Large"
        case .tooSlow: "408 Request Timeout"
        case .version: "505 HTTP Version Not Supported"
        case .notFound: "404 Not Found"
        case .method: "405 Method Not Allowed"
        case .unavailable: "503 Service Unavailable"
        case .refused: "500 Internal Server Error"
        }
    }

    fileprivate var fields: [String] {
        guard case .method = self else { return [] }
        return ["Allow: \(ScrapeRequest.Method.allCases.map(\.rawValue).joined(separator: ", "))"]
    }

    fileprivate var text: String {
        switch self {
        case .malformed: "This is no request of HTTP/1.1."
        case .tooLarge: "The request is longer than \(ScrapeRequest.longest) bytes."
        case .tooSlow: "The request did not come in time."
        case .version: "Only HTTP/1.1 and HTTP/1.0 are spoken here."
        case .notFound: "Only \(ScrapeRequest.path) is here."
        case .method: "The metrics can only be read: GET or HEAD."
        case .unavailable(let reason), .refused(let reason): reason
        }
    }
}
