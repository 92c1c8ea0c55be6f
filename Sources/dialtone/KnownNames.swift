// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DialtoneAPI
internal import DialtoneClient
internal import DialtonePlatform
internal import DialtoneVarlink
internal import Glibc

/// The names of connections, for those that were mistyped.
enum KnownNames {
    /// Ends the command where no connection has one of `names`, with the name that was probably meant.
    ///
    /// - Parameter kept: names that are known beside those of the present connections.
    static func require(_ names: [String], beside kept: Set<String> = []) async throws {
        guard !kept.isSuperset(of: names) else { return }
        let known = kept.union(try await present())
        guard let unknown = names.first(where: { !known.contains($0) }) else { return }
        let advice = hint(for: unknown, among: known) ?? " \"dialtone list\" lists all connections."
        Output.fail("There is no connection \"\(unknown)\".\(advice)")
        throw ExitCode(EXIT_FAILURE)
    }

    /// What to add to the daemon's word that there is no such connection: the name that was probably meant, if any.
    static func hint(for error: DialtoneError) async -> String {
        guard case .refused(_, let failure) = error,
            let missing = failure.decoded(as: ConnectionsAPI.NoSuchConnection.self)
        else { return "" }
        return hint(for: missing.name, among: (try? await present()) ?? []) ?? ""
    }

    /// The names of the present connections.
    static func present() async throws -> Set<String> {
        Set(try await DialtoneClient().call(ConnectionsAPI.List.self, VarlinkEmpty()).connections.map(\.name))
    }

    private static func hint(for name: String, among known: Set<String>) -> String? {
        suggestion(for: name, among: known.sorted()).map { " Did you mean \"\($0)\"?" }
    }
}
