// SPDX-License-Identifier: Apache-2.0

import DialtonePush
import Dispatch
import Glibc
import Synchronization

/// A phone that does not run until it is called: the session bus starts it with the push, it decrypts and answers, and
/// ends after a quiet time.
///
///     push-phone [SECONDS]        how long it waits for something to do: 30 seconds unless told otherwise
///
/// The first start registers, and prints the token that the phone's server needs. `send.py` is such a server.
@main
final class PushPhone: PushRegistryDelegate {
    let registry = PushRegistry(appID: "org.example.PushPhone", queue: .main, description: "Incoming calls")
    private let quietTime: Int
    private let events = Atomic(0)

    static func main() {
        let phone = PushPhone(quietTime: CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 30)
        phone.start()
        dispatchMain()
    }

    init(quietTime: Int) { self.quietTime = max(quietTime, 1) }

    func start() {
        registry.delegate = self
        registry.desiredPushTypes = [.voIP]
        waitForQuiet()
    }

    /// Ends the process unless something happens within the quiet time. A push that arrives in that moment is not
    /// answered, so the distributor sends it again, and the bus starts the next process.
    private func waitForQuiet() {
        let mine = events.wrappingAdd(1, ordering: .relaxed).newValue
        DispatchQueue.main.asyncAfter(deadline: .now() + .seconds(quietTime)) { [self] in
            if events.load(ordering: .relaxed) == mine { exit(0) }
        }
    }

    private func say(_ text: String) {
        print(text)
        fflush(nil)
        waitForQuiet()
    }

    func pushRegistry(_ registry: PushRegistry, didUpdate pushCredentials: PushCredentials, for type: PushType) {
        // A real phone sends it to its server.
        say(pushCredentials.token)
    }

    func pushRegistry(
        _ registry: PushRegistry, didReceiveIncomingPushWith payload: PushPayload, for type: PushType,
        completion: @escaping @Sendable () -> Void
    ) {
        // A real phone connects to its server here, and has the call shown.
        say("a call: \(payload.text ?? "\(payload.bytes.count) bytes")")
        completion()
    }

    func pushRegistry(_ registry: PushRegistry, didInvalidatePushTokenFor type: PushType) {
        say("the token is over")
        registry.desiredPushTypes = [.voIP]
    }

    func pushRegistry(_ registry: PushRegistry, didFailWith error: PushError) {
        say("\(error)")
    }
}
