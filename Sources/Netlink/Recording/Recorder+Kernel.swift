// SPDX-License-Identifier: Apache-2.0

internal import DialtoneNetworkPath

// What the kernel's side of the agent has recorded; ``ReplayedKernel`` reads it.

extension Recorder {
    /// Records what one read of a socket brought.
    func took(_ reception: NetlinkSocket.Reception, on channel: RecordingChannel) {
        switch reception {
        case .messages(let datagram): received(datagram, on: channel)
        case .overrun: note(RecordingMark("overrun", [.init("channel", channel.rawValue)]))
        case .empty: break
        }
    }

    /// Records that the dumps just read are the state from now on.
    func noteReread(isCoherent: Bool) {
        note(RecordingMark("reread", [.init("coherent", isCoherent)]))
    }

    /// Records that the state may be wrong until the next re-read.
    func noteIncoherence() {
        note(RecordingMark("incoherent"))
    }

    /// Records that a gateway's failure does not count any more.
    func noteDoubt(of gateway: NetworkSnapshot.Neighbour) {
        note(
            RecordingMark(
                "doubt", [.init("link", gateway.interfaceIndex), .init("gateway", gateway.address)]))
    }

    /// Records what sysfs says of an interface; it is asked once for each name.
    func noteDeviceType(_ type: String?, of name: String) {
        note(RecordingMark("device", [.init("name", name)] + (type.map { [.init("type", $0)] } ?? [])))
    }
}

extension NetworkSnapshot.Neighbour {
    /// The gateway of a mark.
    init?(_ mark: RecordingMark) {
        guard let link = mark["link"].flatMap({ Int($0) }), let address = mark["gateway"].flatMap({ IPAddress($0) })
        else { return nil }
        self.init(interfaceIndex: link, address: address)
    }
}
