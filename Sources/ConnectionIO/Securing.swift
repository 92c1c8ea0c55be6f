// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnection
internal import DialtonePlatform
internal import DialtoneRelayMessages

/// How a flow is to be secured: whom it is with, and the files that are needed, open. They are opened before the flow's
/// first packet: where one cannot be, the server is not bothered. `dialtone-tls` reads them, and this process does not.
@AgentQueue
final class Securing {
    private let request: TLSRequest
    private let connection: String
    private let relay: RelayAccess
    private let files: SettingsFiles

    /// Opens the files.
    ///
    /// - Throws: ``TLSFailure/unusableFile(path:problem:)``.
    init(_ request: TLSRequest, of connection: String, by relay: RelayAccess) throws(TLSFailure) {
        self.request = request
        self.connection = connection
        self.relay = relay
        files = try SettingsFiles(of: request.policy)
    }

    /// Has a socket secured that is connected. Not earlier: a session spends a ticket.
    ///
    /// - Throws: what kept `dialtone-tls` from being asked; `EAGAIN` for now.
    func begin(_ socket: CInt, for user: UInt32) throws(SystemError) -> SecuredStream {
        try SecuredStream(request, socket, files.numbers, of: connection, for: user, by: relay)
    }
}
