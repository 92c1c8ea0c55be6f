// SPDX-License-Identifier: Apache-2.0

/// The timers of one connection's line that run. Without a dictionary: a thousand connections that are ready have none.
struct Deadlines: Hashable, Sendable {
    private var dial: Duration?
    private var retry: Duration?
    private var opening: Duration?
    private var proof: Duration?

    subscript(timer: ConnectionTimer) -> Duration? {
        get {
            switch timer {
            case .dial: dial
            case .retry: retry
            case .opening: opening
            case .proof: proof
            }
        }
        set {
            switch timer {
            case .dial: dial = newValue
            case .retry: retry = newValue
            case .opening: opening = newValue
            case .proof: proof = newValue
            }
        }
    }

    /// The next of them.
    var first: Duration? { [dial, retry, opening, proof].compactMap(\.self).min() }

    /// Those that are due, the earliest first.
    func due(at now: Duration) -> [ConnectionTimer] {
        ConnectionTimer.allCases.compactMap { timer in self[timer].map { (timer, $0) } }
            .filter { $0.1 <= now }.sorted { $0.1 < $1.1 }.map(\.0)
    }
}
