// SPDX-License-Identifier: Apache-2.0

internal import DialtoneDistributor
internal import DialtonePushStore
internal import Glibc

/// Saves one transaction after the other and says the number of each that it has saved, until somebody kills it:
/// `push-store-writer write DIRECTORY`. With `full` it does so on a disk that has room for 512 KiB, says what was
/// refused, and goes on as soon as there is room.
@main
enum PushStoreWriter {
    static func main() {
        let arguments = CommandLine.arguments
        guard arguments.count == 3 else { exit(64) }
        do throws(StoreError) {
            var store = try PushStore(directory: arguments[2])
            let first = number(of: try store.load()) + 1
            if arguments[1] == "full" { try fill(&store, from: first) } else { try write(&store, from: first) }
        } catch {
            say("failed: \(error)")
            exit(1)
        }
    }

    private static func write(_ store: inout PushStore, from first: Int64) throws(StoreError) {
        for number in first... {
            try store.save(transaction(number))
            say("\(number)")
        }
    }

    private static func fill(_ store: inout PushStore, from first: Int64) throws(StoreError) {
        signal(SIGXFSZ, SIG_IGN)
        limitFiles(512 << 10)
        var number = first
        do throws(StoreError) {
            while true {
                try store.save(transaction(number))
                number += 1
            }
        } catch {
            say("refused: \(error)")
        }
        // What came before is there, and what was refused is not.
        say("\(Self.number(of: try store.load())) of \(number - 1)")
        limitFiles(.max)
        try store.save(transaction(number))
        say("saved")
    }

    private static func limitFiles(_ size: rlim_t) {
        // RLIM_INFINITY, which Swift takes for a number below zero.
        var limit = rlimit(rlim_cur: size, rlim_max: .max)
        setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
    }

    /// The number of the last transaction in a state.
    private static func number(of state: StoredState) -> Int64 { state.settled.last?.number ?? 0 }

    private static func say(_ text: String) {
        let line = Array("\(text)\n".utf8)
        _ = Glibc.write(1, line, line.count)
    }

    /// A transaction that changes every table, so that a part of it would be seen.
    private static func transaction(_ number: Int64) -> [StoreChange] {
        guard let server = ServerName("north"), let id = RegistrationID(String(repeating: "a", count: 32)),
            let messageID = ServerMessageID("m\(number)")
        else { preconditionFailure("names that are none") }
        let request = RegistrationRequest(
            app: AppIdentity(name: "org.example.App", sandbox: nil), token: "token", version: .v2, kind: .standard,
            summary: "\(number)", vapid: nil)
        let origin = MessageOrigin(registration: id, id: messageID)
        let time = WallTime(milliseconds: number)
        let message = StoredMessage(
            number: number, registration: 1, server: server, origin: origin,
            body: Array(repeating: UInt8(truncatingIfNeeded: number), count: 4096), urgency: .normal, arrived: time,
            expires: time)
        return [
            .registration(Registration(number: 1, request: request, server: server, id: id)),
            .message(message), .messageRemoved(number - 10),
            .settled(SettledMessage(number: number, server: server, origin: origin, time: time, givenUp: nil)),
            .memory(server, Array("\(number)".utf8)),
            .ending(Ending(server: server, id: id, endpoint: "\(number)", registration: nil, due: time)),
        ]
    }
}
