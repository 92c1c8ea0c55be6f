// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import Glibc
import Testing

struct SystemErrorTests {
    @Test(arguments: [
        (ECONNREFUSED, "Connection refused"), (ENETUNREACH, "Network is unreachable"),
        (EHOSTUNREACH, "No route to host"), (99_999, "error 99999"), (-1, "error -1"),
    ])
    func `the text is the kernels`(code: CInt, text: String) {
        let error = SystemError("connecting to 192.0.2.7", code: code)
        #expect(error.text == text)
        #expect("\(error)" == "connecting to 192.0.2.7: \(text)")
    }

    @Test func `the last error is the threads`() {
        errno = EADDRINUSE
        #expect(SystemError.last("binding") == SystemError("binding", code: EADDRINUSE))
    }

    @Test func `an interrupted call is repeated`() throws {
        var results: [CInt] = [-1, -1, 7]
        let result = try retryingInterrupts("reading") {
            errno = EINTR
            return results.removeFirst()
        }
        #expect(result == 7)
        #expect(results.isEmpty)
    }

    @Test func `an error of another kind is thrown at once`() {
        var calls = 0
        #expect(throws: SystemError("reading", code: EIO)) {
            try retryingInterrupts("reading") { () -> Int in
                calls += 1
                errno = EIO
                return -1
            }
        }
        #expect(calls == 1)
    }

    /// Making the text of the operation may itself set `errno`.
    @Test func `the error is that of the call not of its description`() {
        func name() -> String {
            errno = ENOENT
            return "reading"
        }
        #expect(throws: SystemError("reading", code: EIO)) {
            try retryingInterrupts(name()) { () -> CInt in
                errno = EIO
                return -1
            }
        }
    }

    @Test func `a success names nothing`() throws {
        var wasNamed = false
        func name() -> String {
            wasNamed = true
            return ""
        }
        try retryingInterrupts(name()) { 0 }
        #expect(!wasNamed)
    }
}
