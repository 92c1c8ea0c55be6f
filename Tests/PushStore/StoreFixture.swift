// SPDX-License-Identifier: Apache-2.0

import CDialtoneSQLite
import DialtoneDistributor
import DialtonePushStore
import DialtoneTestSupport
import Glibc

/// A directory of a test's own, which goes with it.
final class StoreFixture {
    private let place = TemporaryDirectory()
    var directory: String { place.path }
    /// Where the store is, below it.
    var store: String { "\(directory)/state/push" }
    var file: String { "\(store)/\(PushStore.fileName)" }

    /// The files of the store, in the order of their names.
    var entries: [String] {
        guard let stream = opendir(store) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            names.append(
                withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
                    String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
                })
        }
        return names.filter { $0 != "." && $0 != ".." }.sorted()
    }

    func mode(_ path: String) -> mode_t {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_mode & 0o7777 : 0
    }

    /// Turns over what a file holds from there on.
    func overwrite(at offset: Int) throws {
        guard let stream = fopen(file, "r+") else { throw StoreFixtureError(text: "opening \(file)") }
        defer { fclose(stream) }
        fseek(stream, offset, SEEK_SET)
        for _ in 0..<2000 { fputc(0xA5, stream) }
    }

    func replaceByLink(to target: String) {
        for name in entries { unlink("\(store)/\(name)") }
        symlink(target, file)
    }

    /// Runs a statement as somebody would who has SQLite's own program.
    func execute(_ statement: String) throws {
        var handle: OpaquePointer?
        defer { sqlite3_close(handle) }
        guard sqlite3_open(file, &handle) == SQLITE_OK,
            sqlite3_exec(handle, statement, nil, nil, nil) == SQLITE_OK
        else { throw StoreFixtureError(text: "\(statement): \(String(cString: sqlite3_errmsg(handle)))") }
    }

    func write(_ text: String, to path: String) {
        guard let file = fopen(path, "w") else { return }
        fputs(text, file)
        fclose(file)
    }
}

struct StoreFixtureError: Error {
    var text: String
}

/// One of each kind, with everything that can be set.
enum Samples {
    static let server = known(ServerName("north"))
    static let id = known(RegistrationID(String(repeating: "0a", count: 16)))
    static let app = AppIdentity(name: "org.example.App", sandbox: "flatpak:org.example.App")
    static let time = WallTime(milliseconds: 1_800_000_000_000)

    static var registration: Registration {
        let request = RegistrationRequest(
            app: app, token: "tök\u{0}en", version: .v1, kind: .voip, summary: "'; DROP TABLE message; --",
            vapid: "BA")
        var registration = Registration(number: 7, request: request, server: server, id: id)
        registration.endpoint = "https://push.example/1"
        registration.registered = time
        registration.expires = WallTime(milliseconds: .max)
        registration.isTold = true
        registration.lastMessage = WallTime(milliseconds: .min)
        registration.misses = 2
        registration.isDemoted = true
        registration.unknownSince = time
        registration.unknownAnswers = 3
        return registration
    }

    static func message(_ number: Int64, size: Int = 4096) -> StoredMessage {
        var message = StoredMessage(
            number: number, registration: 7, server: server, origin: origin(number),
            body: (0..<size).map { UInt8(truncatingIfNeeded: $0) }, urgency: .veryLow, arrived: time, expires: time)
        message.failures = 4
        return message
    }

    static func origin(_ number: Int64) -> MessageOrigin {
        MessageOrigin(registration: id, id: known(ServerMessageID("message-\(number)")))
    }

    static func settled(_ number: Int64, givenUp: String? = nil) -> SettledMessage {
        SettledMessage(number: number, server: server, origin: origin(number), time: time, givenUp: givenUp)
    }

    static var ending: Ending {
        Ending(server: server, id: id, endpoint: nil, registration: 7, due: time)
    }

    static var all: [StoreChange] {
        [
            .server(server), .memory(server, Array(repeating: 1, count: 65_536)), .registration(registration),
            .message(message(1)), .message(message(2, size: 1)), .settled(settled(3)),
            .settled(settled(4, givenUp: "expired")), .ending(ending),
        ]
    }
}
