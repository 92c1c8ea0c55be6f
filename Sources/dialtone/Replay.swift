// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import DialtoneNetworkPath
internal import DialtonePlatform
internal import DialtonePresentation
internal import DialtoneVarlink
internal import Glibc
internal import Reachability

struct Replay: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Show what happened in a recording of `dialtoned --record`.",
        discussion: """
            Runs the kernel's messages of the recording through this program's verdicts and writes a line for each \
            path that changed, at the time when it did. The agent is not asked, and this machine's network is not \
            looked at. Says where the verdict is another than the one that was recorded.

            Exit status: 0 all verdicts are as they were recorded, 1 some are not, 65 the file is no recording, 66 it \
            cannot be read.
            """)

    @Argument(help: "The recording.", completion: .file())
    var file: String

    @Flag(help: "Write one JSON object a line: the time, the target, and the rest as `watch` has it.")
    var json = false

    @OptionGroup
    var color: ColorOption

    func run() throws {
        let replay: Reachability.Replay
        do throws(Reachability.Replay.Failure) {
            replay = try Reachability.Replay(contentsOf: file)
        } catch {
            Output.fail(error.description)
            throw ExitCode(error.isUnreadable ? EX_NOINPUT : EX_DATAERR)
        }
        func time(_ instant: Duration) -> Timestamp {
            Timestamp(milliseconds: (replay.wallAtBoot + instant).milliseconds)
        }
        var pages = DayPages(Output.localTime, subjects: replay.changes.map(\.question.description))
        for change in replay.changes { write(change, at: time(change.time), &pages) }
        for deviation in replay.deviations {
            Output.fail("\(Output.localTime.clock(time(deviation.time)))  \(deviation.question): \(deviation)")
        }
        if let cutAt = replay.cutAt {
            Output.fail("\(file) ends in the middle of a record, at byte \(cutAt); this is what came before")
        }
        if !replay.deviations.isEmpty { throw ExitCode.failure }
    }

    private func write(_ change: Reachability.Replay.Change, at time: Timestamp, _ pages: inout DayPages) {
        let (path, changes) = (NetworkAPI.Path(change.path), change.changes.map(\.rawValue))
        if json {
            Output.write(
                json: Line(time: time, target: change.question.description, path: path, changes: changes))
        } else {
            let line = WatchLine(path: path, of: change.question.description, changes: changes, at: time)
            Output.write(pages.lines(line, Output.style))
        }
    }

    /// What `--json` writes.
    private struct Line: VarlinkWritable {
        let time: Timestamp
        let target: String
        let path: NetworkAPI.Path
        let changes: [String]

        func write(to fields: inout some VarlinkFieldWriter) {
            fields.put("time", time)
            fields.put("target", target)
            fields.put("path", path)
            fields.put("changes", changes)
        }
    }
}
