// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneNetlink
internal import DialtoneNetworkPath
internal import DialtonePlatform

extension LinkDetail {
    /// What an `RTM_NEWLINK` says beyond the interface, with its index.
    static func read(_ message: NetlinkMessage) -> (index: Int, detail: LinkDetail)? {
        guard message.type == RTM_NEWLINK, let header = message.payload(ifinfomsg.self),
            CInt(header.ifi_family) == AF_UNSPEC
        else { return nil }
        let silent = IFF_LOOPBACK.rawValue | IFF_NOARP.rawValue | IFF_POINTOPOINT.rawValue
        var detail = LinkDetail(resolvesNeighbours: header.ifi_flags & silent == 0)
        var isLowerElsewhere = false
        for attribute in message.attributes(after: ifinfomsg.self) {
            switch attribute.type {
            case Int(IFLA_LINK): detail.lower = attribute.uint32.flatMap { $0 == 0 ? nil : Int($0) }
            case Int(IFLA_LINK_NETNSID): isLowerElsewhere = true
            case Int(IFLA_MASTER): detail.master = attribute.uint32.map { Int($0) }
            case Int(IFLA_GROUP): detail.group = attribute.uint32 ?? 0
            case Int(IFLA_LINKINFO): detail.takeInfo(attribute)
            default: break
            }
        }
        if isLowerElsewhere { detail.lower = nil }
        return (Int(header.ifi_index), detail)
    }

    private mutating func takeInfo(_ info: NetlinkAttribute) {
        for attribute in info.nested {
            switch attribute.type {
            case Int(IFLA_INFO_KIND): driver = attribute.string
            // What the data mean, the driver says; its name comes first.
            case Int(IFLA_INFO_DATA) where driver == "vrf":
                table = attribute.nested.first { $0.type == Int(IFLA_VRF_TABLE) }?.uint32
            default: break
            }
        }
    }
}

extension NeighbourEntry {
    /// The entry in an `RTM_NEWNEIGH`; `nil` for anything else, as an error that says there is none.
    init?(_ message: NetlinkMessage) {
        guard message.type == RTM_NEWNEIGH, let header = message.payload(ndmsg.self),
            let state = State(CInt(header.ndm_state))
        else { return nil }
        let info = message.attributes(after: ndmsg.self).first { $0.type == Int(NDA_CACHEINFO) }?.bytes
        let size = MemoryLayout<nda_cacheinfo>.size
        let updated = info.flatMap { $0.count >= size ? $0.loadUnaligned(as: nda_cacheinfo.self).ndm_updated : nil }
        self.init(state, age: updated.map { .kernelTicks(Int64($0)) })
    }
}

extension NeighbourEntry.State {
    /// The state in the bits of `ndm_state`; `nil` for an entry that nothing was done with yet.
    fileprivate init?(_ bits: CInt) {
        switch bits {
        case NUD_INCOMPLETE: self = .incomplete
        case NUD_REACHABLE: self = .reachable
        case NUD_STALE: self = .stale
        case NUD_DELAY, NUD_PROBE: self = .probing
        case NUD_FAILED: self = .failed
        case NUD_NOARP, NUD_PERMANENT: self = .fixed
        default: return nil
        }
    }
}
