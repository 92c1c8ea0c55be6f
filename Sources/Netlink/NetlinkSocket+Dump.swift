// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneNetlink
internal import DialtonePlatform

extension NetlinkSocket {
    /// How a dump ended.
    enum DumpEnd {
        /// It was read to its end.
        case complete
        /// It was read to its end and may be inconsistent: something changed, or was lost, on the way.
        case interrupted
        /// Its reader had enough. The kernel refuses another dump on this socket (`EBUSY`) until this one is read to
        /// its end: close the socket.
        case abandoned
    }

    /// Sends `request` and hands its answers to `take`, until that returns false or there are no more.
    ///
    /// - Throws: the kernel's refusal, as the error of `operation`.
    func dump(
        _ request: NetlinkRequest, _ operation: String, _ take: (NetlinkMessage) -> Bool
    ) throws(SystemError) -> DumpEnd {
        let sequence = try send(request)
        var isComplete = true
        while true {
            switch try receive() {
            case .overrun: isComplete = false
            case .empty: return .interrupted
            case .messages(let datagram):
                var (isDone, isEnough) = (false, false)
                var refusal: CInt?
                NetlinkMessage.forEach(in: datagram) { message in
                    guard message.sequence == sequence, !isEnough else { return }
                    if message.isInterruptedDump { isComplete = false }
                    if let code = message.errorCode {
                        refusal = code
                    } else if message.type == NLMSG_DONE {
                        isDone = true
                    } else if !take(message) {
                        isEnough = true
                    }
                }
                if let refusal { throw SystemError(operation, code: refusal) }
                if isEnough { return .abandoned }
                if isDone { return isComplete ? .complete : .interrupted }
            }
        }
    }

    /// Sends `request` and hands its one answer to `read`; `nil` where the kernel refuses it or has none.
    func ask<T>(_ request: NetlinkRequest, _ read: (NetlinkMessage) -> T?) throws(SystemError) -> T? {
        let sequence = try send(request)
        var result: T?
        var isAnswered = false
        // An answer to an earlier request that nobody waited for may lie before the one to this.
        while !isAnswered, case .messages(let datagram) = try receive() {
            NetlinkMessage.forEach(in: datagram) { message in
                guard message.sequence == sequence else { return }
                isAnswered = true
                result = read(message)
            }
        }
        return result
    }
}
