// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneClient
internal import DialtonePlatform
internal import DialtonePresentation
internal import DialtoneVarlink
internal import Glibc

/// One scrape, on the socket that is the standard input and output: a request is read, the agent asked, the answer
/// written, and that is all. The service manager starts such a process for each connection.
enum ScrapeAnswer {
    /// How long a collector may take to send its request, a line at a time or all at once.
    private static let requestTime = Duration.seconds(5)
    /// How long the agent may take: with the request's, less than Prometheus waits by default (`scrape_timeout`, 10 s).
    private static let agentTime = Duration.seconds(4)
    /// How long the answer is waited for to be taken, and how much of what a collector still sends is thrown away.
    private static let farewellTime = Duration.seconds(2)
    private static let farewellBytes = 65_536

    /// Answers the request on the standard input.
    static func run() async throws {
        let response: ScrapeResponse
        switch try read() {
        case .request(let request): response = await answer(request)
        case .refused(let refusal): response = refusal
        // The collector hung up.
        case .unfinished: return
        }
        Output.write(bytes: response.bytes)
        sayFarewell()
    }

    private static func answer(_ request: ScrapeRequest) async -> ScrapeResponse {
        do {
            let reply = try await DialtoneClient().call(
                ConnectionsAPI.Metrics.self, VarlinkEmpty(), timeout: agentTime)
            return .metrics(MetricsText(reply).text(request.format), for: request)
        } catch {
            let trouble = error.isPassing ? ScrapeResponse.Trouble.unavailable : ScrapeResponse.Trouble.refused
            return .error(trouble(error.description), isHead: request.method == .head)
        }
    }

    /// Reads a request, as much as there is of it in time.
    private static func read() throws(SystemError) -> ScrapeRequest.Reading {
        let end = BootClock.now() + requestTime
        var bytes: [UInt8] = []
        while true {
            guard try isReadable(until: end) else { return .refused(.error(.tooSlow)) }
            let piece = try readSome(atMost: ScrapeRequest.longest - bytes.count)
            if piece.isEmpty { return .unfinished }
            bytes += piece
            let reading = ScrapeRequest.read(bytes)
            if reading != .unfinished { return reading }
        }
    }

    /// Ends the answer, and reads what the collector still sends: were the socket closed over it, the kernel would
    /// reset the connection, and the answer could be lost (RFC 9112, section 9.6).
    private static func sayFarewell() {
        guard shutdown(STDOUT_FILENO, CInt(SHUT_WR)) == 0 else { return }
        let end = BootClock.now() + farewellTime
        var rest = farewellBytes
        while rest > 0, (try? isReadable(until: end)) == true {
            guard let count = try? readSome(atMost: min(rest, 4096)).count, count > 0 else { return }
            rest -= count
        }
    }

    private static func isReadable(until end: Duration) throws(SystemError) -> Bool {
        let rest = max(end - BootClock.now(), .zero)
        var descriptor = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
        return try retryingInterrupts("waiting for a request") {
            poll(&descriptor, 1, CInt(rest / .milliseconds(1)))
        } > 0
    }

    private static func readSome(atMost limit: Int) throws(SystemError) -> [UInt8] {
        var failure: SystemError?
        let bytes = [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
            do throws(SystemError) {
                count = try retryingInterrupts("reading a request") {
                    Glibc.read(STDIN_FILENO, buffer.baseAddress, limit)
                }
            } catch {
                failure = error
            }
        }
        if let failure { throw failure }
        return bytes
    }
}
