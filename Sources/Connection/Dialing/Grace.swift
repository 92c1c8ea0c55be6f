// SPDX-License-Identifier: Apache-2.0

/// What a flow has lost, its local address or its way, and how long it is kept for that.
///
/// A lease that is renewed and a cable that is put back end no flow. It is *silent* until what it lost is back: it is
/// not judged by what does not come. Then it has to prove itself.
struct Grace {
    private struct Loss {
        /// When it was lost first, of losses between which nothing showed that the server is there: a network that
        /// flaps keeps a dead flow no longer than one that is gone.
        let since: Duration
        let until: Duration
        var closing: CloseReason
        let cause: StatusReason
        var isBack = false
    }

    // Out of line: most flows have lost nothing.
    private var boxed: Boxed<Loss>?
    private var loss: Loss? {
        get { boxed?.value }
        set { boxed = newValue.map { .value($0) } }
    }

    // MARK: - What happens

    /// Something is lost.
    ///
    /// - Parameter grace: how long the flow is kept for it.
    /// - Returns: whether the flow is kept.
    mutating func lost(_ closing: CloseReason, because cause: StatusReason, for grace: Duration, at now: Duration)
        -> Bool
    {
        if let loss, !loss.isBack {
            // It is kept as long as was said, even if the grace of later losses is another by now.
            // Without its address, not even a FIN of it would be answered.
            if closing == .localAddressRemoved { self.loss?.closing = closing }
            return now < loss.until
        }
        let since = loss?.since ?? now
        guard now < since + grace else { return false }
        loss = Loss(since: since, until: since + grace, closing: closing, cause: cause)
        return true
    }

    /// It is back: the proof alone is missing.
    mutating func returned() { loss?.isBack = true }

    /// The flow proved itself, or is given up.
    mutating func end() { boxed = nil }

    // MARK: - What follows

    /// Whether something was lost, and the flow has not proved itself since.
    var isRunning: Bool { boxed != nil }

    /// Whether what the flow needs is gone, and it waits for that.
    var isSilent: Bool { loss.map { !$0.isBack } ?? false }

    /// Until when the flow is kept; as what it is closed then, and why.
    var ending: (at: Duration, closing: CloseReason, cause: StatusReason)? {
        loss.flatMap { $0.isBack ? nil : ($0.until, $0.closing, $0.cause) }
    }
}
