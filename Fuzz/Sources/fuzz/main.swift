// SPDX-License-Identifier: Apache-2.0

internal import CFuzzer
internal import Glibc

// fuzz TARGET [libFuzzer's arguments…]; without a target, says which there are. `make fuzz` runs all of them.

let named = CommandLine.arguments.dropFirst().first.flatMap { name in FuzzTarget.all.first { $0.name == name } }
// libFuzzer starts this program again, without the target's name, where it merges corpora.
let inherited = getenv("FUZZ_TARGET").flatMap { name in FuzzTarget.all.first { $0.name == String(cString: name) } }
guard let target = named ?? inherited else {
    for target in FuzzTarget.all { print(target.name) }
    exit(CommandLine.argc == 1 ? 0 : 64)
}
setenv("FUZZ_TARGET", target.name, 1)
FuzzTarget.current = target

var arguments = Array(UnsafeBufferPointer(start: CommandLine.unsafeArgv, count: Int(CommandLine.argc)))
if named != nil { arguments.remove(at: 1) }
arguments.append(nil)
let start = UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>.allocate(capacity: arguments.count)
start.initialize(from: arguments, count: arguments.count)
var count = CInt(arguments.count - 1)
var values = Optional(start)
exit(LLVMFuzzerRunDriver(&count, &values) { readInput($0, $1) })
