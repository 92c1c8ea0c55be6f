// SPDX-License-Identifier: Apache-2.0

internal import CDialtonePlatform
internal import Glibc

/// A refusal by the kernel, with what was being done and the kernel's own number and words for it.
public struct SystemError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What was tried, in the gerund: "binding the socket to 192.0.2.7".
    public let operation: String
    /// The kernel's `errno`.
    public let code: CInt

    /// An error from an explicit error number.
    public init(_ operation: String, code: CInt) {
        self.operation = operation
        self.code = code
    }

    /// An error from the calling thread's `errno`. Call it before anything else that may set `errno`.
    package static func last(_ operation: String) -> SystemError {
        SystemError(operation, code: errno)
    }

    /// The kernel's text for ``code``: "Connection refused".
    public var text: String { Self.text(code) }

    /// The kernel's text for an error number.
    package static func text(_ code: CInt) -> String {
        strerrordesc_np(code).map { String(cString: $0) } ?? "error \(code)"
    }

    /// What was tried and what came back, for the end of a sentence.
    public var description: String { "\(operation): \(text)" }
}

/// Calls `body` until it returns something other than `-1` with `EINTR`; throws what it failed with.
@discardableResult
package func retryingInterrupts<T: SignedInteger>(
    _ operation: @autoclosure () -> String, _ body: () -> T
) throws(SystemError) -> T {
    while true {
        let result = body()
        if result != -1 { return result }
        let code = errno
        if code != EINTR { throw SystemError(operation(), code: code) }
    }
}
