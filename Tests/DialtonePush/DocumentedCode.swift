// SPDX-License-Identifier: Apache-2.0

import DialtonePush
import Dispatch

// The samples of the library's documentation, for the compiler: nothing runs them. `DocumentedCodeTests` holds each
// sample against this file and the examples.

private func register(_ phone: any PushRegistryDelegate) {
    let registry = PushRegistry(appID: "org.example.Phone", queue: .main)
    registry.delegate = phone
    registry.desiredPushTypes = [.voIP]
}

private func follow(_ registry: PushRegistry) async {
    for await event in registry.events {
        switch event {
        case .credentials(let credentials): print(credentials.token)
        case .push(let push):
            print(push.payload.text ?? "")
            push.complete()
        case .invalidated(let type): print("no token for \(type.rawValue) any more")
        case .failed(let error): print(error)
        }
    }
}
