// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import DialtoneWebPush

@testable internal import DialtonePush

extension FuzzTarget {
    /// What a push service hands over, what a sender says of itself, and what an app kept of its registrations.
    static let pushes = FuzzTarget(name: "pushes") { bytes in
        let rest = Array(bytes.dropFirst())
        switch bytes.first.map({ $0 % 3 }) {
        case 0: _ = try? keys?.decrypt(rest)
        case 1: _ = try? VAPID.check(rest.text, audience: "https://push.example.net", now: 1_453_523_708)
        default:
            guard let kept = Registrations(rest) else { return }
            precondition(Registrations(kept.bytes) == kept)
        }
    }

    /// Those of RFC 8291's appendix A, whose message is a seed.
    private static let keys = Base64URL.bytes(
        of: """
            q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94EJXGyvs3942BVGq8e0PTNNmwRzr5VX4m8t7GGpTM5FzFo7OLr4BhZe9MEebhuPI-\
            OztV3ylkYfpJGmQ22ggCLDgUwWTKhx-q-E7bOyf2kiII
            """
    ).flatMap { PushKeys(stored: $0) }
}
