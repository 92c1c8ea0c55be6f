// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetlink
package import DialtoneNetworkPath

extension NetworkState {
    /// The addresses of a target's host, each with what the kernel would do with a packet to it; without a source where
    /// it cannot be sent, and for all of them where the kernel cannot be asked.
    package func candidates(_ addresses: [IPAddress], for target: Target) -> [DestinationOrder.Candidate] {
        let unknown = addresses.map { DestinationOrder.Candidate($0, source: nil) }
        guard let kernel else { return unknown }
        let snapshot = kernel.snapshot
        var batch = LookupBatch()
        let slots = addresses.map { batch.add(Inquiry(target, at: [$0], in: snapshot)) }
        guard (try? batch.run(on: kernel, alsoWatching: &gateways)) != nil else { return unknown }
        return zip(addresses, slots).map { address, slot in
            DestinationOrder.Candidate(address, by: batch.path(slot, in: kernel.snapshot))
        }
    }
}
