// SPDX-License-Identifier: Apache-2.0

import CDialtoneNetlink
import Glibc
import Testing

@testable import DialtoneNetlink

struct ErrorMessageTests {
    /// Long enough that the attributes lie elsewhere when it is quoted whole.
    private static let request = message(
        RTM_GETROUTE, rtmsg(), attribute(Int(RTA_MARK.rawValue), number: 7) + attribute(99, text: "a longer one"))

    @Test(arguments: [true, false])
    func `an error has its number and its words`(isCapped: Bool) {
        let bytes = errorMessage(EPERM, quoting: Self.request, isCapped: isCapped, explanation: "not allowed")
        #expect(decoding(bytes) { $0.errorCode } == [EPERM])
        #expect(decoding(bytes) { $0.explanation } == ["not allowed"])
    }

    @Test(arguments: [true, false])
    func `an error without words has none`(isCapped: Bool) {
        let bytes = errorMessage(EPERM, quoting: Self.request, isCapped: isCapped)
        #expect(decoding(bytes) { $0.errorCode } == [EPERM])
        #expect(decoding(bytes) { $0.explanation }.isEmpty)
    }

    /// Attributes of other types (an offset, a cookie) may come first.
    @Test func `the words are found among other attributes`() {
        let others = attribute(Int(NLMSGERR_ATTR_OFFS.rawValue), number: 20)
        let bytes = message(
            NLMSG_ERROR, -EPERM, flags: NLM_F_CAPPED | NLM_F_ACK_TLVS,
            Array(Self.request[..<16]) + others + attribute(Int(NLMSGERR_ATTR_MSG.rawValue), text: "why"))
        #expect(decoding(bytes) { $0.explanation } == ["why"])
    }

    @Test func `an acknowledgement is error zero`() {
        #expect(decoding(errorMessage(0, quoting: Self.request, isCapped: true)) { $0.errorCode } == [0])
    }

    /// A dump that fails on its way ends with the error in its last message (`netlink_dump_done`): strict checking
    /// refuses so.
    @Test(arguments: [(CInt(0), CInt?.none), (-EINVAL, EINVAL), (-EPERM, EPERM)])
    func `a dump's end may be an error`(status: CInt, code: CInt?) {
        let bytes = message(NLMSG_DONE, status)
        #expect(decoding(bytes) { $0.type == NLMSG_DONE ? .some($0.errorCode) : nil } == [code])
    }

    @Test func `a dump's end without status is no error`() {
        let bytes = Array(message(NLMSG_DONE, CInt(0))[..<16])
        let short = [16, 0, 0, 0] + bytes[4...]
        #expect(decoding(short) { $0.type == NLMSG_DONE ? .some($0.errorCode) : nil } == [nil])
    }

    @Test func `other messages are no errors`() {
        let bytes = linkMessage()
        #expect(decoding(bytes) { $0.errorCode }.isEmpty)
        #expect(decoding(bytes) { $0.explanation }.isEmpty)
    }

    @Test func `an interrupted dump says so`() {
        #expect(decoding(message(RTM_NEWLINK, 0, flags: NLM_F_DUMP_INTR)) { $0.isInterruptedDump } == [true])
        #expect(decoding(message(RTM_NEWLINK, 0, flags: NLM_F_MULTI)) { $0.isInterruptedDump } == [false])
    }

    /// No kernel sends these; nothing that arrives may trap.
    @Test(arguments: [CInt.min, .max, -1, 1])
    func `no error number traps`(number: CInt) {
        #expect(decoding(message(NLMSG_ERROR, number, Self.request)) { $0.errorCode }.count == 1)
        #expect(decoding(message(NLMSG_DONE, number)) { $0.errorCode }.count <= 1)
    }

    @Test(arguments: [UInt32.max, UInt32(Int32.max), UInt32(Int32.max) + 1, 0, 15, 17])
    func `no length of a quoted request traps`(length: UInt32) {
        var quoted = Array(Self.request[..<16])
        quoted.replaceSubrange(0..<4, with: bytes(of: length))
        let words = attribute(Int(NLMSGERR_ATTR_MSG.rawValue), text: "why")
        let bytes = message(NLMSG_ERROR, -EPERM, flags: NLM_F_ACK_TLVS, quoted + words)
        #expect(decoding(bytes) { $0.errorCode } == [EPERM])
        #expect(decoding(bytes) { $0.explanation }.count <= 1)
    }
}
