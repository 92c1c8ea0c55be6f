// SPDX-License-Identifier: Apache-2.0

import Testing

/// The page that says what Dialtone does about each trap of the kernel, held against the tests that it names.
@Suite struct KernelCaseTests {
    @Test func `each case has its row, and the suites that it names`() throws {
        let suites = Set(
            try Repository.tests.get().flatMap { file in
                file.code.filter { line in ["struct ", "class ", "actor "].contains(where: line.mentions) }.compactMap {
                    $0.firstMatch(of: #/\b(?:struct|class|actor) (\w+)/#).map { String($0.output.1) }
                }
            })
        let rows = try Self.rows()
        #expect(
            rows.map(\.number) == Array(1...22), "docs/kernel-cases.md has a row for each of the 22 cases, in order")
        for row in rows {
            #expect(!row.suites.isEmpty, "docs/kernel-cases.md: case \(row.number) names no suite of tests")
            for suite in row.suites where !suites.contains(suite) {
                Issue.record("docs/kernel-cases.md: case \(row.number) names \(suite), which is not in Tests")
            }
        }
    }

    @Test func `a case's suite is in the file of its name, and its tests begin with its number`() throws {
        let files = try Repository.tests.get().filter { $0.path.hasPrefix("Tests/Lab/KernelCases/Case") }
        #expect(!files.isEmpty)
        for file in files {
            let name = file.path.split(separator: "/").last.map { String($0.dropLast(6)) } ?? ""
            guard let number = Int(name.dropFirst(4).prefix(2)) else {
                Issue.record("\(file.path): the name begins with the case's number, in two digits")
                continue
            }
            #expect(file.code.contains { $0.contains("struct \(name) ") }, "\(file.path): there is no \(name) in it")
            for (index, line) in file.lines.enumerated() where line.contains("func `") {
                #expect(line.contains("func `case \(number): "), "\(file.place(index)): name the case it is about")
            }
        }
    }

    private struct Row {
        let number: Int
        let suites: [String]
    }

    /// The rows of the tables that begin with a number; the suites are the code in the last column.
    private static func rows() throws -> [Row] {
        try Repository.read("docs/kernel-cases.md").lines.compactMap { line in
            let cells = line.split(separator: "|").map { $0.trimmingPrefix(" ") }
            guard let last = cells.last, let word = cells.first?.split(separator: " ").first, let number = Int(word)
            else { return nil }
            return Row(number: number, suites: last.matches(of: #/`(\w+)`/#).map { String($0.output.1) })
        }
    }
}
