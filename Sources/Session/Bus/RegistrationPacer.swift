// SPDX-License-Identifier: Apache-2.0

internal import DialtoneDistributor
internal import DialtoneNetworkPath

/// How often the apps of one account (``AppIdentity/account``) may register what is not registered yet. Each time is a
/// write to the disk, and often a word with the push server.
///
/// To end a registration is free: there is one for each time that an app registered, and one that is refused would go
/// on for ever.
struct RegistrationPacer {
    /// So many times at once: an app registers for each of its accounts when it starts.
    static let burst = 64
    /// Then one in this time.
    static let refill = Duration.seconds(1)
    /// The most accounts that are remembered. Those that registered nothing for a while are forgotten; where none can
    /// be, nobody new may register.
    static let mostAccounts = 1024

    private var buckets: [String: TokenBucket] = [:]

    /// Whether an app may register now. That counts as a time.
    mutating func admits(_ app: AppIdentity, at now: Duration) -> Bool {
        if buckets[app.account] == nil {
            if buckets.count >= Self.mostAccounts { buckets = buckets.filter { !$1.isFull(now: now) } }
            guard buckets.count < Self.mostAccounts else { return false }
            buckets[app.account] = TokenBucket(burst: Self.burst, refill: Self.refill, now: now)
        }
        return buckets[app.account]?.take(now: now) == nil
    }
}
