// SPDX-License-Identifier: Apache-2.0

internal import DialtoneModels
internal import Glibc

/// Computes the figures of `docs/herd.md` and `docs/keepalive.md`. The same seeds give the same figures everywhere.
@main
enum Figures {
    static func main() {
        let arguments = CommandLine.arguments.dropFirst()
        guard arguments.count == 2, let path = arguments.last else { return fail(usage) }
        switch arguments.first {
        case "herd":
            let lives = HerdFigures.lives()
            print(HerdFigures.table(lives))
            save(HerdChart(lives).svg, to: path)
        case "keepalive":
            save(KeepaliveFigures.tables(), to: path)
        default:
            fail(usage)
        }
    }

    private static let usage = "usage: figures herd CHART.svg | keepalive TABLES.md"

    private static func save(_ text: String, to path: String) {
        guard let file = fopen(path, "w") else {
            return fail("cannot write \(path): \(String(cString: strerror(errno)))")
        }
        fputs(text, file)
        fclose(file)
    }

    private static func fail(_ message: String) {
        let text = Array((message + "\n").utf8)
        Glibc.write(STDERR_FILENO, text, text.count)
        exit(64)
    }
}
