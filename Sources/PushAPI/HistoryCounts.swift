// SPDX-License-Identifier: Apache-2.0

extension PushAPI.History {
    /// How many messages may be asked for: all that the session agent keeps (`DistributorLimits.settled`).
    package static let counts = 1...8192
    /// How many it returns to a caller that does not say.
    package static let usualCount = 100
}
