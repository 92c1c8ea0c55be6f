// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneNetlink
package import DialtoneNetworkPath
internal import Glibc

/// The kernel of a recording: takes its entries one by one and holds, after each, the snapshot that a ``KernelMonitor``
/// had then, and the kernel's latest answer to each lookup.
///
/// The messages go through the same decoding as live ones. What is not repeated is when things were done: a re-read, an
/// evaluation happen where the recording says that they did.
package struct ReplayedKernel {
    /// The state as of the last entry taken.
    package private(set) var snapshot = NetworkSnapshot()

    private var answers: [RouteQuery: RouteAnswer] = [:]
    private var open: [UInt32: Question] = [:]
    private var dumped: (links: [KernelEvent], addresses: [KernelEvent]) = ([], [])
    private let devices: DeviceTypes
    private var kinds: InterfaceKinds

    /// What was asked under a number.
    private enum Question {
        case links
        case addresses
        case route(RouteQuery)
        case neighbour(NetworkSnapshot.Neighbour)
    }

    /// The kernel at the beginning of a recording.
    package init(_ recording: Recording) {
        let devices = DeviceTypes(recording)
        self.devices = devices
        kinds = InterfaceKinds(deviceType: devices.type)
    }

    /// The kernel's answer to `query` as of now: the latest that was recorded; `nil` where it was not asked so far.
    package func answer(to query: RouteQuery) -> RouteAnswer? { answers[query] }

    /// Takes the entry at `position` of the recording.
    package mutating func take(_ entry: Recording.Entry, at position: Int) {
        devices.position = position
        switch entry.content {
        case .sent(_, let requests): asked(requests)
        case .received(.requests, let datagram): answered(datagram)
        case .received(_, let datagram):
            forEachMessage(in: datagram) { message in
                if let event = KernelEvent(message, kinds: &kinds) { _ = snapshot.apply(event) }
            }
        case .mark(let mark): take(mark)
        }
    }

    /// Takes the user's word on what interfaces cost.
    package mutating func setCosts(_ costs: CostPolicy) { snapshot.costs = costs }

    private mutating func take(_ mark: RecordingMark) {
        switch mark.word {
        case "reread":
            var fresh = NetworkSnapshot()
            for event in dumped.links + dumped.addresses { _ = fresh.apply(event) }
            fresh.isCoherent = mark["coherent"] == "true"
            fresh.takeNeighbours(of: snapshot)
            _ = snapshot.replace(with: fresh)
        case "incoherent": snapshot.isCoherent = false
        case "doubt":
            if let gateway = NetworkSnapshot.Neighbour(mark) {
                _ = snapshot.apply(.neighbourChanged(gateway, isFailed: false))
            }
        default: break
        }
    }

    // MARK: Questions and answers

    private mutating func asked(_ requests: ArraySlice<UInt8>) {
        // Who asks anew waits for nothing older.
        open = [:]
        forEachMessage(in: requests) { message in
            switch message.type {
            case RTM_GETLINK:
                dumped.links = []
                open[message.sequence] = .links
            case RTM_GETADDR:
                dumped.addresses = []
                open[message.sequence] = .addresses
            case RTM_GETROUTE: open[message.sequence] = RouteQuery(message).map { .route($0) }
            case RTM_GETNEIGH: open[message.sequence] = NetworkSnapshot.Neighbour(message).map { .neighbour($0) }
            default: break
            }
        }
    }

    private mutating func answered(_ datagram: ArraySlice<UInt8>) {
        forEachMessage(in: datagram) { message in
            switch open[message.sequence] {
            case .links: if let event = KernelEvent(message, kinds: &kinds) { dumped.links.append(event) }
            case .addresses: if let event = KernelEvent(message, kinds: &kinds) { dumped.addresses.append(event) }
            case .route(let query): if let answer = RouteAnswer(message) { answers[query] = answer }
            case .neighbour(let neighbour):
                // Anything but an entry is the kernel's word that it has none.
                let event = KernelEvent(message, kinds: &kinds) ?? .neighbourForgotten(neighbour)
                _ = snapshot.apply(event)
            case nil: break
            }
        }
    }

    private func forEachMessage(in bytes: ArraySlice<UInt8>, _ body: (NetlinkMessage) -> Void) {
        // A copy, since the messages of a datagram are read in place and begin at a multiple of four.
        Array(bytes).withUnsafeBytes { NetlinkMessage.forEach(in: $0, body) }
    }
}

/// What sysfs said of each interface's type. It was asked just after the message that told of the interface was
/// recorded, so its answer stands behind that.
private final class DeviceTypes {
    private var answers: [String: [(position: Int, type: String?)]] = [:]
    /// The place in the recording that is replayed.
    var position = 0

    init(_ recording: Recording) {
        for (position, entry) in recording.entries.enumerated() {
            if case .mark(let mark) = entry.content, mark.word == "device", let name = mark["name"] {
                answers[name, default: []].append((position, mark["type"]))
            }
        }
    }

    func type(of name: String) -> String? {
        let known = answers[name] ?? []
        return (known.first { $0.position >= position } ?? known.last)?.type
    }
}

extension RouteQuery {
    /// The query of a request; `nil` for one that asks something else than by which route a packet would go.
    init?(_ message: NetlinkMessage) {
        guard let header = message.payload(rtmsg.self),
            // Other flags ask for the routing table's entry and not for the packet's route.
            header.rtm_flags & ~UInt32(RTM_F_LOOKUP_TABLE) == 0
        else { return nil }
        var destination: IPAddress?
        var query = RouteQuery(IPAddress(v4: 0))
        for attribute in message.attributes(after: rtmsg.self) {
            let bytes = attribute.bytes
            switch attribute.type {
            case Int(RTA_DST.rawValue): destination = IPAddress(bytes: bytes)
            case Int(RTA_SRC.rawValue): query.source = IPAddress(bytes: bytes)
            case Int(RTA_OIF.rawValue): query.interfaceIndex = attribute.uint32.map { Int($0) }
            case Int(RTA_MARK.rawValue): query.mark = attribute.uint32
            case Int(RTA_UID.rawValue): query.user = attribute.uint32
            case Int(RTA_IP_PROTO.rawValue): query.transport = bytes.first == 6 ? .tcp : .udp
            case Int(RTA_DPORT.rawValue): query.port = bytes.reduce(0) { $0 << 8 | UInt16($1) }
            default: break
            }
        }
        guard let destination else { return nil }
        query.destination = destination
        self = query
    }
}

extension NetworkSnapshot.Neighbour {
    /// The neighbour that a request asks about.
    fileprivate init?(_ message: NetlinkMessage) {
        guard let header = message.payload(ndmsg.self),
            let destination = message.attributes(after: ndmsg.self).first(where: { $0.type == Int(NDA_DST) }),
            let address = IPAddress(bytes: destination.bytes)
        else { return nil }
        self.init(interfaceIndex: Int(header.ndm_ifindex), address: address)
    }
}
