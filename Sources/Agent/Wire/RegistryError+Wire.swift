// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtonePlatform
internal import DialtoneVarlink

/// Runs `body`; the registry's refusal becomes the interface's error about the connection of a name.
@AgentQueue
func answer<T>(about name: String, _ body: () throws(RegistryError) -> T) throws(VarlinkFailure) -> T {
    do throws(RegistryError) {
        return try body()
    } catch {
        throw VarlinkFailure(error, about: name)
    }
}

extension VarlinkFailure {
    /// What a client is told of the registry's refusal to do something with the connection of a name.
    init(_ refusal: RegistryError, about name: String) {
        self =
            switch refusal {
            case .nameTaken: VarlinkFailure(ConnectionsAPI.NameTaken(name: name))
            case .noSuchConnection: VarlinkFailure(ConnectionsAPI.NoSuchConnection(name: name))
            case .ambiguous(let owners):
                VarlinkFailure(ConnectionsAPI.AmbiguousName(name: name, owners: owners.map { Int($0) }))
            case .quotaExceeded(let limit): VarlinkFailure(ConnectionsAPI.QuotaExceeded(limit: limit))
            case .outOfResources(let shortage):
                VarlinkFailure(ConnectionsAPI.OutOfResources(reason: shortage.reason))
            case .invalidName: VarlinkFailure(ServiceAPI.InvalidParameter(parameter: "name"))
            case .configured: VarlinkFailure(ServiceAPI.PermissionDenied())
            case .notReady(let state): VarlinkFailure(ConnectionsAPI.NotReady(name: name, state: .init(state)))
            case .heldByClient(let process):
                VarlinkFailure(ConnectionsAPI.HeldByClient(name: name, process: Int(process)))
            case .staleEpoch(let current):
                VarlinkFailure(ConnectionsAPI.StaleEpoch(name: name, epoch: Int(clamping: current)))
            case .notTaken: VarlinkFailure(ConnectionsAPI.NotTaken(name: name))
            case .invalidTimeout(let reason):
                VarlinkFailure(ConnectionsAPI.InvalidTimeout(name: name, reason: reason))
            case .system(let error):
                VarlinkFailure(ConnectionsAPI.SystemFailure(name: name, reason: error.description))
            }
    }
}
