// SPDX-License-Identifier: Apache-2.0

internal import DialtonePersistence

/// How many lines of the history each user may have written, of each kind. One who opens and closes connections all day
/// would keep the disk busy all day; what is beyond is counted, and the next line that is written says how many were
/// left out.
struct HistoryAllowance {
    /// So many at once: what a thousand connections tell when the network goes and returns.
    static let burst = 4096
    /// So many more for each second: at some 340 bytes a line, 60 MB a day of each kind at the very most.
    static let perSecond = 2
    /// How many accounts are remembered. Beyond, those are forgotten whose allowance is whole again.
    private static let mostRemembered = 1024

    private struct Account {
        var left: Duration
        var at: Duration
        var leftOut = 0
    }

    /// What a line costs, in time.
    private static let cost = Duration.seconds(1) / perSecond
    private static let whole = cost * burst
    private var accounts: [HistoryFiles.Share: Account] = [:]

    /// Whether a line of a share is written now, and how many were not since the last that was; `nil` where it is left
    /// out.
    mutating func admit(_ share: HistoryFiles.Share, now: Duration) -> Int? {
        if accounts.count >= Self.mostRemembered, accounts[share] == nil {
            accounts = accounts.filter { $0.value.leftOut > 0 || $0.value.left + (now - $0.value.at) < Self.whole }
        }
        var account = accounts[share] ?? Account(left: Self.whole, at: now)
        account.left = min(account.left + max(now - account.at, .zero), Self.whole)
        account.at = now
        defer { accounts[share] = account }
        guard account.left >= Self.cost else {
            account.leftOut += 1
            return nil
        }
        account.left -= Self.cost
        defer { account.leftOut = 0 }
        return account.leftOut
    }
}
