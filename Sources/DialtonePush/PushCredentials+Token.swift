// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import DialtoneVarlink

extension PushCredentials {
    /// What the app hands to its server, in the place of PushKit's device token: the subscription in JSON as the Push
    /// API of browsers has it, which PyPI's `pywebpush` and its like in other languages take as it is.
    ///
    ///     {"endpoint":"https://push.example.net/…","keys":{"p256dh":"BCVx…","auth":"BTBZ…"}}
    public var token: String { String(decoding: Subscription(credentials: self).json, as: UTF8.self) }
}

private struct Subscription: VarlinkWritable {
    let credentials: PushCredentials

    func write(to fields: inout some VarlinkFieldWriter) {
        fields.put("endpoint", credentials.endpoint)
        fields.put("keys", Keys(credentials: credentials))
    }

    private struct Keys: VarlinkWritable {
        let credentials: PushCredentials

        func write(to fields: inout some VarlinkFieldWriter) {
            fields.put("p256dh", Base64URL.text(of: credentials.publicKey))
            fields.put("auth", Base64URL.text(of: credentials.authenticationSecret))
        }
    }
}
