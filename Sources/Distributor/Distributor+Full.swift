// SPDX-License-Identifier: Apache-2.0

/// Servers that have no room for a registration.
extension Distributor {
    /// A server takes no more registrations. The one that it did not take is over: only the end of another one makes
    /// room, which may never come, and its app would wait for an endpoint all the while.
    mutating func registrationsFull(_ id: RegistrationID, _ why: String, at server: ServerName, _ now: Moment) {
        sessions[server]?.asked[id] = nil
        guard let registration = ledger.registration(at: server, id) else { return }
        // It has its room, and an endpoint that ends must be renewed.
        if registration.expires != nil, isAwaited(registration) { return retryRegistering(registration, now) }
        work[registration.number]?.register = nil
        guard registration.endpoint == nil else { return tidy(registration.number) }
        let hadCalls = work[registration.number]?.calls.isEmpty == false
        answerCalls(of: registration.number, .failed(.internalError, why))
        // A call that was answered is all that such an app needs to know.
        end(registration, .refused(why), tellsApp: !hadCalls, now)
    }
}
