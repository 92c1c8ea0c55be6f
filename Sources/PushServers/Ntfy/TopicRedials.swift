// SPDX-License-Identifier: Apache-2.0

/// When the socket may be given up for a new topic.
///
/// While it is given up no push comes for any app, and the server counts one request more (ntfy's
/// `visitor-request-limit`). An app can register and end its registration as often as it likes.
struct TopicRedials: Sendable {
    /// So many at once: a person who sets up a few apps waits for none of them.
    static let free = 5
    /// The pause before the next time after those. Each later one is twice as long.
    static let firstPause = Duration.seconds(10)
    /// The longest pause. As long as an app may have to wait for its endpoint: after that time a server is asked once
    /// more (`DistributorLimits.serverAnswer`).
    static let longestPause = Duration.seconds(60)
    /// After this long without a new topic, ``free`` redials are allowed at once again. So however often an app
    /// registers, there is one redial a minute in the long run.
    static let calm = longestPause * free

    private var count = 0
    private var last = Duration.zero

    /// From when on it may be given up.
    var earliest: Duration {
        guard count >= Self.free else { return last }
        return last + min(Self.firstPause * (1 << min(count - Self.free, 8)), Self.longestPause)
    }

    /// It is given up.
    mutating func note(at now: Duration) {
        count = count > 0 && now - last < Self.calm ? count + 1 : 1
        last = now
    }
}
