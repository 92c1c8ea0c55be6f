// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import Glibc

/// Two descriptors that one call makes: the ends of a pipe (reading end first), or of a socket pair.
struct DescriptorPair: ~Copyable {
    let first: OwnedDescriptor
    let second: OwnedDescriptor

    init(_ operation: String, _ make: (UnsafeMutablePointer<CInt>) -> CInt) throws(SystemError) {
        var numbers: (CInt, CInt) = (-1, -1)
        let result = withUnsafeMutableBytes(of: &numbers) { bytes in
            bytes.withMemoryRebound(to: CInt.self) { numbers in numbers.baseAddress.map(make) ?? -1 }
        }
        guard result == 0 else { throw .last(operation) }
        first = OwnedDescriptor(numbers.0)
        second = OwnedDescriptor(numbers.1)
    }
}

/// Cuts what comes out of a pipe into lines.
@AgentQueue
final class LineReader {
    private let handler: @AgentQueue (String) -> Void
    private var descriptor: OwnedDescriptor?
    private var registration: Poller.Registration?
    private var rest: [UInt8] = []

    /// Reads `descriptor` and calls `handler` with each line.
    ///
    /// By the poller and not by a Dispatch source of its own: libdispatch lets go of a source whose pipe has hung up
    /// on a worker thread while its manager thread may be reading the list it stands in, and crashes now and then.
    init(_ descriptor: consuming OwnedDescriptor, _ handler: @escaping @AgentQueue (String) -> Void) throws {
        self.handler = handler
        let number = descriptor.number
        _ = fcntl(number, F_SETFL, O_NONBLOCK)
        self.descriptor = consume descriptor
        registration = try Poller.shared.register(number, .readable) { [weak self] _ in self?.drain() }
    }

    /// Reads what there is, hands over the last line even if it has no end, and lets go of the pipe.
    func finish() {
        drain()
        end()
    }

    private func drain() {
        guard let number = descriptor?.number else { return }
        var count = 1
        while count > 0 {
            withUnsafeTemporaryAllocation(byteCount: 65_536, alignment: 1) { buffer in
                count = read(number, buffer.baseAddress, buffer.count)
                if count > 0 { rest += buffer.prefix(count) }
            }
        }
        cutLines()
        if count == 0 { end() }
    }

    private func end() {
        guard let registration else { return }
        registration.cancel()
        self.registration = nil
        descriptor = nil
        if !rest.isEmpty { handler(String(decoding: rest, as: UTF8.self)) }
    }

    private func cutLines() {
        let lines = rest.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
        for line in lines.dropLast() { handler(String(decoding: line, as: UTF8.self)) }
        rest = Array(lines.last ?? [])
    }
}
