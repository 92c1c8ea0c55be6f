// SPDX-License-Identifier: Apache-2.0

internal import Connection
internal import TOML

extension ConfigurationReader {
    /// `opening = [{ send = "…", expect = "…" }, …]`, also as `[[connection.opening]]`. What it holds is in no message.
    func readOpening(_ table: inout TableReader) -> Opening? {
        guard !table.isAbsent("opening") else { return nil }
        let tables = table.tables("opening")
        let before = report.errors.count
        let steps = tables.map(readStep)
        let opening = Opening(steps)
        // What is wrong with one step was said there, and may be all that is wrong.
        guard report.errors.count == before, let problem = opening.problem else { return opening }
        table.error("opening", tables.first?.position ?? table.position, problem)
        return nil
    }

    private func readStep(_ table: TableReader) -> Opening.Step {
        var table = table
        let send = readSend(&table)
        let answer = readAnswer(&table)
        let overtakers = (table.strings("overtaken_by") ?? []).map { text in
            read(text, as: "overtaken_by", in: table) { text throws(EscapeError) in
                try BytePattern(escapedText: text)
            } ?? BytePattern([])
        }
        table.finish()
        return Opening.Step(send: send, answer: answer, overtakers: overtakers)
    }

    private func readSend(_ table: inout TableReader) -> [UInt8] {
        let text = table.string("send")
        let file = table.string("send_file")
        if let text, let file {
            let first = text.position.line <= file.position.line ? "send" : "send_file"
            table.error("send_file", file.position, "the step says what it sends already, with \(first)")
        }
        if let text {
            return read(text, as: "send", in: table) { text throws(EscapeError) in
                try [UInt8](escapedText: text)
            } ?? []
        }
        guard let file else { return [] }
        do throws(SecretFileError) {
            return try SecretFile.read(file.value, atMost: Opening.largestSize)
        } catch {
            table.error("send_file", file.position, "“\(file.value)” \(error.problem)")
            return []
        }
    }

    /// `expect = "…"` for exactly these bytes, or `expect = { … }`.
    private func readAnswer(_ table: inout TableReader) -> ExpectedAnswer? {
        guard let node = table.any("expect") else { return nil }
        if case .string(let text) = node.value {
            return read(Located(value: text, position: node.position), as: "expect", in: table) {
                text throws(EscapeError) in
                ExpectedAnswer(try BytePattern(escapedText: text))
            }
        }
        guard case .table = node.value, var answer = table.table("expect") else {
            _ = table.string("expect", expected: "a string or a table")
            return nil
        }
        let before = report.errors.count
        let texts = ["bytes", "until", "message", "contains"].map { answer.string($0) }
        let length = answer.integer("length", 1...ExpectedAnswer.longestAnswer)
        answer.finish()
        guard report.errors.count == before else { return nil }
        do throws(OpeningTextError) {
            return try ExpectedAnswer(
                bytes: texts[0]?.value, length: length, until: texts[1]?.value, message: texts[2]?.value,
                contains: texts[3]?.value)
        } catch {
            answer.error(error.key, answer.any(error.key)?.position ?? answer.position, error.reason)
            return nil
        }
    }

    private func read<Value>(
        _ text: Located<String>, as key: String, in table: TableReader,
        _ make: (String) throws(EscapeError) -> Value
    ) -> Value? {
        do throws(EscapeError) {
            return try make(text.value)
        } catch {
            table.error(key, text.position, OpeningTextError.noEscape)
            return nil
        }
    }
}
