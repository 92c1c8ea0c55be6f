// SPDX-License-Identifier: Apache-2.0

import CDialtoneNetlink

/// An interpreter of the few classic BPF instructions that the filter uses, as Documentation/networking/filter.rst of
/// the kernel gives their meaning. A program that leaves its own bounds, or uses another instruction, is a failure.
struct SocketFilterMachine {
    enum Failure: Error {
        case instruction(UInt16)
        case outOfBounds(Int)
        case ranOffTheEnd
    }

    let program: [sock_filter]

    /// Whether `packet` passes.
    func accepts(_ packet: [UInt8]) throws -> Bool {
        var accumulator: UInt32 = 0
        var position = 0
        while program.indices.contains(position) {
            let instruction = program[position]
            position += 1
            let operand = instruction.k
            switch CInt(instruction.code) {
            case BPF_LD | BPF_ABS | BPF_W, BPF_LD | BPF_ABS | BPF_H:
                let size = CInt(instruction.code) & 0x18 == BPF_W ? 4 : 2
                // A load beyond the packet ends the program, and the packet is dropped.
                guard Int(operand) + size <= packet.count else { return false }
                accumulator = packet[Int(operand)..<Int(operand) + size].reduce(0) { $0 << 8 | UInt32($1) }
            case BPF_JMP | BPF_JA:
                position += Int(operand)
            case BPF_JMP | BPF_JEQ | BPF_K:
                position += Int(accumulator == operand ? instruction.jt : instruction.jf)
            case BPF_JMP | BPF_JSET | BPF_K:
                position += Int(accumulator & operand != 0 ? instruction.jt : instruction.jf)
            case BPF_RET | BPF_K:
                return operand != 0
            default:
                throw Failure.instruction(instruction.code)
            }
            guard position <= program.count else { throw Failure.outOfBounds(position) }
        }
        throw Failure.ranOffTheEnd
    }
}
