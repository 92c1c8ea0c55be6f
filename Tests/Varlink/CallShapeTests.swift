// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import DialtoneVarlink

@Suite struct CallShapeTests {
    private func violation(_ text: String) -> VarlinkViolation? {
        do throws(VarlinkViolation) {
            _ = try VarlinkCall(Array(text.utf8))
            return nil
        } catch {
            return error
        }
    }

    @Test func `nesting is bounded`() {
        func call(_ depth: Int) -> String {
            let (open, close) = (String(repeating: "[", count: depth), String(repeating: "]", count: depth))
            return #"{"method":"a.b.C","x":\#(open)\#(close)}"#
        }
        #expect(violation(call(CallShape.deepest - 1)) == nil)
        #expect(violation(call(CallShape.deepest)) == .nestedTooDeep(limit: CallShape.deepest))
        #expect(violation(call(30_000)) == .nestedTooDeep(limit: CallShape.deepest))
    }

    @Test func `members and values are bounded`() {
        let members = (0..<4800).map { "\"k\($0)\":1" }.joined(separator: ",")
        #expect(violation("{\"method\":\"a.b.C\",\(members)}") == .tooManyValues(limit: CallShape.mostMembers))
        let values = [String](repeating: "1", count: 5000).joined(separator: ",")
        #expect(violation("{\"method\":\"a.b.C\",\"x\":[\(values)]}") == .tooManyValues(limit: CallShape.mostValues))
    }

    @Test func `what stands in a string counts not`() {
        let text = String(repeating: #"[{\":,\\"#, count: 5000)
        #expect(violation("{\"method\":\"a.b.C\",\"x\":\"\(text)\"}") == nil)
    }

    /// Marks of two classes in the wrong order, raw, as escapes and beyond U+FFFF: to compare such texts took seconds.
    @Test(
        arguments: [
            ("\u{301}", "\u{316}"), ("\\u0301", "\\u0316"), ("\u{301}", "\\u0316"), ("\u{1D165}", "\\ud834\\udd66"),
        ])
    func `marks in a row are bounded`(above: String, below: String) {
        func call(_ count: Int) -> String {
            let marks = String(repeating: above, count: count / 2) + String(repeating: below, count: count - count / 2)
            return #"{"method":"a.b.C","x":"a\#(marks)b\#(marks)"}"#
        }
        #expect(violation(call(StreamSafe.mostMarks)) == nil)
        #expect(violation(call(StreamSafe.mostMarks + 1)) == .tooManyMarks(limit: StreamSafe.mostMarks))
        #expect(violation(call(5000)) == .tooManyMarks(limit: StreamSafe.mostMarks))
    }

    @Test(
        arguments: [
            "Vi\u{1EC7}t Nam", "e\u{301}\u{323}", #"\ud83d\ude00\ud83d\ude00"#, #"\u12"#, #"\"#, #"\ud834"#,
            String(repeating: "\u{1F469}\u{200D}", count: 100), String(repeating: "e\u{301}", count: 5000),
        ])
    func `other texts are left to the decoder`(text: String) {
        #expect(StreamSafe.holds(of: Array(text.utf8)))
    }
}
