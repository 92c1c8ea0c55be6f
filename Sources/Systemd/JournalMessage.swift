// SPDX-License-Identifier: Apache-2.0

package import Logging

/// The kinds of entries that programs look for in the journal, by the `MESSAGE_ID` of each (sd_journal_print(3)). An
/// identifier stays with its kind for good: alerts and `systemd/dialtone.catalog`, which explains it, go by it.
package enum JournalMessage: String, CaseIterable, Sendable {
    // MARK: The network

    /// The path that packets take to the network as such changed.
    case networkChanged = "d13c513a42f84da197b1165f0971b7c4"

    // MARK: The line of a connection

    /// It is supervised from now on.
    case opened = "25abd89bd67e4d928a8318174d645fa6"
    /// The agent was started anew and goes on with it.
    case continued = "3cbb7daa64c144fa88a7c8252abc5619"
    /// It has no network.
    case waiting = "eca9bad1449e48e4b15ce760f3e452f2"
    /// Its remote's name is looked up.
    case resolving = "76e9c8092966493d8bc16f01162794bf"
    /// A socket is being connected.
    case connecting = "29ec148cead54263b4d6d23508bd9d96"
    /// The TLS handshake runs.
    case securing = "959575fe0a734d03b43a2c9fbed3e91c"
    /// It is up.
    case ready = "7d791a3ca63c45f9bdcdc219fe72c33b"
    /// It may have been lost, and the server was asked.
    case verifying = "cc9ff851b6ab4f1ab79db4df2694e1f7"
    /// An attempt failed, and the next one has a time.
    case backingOff = "72488b810dfa4e398727d4dad921bf95"
    /// Something failed that time does not cure.
    case failed = "e14c1d7e84484709af4d6ee6dda4dd1e"
    /// It is no longer supervised.
    case closed = "f9fc2f72a562407cbc2c8e3e93afd954"
    /// One address of the remote failed, and the next one is tried.
    case addressFailed = "4630de19bf77438d8b9b7cefad989a70"
    /// Another address is tried beside those that have not answered yet.
    case attemptBegan = "86ad910108d243b7b25a55f4796ce0e9"
    /// No socket could be connected over a better path.
    case moveFailed = "3dbf2458c92840e1b9c919c108050a4e"
    /// The route to the remote changed, and the state did not.
    case pathChanged = "627e79c72b424dd882e2e271c93de18f"
    /// Its remote or its settings changed.
    case reconfigured = "e973d4d0d37e47498087c813f045f6e0"
    /// A certificate of its socket expires soon.
    case certificateEnds = "68b49734b70d403b866b3aa827a0018a"
    /// The agent logged in by the opening.
    case sessionOpened = "a06bcdfe753340fda33911c082f5e35d"
    /// The server refused the opening, or repeatedly did not answer.
    case openingFailed = "c53c9fd548744684bc51acd4e4479493"
    /// What a person has to do about a failure.
    case advice = "1b5d04ff86dd4a43825dc254fc639b8b"

    // MARK: Its client

    /// A client has the socket.
    case taken = "ac39e5f4e2a24af7b42f9784aad7c8a8"
    /// The client gave the socket back.
    case parked = "234fbb23dcf94c3198a0e3334436a18f"
    /// The client ended without parking, and the socket was kept.
    case abandoned = "7cbdd8d71463416dadaab2c3504c2658"
    /// Bytes for the client wait.
    case arrived = "1236b08b153a415193393ef32b14ea2b"

    // MARK: The wake of its client

    /// The client is to be woken.
    case wakeBegan = "d6dbc7a1abb44fcd9d482bdf064c8d98"
    /// There is one more reason.
    case wakeJoined = "d28491690a6b4001b37301c69980fbbc"
    /// The client is being woken.
    case wakeAttempted = "54ffcaa8470b42aab8113ebc4bf74313"
    /// One way to wake the client failed.
    case wakeAttemptFailed = "3e98c4f640e14c969f1c9935719f9212"
    /// The client acknowledged the wake.
    case wakeAcknowledged = "5009f30d9ba84d9c97c497dc0311b3b0"
    /// The wake was given up.
    case wakeFailed = "7ccaa901c61f462f84220e931c962909"
    /// The program that was launched ended.
    case programEnded = "881a7f0cc7b74bd281d96d1af775a447"
    /// The client has had the socket for longer than it may.
    case wakeOverran = "b2372ff6cb41406ab813bb5783bdc177"

    // MARK: Hooks

    /// A file in the directory of hooks is not run.
    case hookRefused = "3a33269c6d27491fac28ded64be3e2e9"
    /// A hook failed, or was ended at its time limit.
    case hookFailed = "198ce91541c146be9d9ee69fe0add80d"
    /// Changes were left out because hooks were slow.
    case hookChangesLeftOut = "e873650d0a524d3c933fe66c195e9b60"

    /// The value's key among those of an entry. It is no part of the entry's text.
    static let key = "MESSAGE_ID"
}

extension Logger {
    /// Logs an entry of a kind.
    package func log(
        level: Level, _ kind: JournalMessage, _ message: @autoclosure () -> Message, metadata: Metadata
    ) {
        var metadata = metadata
        metadata[JournalMessage.key] = "\(kind.rawValue)"
        log(level: level, message(), metadata: metadata)
    }
}
