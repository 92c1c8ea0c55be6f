// SPDX-License-Identifier: Apache-2.0

import DialtonePush
import Synchronization

/// An app that notes what it is told.
final class App: PushRegistryDelegate {
    private struct Notes {
        var tokens: [PushType: PushCredentials] = [:]
        var updates = 0
        var pushes: [PushPayload] = []
        var completions: [@Sendable () -> Void] = []
        var ended: [PushType] = []
        var errors: [PushError] = []
    }

    let registry: PushRegistry
    private let completes: Bool
    private let notes = Mutex(Notes())

    /// - Parameter completes: whether it is done with each push at once.
    init(_ registry: PushRegistry, completes: Bool = true) {
        (self.registry, self.completes) = (registry, completes)
        registry.delegate = self
    }

    var tokens: [PushType: PushCredentials] { notes.withLock { $0.tokens } }
    var updates: Int { notes.withLock { $0.updates } }
    var pushes: [PushPayload] { notes.withLock { $0.pushes } }
    var ended: [PushType] { notes.withLock { $0.ended } }
    var errors: [PushError] { notes.withLock { $0.errors } }

    func completeAll() { for completion in notes.withLock({ $0.completions }) { completion() } }

    func forgetAll() { notes.withLock { $0.completions = [] } }

    func pushRegistry(_ registry: PushRegistry, didUpdate pushCredentials: PushCredentials, for type: PushType) {
        notes.withLock { notes in
            notes.tokens[type] = pushCredentials
            notes.updates += 1
        }
    }

    func pushRegistry(
        _ registry: PushRegistry, didReceiveIncomingPushWith payload: PushPayload, for type: PushType,
        completion: @escaping @Sendable () -> Void
    ) {
        notes.withLock { notes in
            notes.pushes.append(payload)
            if !completes { notes.completions.append(completion) }
        }
        if completes { completion() }
    }

    func pushRegistry(_ registry: PushRegistry, didInvalidatePushTokenFor type: PushType) {
        notes.withLock { $0.ended.append(type) }
    }

    func pushRegistry(_ registry: PushRegistry, didFailWith error: PushError) {
        notes.withLock { $0.errors.append(error) }
    }
}
