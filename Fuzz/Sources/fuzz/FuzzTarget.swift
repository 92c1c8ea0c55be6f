// SPDX-License-Identifier: Apache-2.0

/// A reader of bytes that come from outside, and what is done with what it read. It finds something when it traps, runs
/// out of time or memory, or touches memory that is not its own.
struct FuzzTarget: Sendable {
    /// Its name, which is that of its seeds' folder, too.
    let name: String
    /// Reads these.
    let run: @Sendable ([UInt8]) -> Void

    /// All that there are.
    static var all: [FuzzTarget] {
        [
            .answers, .certificates, .configuration, .crashes, .dialogues, .distributor, .launcher, .explanations,
            .history, .intervals, .machine, .names, .netlink, .openings, .policies, .processes, .pushes, .questions,
            .recordings, .relay, .replies, .resolver, .scrapes, .services, .sessions, .state, .texts, .tls, .varlink,
            .wakes,
        ]
    }

    /// The one that this process runs: libFuzzer's callback takes no context. Set once, before the first run.
    nonisolated(unsafe) static var current: FuzzTarget?
}

extension [UInt8] {
    /// The bytes as text, whatever they are.
    var text: String { String(decoding: self, as: UTF8.self) }
}

/// One run. By this name, because that is what libFuzzer's own `main` would call: it is linked, and does not run.
@_cdecl("LLVMFuzzerTestOneInput")
func readInput(_ start: UnsafePointer<UInt8>?, _ length: Int) -> CInt {
    FuzzTarget.current?.run(Array(UnsafeBufferPointer(start: start, count: length)))
    return 0
}
