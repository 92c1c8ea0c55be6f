// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Varlink

@Suite struct CallShapeTests {
    private func violation(_ text: String) -> VarlinkViolation? {
        do throws(VarlinkViolation) {
            _ = try VarlinkCall(Array(text.utf8))
            return nil
        } catch {
            return error
        }
    }

    @Test func nestingIsBounded() {
        func call(_ depth: Int) -> String {
            let (open, close) = (String(repeating: "[", count: depth), String(repeating: "]", count: depth))
            return #"{"method":"a.b.C","x":\#(open)\#(close)}"#
        }
        #expect(violation(call(CallShape.deepest - 1)) == nil)
        #expect(violation(call(CallShape.deepest)) == .nestedTooDeep(limit: CallShape.deepest))
        #expect(violation(call(30_000)) == .nestedTooDeep(limit: CallShape.deepest))
    }

    @Test func membersAndValuesAreBounded() {
        let members = (0..<4800).map { "\"k\($0)\":1" }.joined(separator: ",")
        #expect(violation("{\"method\":\"a.b.C\",\(members)}") == .tooManyValues(limit: CallShape.mostMembers))
        let values = [String](repeating: "1", count: 5000).joined(separator: ",")
        #expect(violation("{\"method\":\"a.b.C\",\"x\":[\(values)]}") == .tooManyValues(limit: CallShape.mostValues))
    }

    @Test func whatStandsInAStringCountsNot() {
        let text = String(repeating: #"[{\":,\\"#, count: 5000)
        #expect(violation("{\"method\":\"a.b.C\",\"x\":\"\(text)\"}") == nil)
    }
}
