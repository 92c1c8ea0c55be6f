// SPDX-License-Identifier: Apache-2.0

import DialtonePlatform
import Glibc

/// Says to a daemon whatever can be said to it, and then ends with all that it has left behind:
///
///     lab-fuzzer SOCKET SEED sittings|seconds COUNT [USER…]
///
/// As itself and as the users of these numbers. One sitting is some calls of one client.
@main
enum LabFuzzer {
    static func main() throws {
        let words = Array(CommandLine.arguments.dropFirst())
        guard words.count >= 4, let seed = UInt64(words[1]), let count = Int(words[3]),
            ["sittings", "seconds"].contains(words[2])
        else {
            print("usage: lab-fuzzer SOCKET SEED sittings|seconds COUNT [USER…]")
            exit(64)
        }
        signal(SIGPIPE, SIG_IGN)
        var sittings = try Sittings(seed: seed, socket: words[0], users: [nil] + words[4...].map { UInt32($0) })
        let end = words[2] == "seconds" ? BootClock.now() + .seconds(count) : nil
        var done = 0
        while end.map({ BootClock.now() < $0 }) ?? (done < count) {
            try sittings.sit()
            done += 1
        }
        print("\(done) sittings, \(sittings.calls) calls, \(sittings.descriptors) descriptors")
    }
}
