// SPDX-License-Identifier: Apache-2.0

import DialtonePush
import Dispatch
import Foundation
import Synchronization

/// An app of `DialtonePush`: registers for calls, decrypts what comes, notes it and ends after a quiet time.
///
///     lab-phone NAME DIRECTORY [SECONDS]
///
/// What it is told stands in DIRECTORY/told, a line of JSON each, written before the push is acknowledged. A push may
/// come again whose acknowledgement was lost: by its identifier it is known, and noted as such, also where an earlier
/// process noted it.
@main
final class LabPhone: PushRegistryDelegate {
    /// A line of the file.
    private struct Note: Encodable {
        let method: String
        let process = getpid()
        var token = ""
        var message: String?
        var endpoint: String?
        var id: String?

        enum CodingKeys: String, CodingKey { case method, process, token, message, endpoint, id }
    }

    private let registry: PushRegistry
    private let told: String
    private let quietTime: Int
    private let events = Atomic(0)
    private let known: Mutex<Set<String>>

    static func main() {
        let arguments = CommandLine.arguments
        guard (3...4).contains(arguments.count) else {
            FileHandle.standardError.write(Data("usage: lab-phone NAME DIRECTORY [SECONDS]\n".utf8))
            exit(64)
        }
        let phone = LabPhone(
            arguments[1], told: "\(arguments[2])/told", quietTime: arguments.count > 3 ? Int(arguments[3]) ?? 2 : 2)
        phone.registry.delegate = phone
        phone.registry.desiredPushTypes = [.voIP]
        phone.waitForQuiet()
        dispatchMain()
    }

    private init(_ name: String, told: String, quietTime: Int) {
        registry = PushRegistry(appID: name, queue: .main, description: "Calls of the lab")
        (self.told, self.quietTime) = (told, quietTime)
        known = Mutex(Self.identifiers(in: told))
    }

    /// The identifiers of what was noted before.
    private static func identifiers(in file: String) -> Set<String> {
        struct Line: Decodable { let id: String? }
        let lines = FileManager.default.contents(atPath: file)?.split(separator: UInt8(ascii: "\n")) ?? []
        return Set(lines.compactMap { try? JSONDecoder().decode(Line.self, from: $0).id })
    }

    private func waitForQuiet() {
        let mine = events.wrappingAdd(1, ordering: .relaxed).newValue
        DispatchQueue.main.asyncAfter(deadline: .now() + .seconds(quietTime)) { [self] in
            if events.load(ordering: .relaxed) == mine { exit(0) }
        }
    }

    /// Adds a line with one write: it is there, or it is not.
    private func add(_ note: Note) {
        waitForQuiet()
        guard var line = try? JSONEncoder().encode(note) else { return }
        line.append(UInt8(ascii: "\n"))
        let file = open(told, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        _ = line.withUnsafeBytes { write(file, $0.baseAddress, $0.count) }
        close(file)
    }

    func pushRegistry(_ registry: PushRegistry, didUpdate pushCredentials: PushCredentials, for type: PushType) {
        add(Note(method: "NewEndpoint", token: pushCredentials.token, endpoint: pushCredentials.endpoint))
    }

    func pushRegistry(
        _ registry: PushRegistry, didReceiveIncomingPushWith payload: PushPayload, for type: PushType,
        completion: @escaping @Sendable () -> Void
    ) {
        let isNew = known.withLock { known in payload.identifier.map { known.insert($0).inserted } ?? true }
        let text = payload.text ?? "\(payload.bytes.count) bytes"
        add(
            isNew
                ? Note(method: "Message", message: text, id: payload.identifier)
                : Note(method: "Again", id: payload.identifier))
        completion()
    }

    func pushRegistry(_ registry: PushRegistry, didInvalidatePushTokenFor type: PushType) {
        add(Note(method: "Unregistered"))
        registry.desiredPushTypes = [.voIP]
    }

    func pushRegistry(_ registry: PushRegistry, didFailWith error: PushError) {
        add(Note(method: "\(error)"))
    }
}
