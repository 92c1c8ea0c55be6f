// SPDX-License-Identifier: Apache-2.0

import Testing

/// The tests above believe what they read, so the reading is tested.
@Suite struct ScannerTests {
    @Test(arguments: [
        ("let a = 1 // try!", "let a = 1 "),
        (#"let a = "try! // " + b"#, "let a =   + b"),
        (#"let a = "quote \" try!" + b"#, "let a =   + b"),
        (#"let a = "in \(f("x)") ?? 1) out" + b"#, "let a =   + b"),
        ("let a = #\"raw \\ \" try!\"# + b", "let a =   + b"),
        ("a /* try! */ + b", "a  + b"),
    ])
    func `comments and strings are no code`(line: String, code: String) {
        #expect(SourceFile(path: "", text: line).code == [code])
    }

    @Test func `what spans lines is taken out of all of them`() {
        let text = ["a", "/* one", "/* two */", "try! */ b", "let c = \"\"\"", "  try! \\\"\"\" ", "  \"\"\" + d"]
        let code = ["a", "", "", " b", "let c =  ", "", " + d"]
        #expect(SourceFile(path: "", text: text.joined(separator: "\n")).code == code)
    }

    @Test func `a function reaches to the brace in its own column`() {
        let text = """
            struct A {
                func one() -> Int { 1 }
                public static func two(
                    _ a: Int
                ) -> Int {
                    if a > 0 {
                    }
                    return a
                }
                var three: Int {
                    3
                }
                init() {
                }
            }
            protocol B {
                func four() -> Int
                func five()
            }
            """
        let spans = FunctionSpan.all(in: SourceFile(path: "", text: text))
        #expect(
            spans == [
                FunctionSpan(name: "two", lines: 2...8), FunctionSpan(name: "three", lines: 9...11),
                FunctionSpan(name: "init", lines: 12...13),
            ])
    }
}
