// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetlink
package import DialtonePlatform

extension NetworkState {
    /// An engine for the process's own network namespace that records what its verdicts rest on, and the verdicts, in a
    /// new file. `docs/recording.md` says what such a file holds.
    ///
    /// - Parameters:
    ///   - program: name and version of the program, for the file's header.
    ///   - onEnd: is called, on any thread, with the reason if the recording ends by itself. The engine goes on.
    /// - Throws: the file system's refusal of the file.
    package convenience init(
        recordingTo path: String, program: String, onEnd: @escaping @Sendable (String) -> Void
    ) throws(SystemError) {
        let recorder = try Recorder(creating: path, program: program) { onEnd($0.description) }
        self.init(recorder: recorder)
    }

    /// Ends the recording, if there is one. When it returns the file is whole.
    package func endRecording() {
        record?.recorder.finish()
    }
}
