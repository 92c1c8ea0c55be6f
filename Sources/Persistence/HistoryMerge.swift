// SPDX-License-Identifier: Apache-2.0

package import DialtoneAPI
package import DialtonePlatform

/// Lines of several files in the order in which they were written.
@AgentQueue
package final class HistoryMerge {
    /// What comes next.
    package enum Step {
        case line(HistoryFiles.Line)
        /// One that is not as it was written.
        case damaged
        /// Lines that are not kept any more. Told before all others.
        case dropped(ConnectionsAPI.Dropped)
        case end
    }

    private struct Source {
        let share: HistoryFiles.Share
        let reader: LineReader
        /// Whether a line of it was read.
        var isBegun = false
    }

    private var waiting: [Source]
    private var heads: [(line: HistoryFiles.Line, source: Source)] = []

    init(_ readers: [(share: HistoryFiles.Share, reader: LineReader)]) {
        waiting = readers.map { Source(share: $0.share, reader: $0.reader) }
    }

    /// The next line. A damaged one is reported when it is read, which may be before older lines.
    package func next() -> Step {
        while var source = waiting.popLast() {
            switch source.reader.next() {
            case .whole(let text)?:
                if let line = HistoryFiles.Line(bytes: text) {
                    let dropped = source.isBegun ? nil : dropped(before: line, of: source.share)
                    source.isBegun = true
                    heads.append((line, source))
                    if let dropped { return .dropped(dropped) }
                    continue
                }
                fallthrough
            case .damaged?:
                // It may have been the first.
                source.isBegun = true
                waiting.append(source)
                return .damaged
            case nil: continue
            }
        }
        guard let next = heads.indices.min(by: { order(of: heads[$0]) < order(of: heads[$1]) }) else { return .end }
        let (line, source) = heads.remove(at: next)
        waiting.append(source)
        return .line(line)
    }

    private func dropped(before line: HistoryFiles.Line, of share: HistoryFiles.Share) -> ConnectionsAPI.Dropped? {
        guard let number = line.number, number > 1, let time = line.entry.time else { return nil }
        return .init(part: share.part, owner: share.owner.map { Int($0) }, count: number - 1, until: time)
    }

    private func order(of head: (line: HistoryFiles.Line, source: Source)) -> Int64 { head.line.order ?? 0 }
}
