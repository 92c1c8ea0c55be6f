// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneNetlink
internal import DialtoneNetworkPath
internal import DialtonePlatform

/// The kernel's settings of IP (`RTM_GETNETCONF`), which sysctl(8) shows as files.
extension NetlinkSocket {
    /// Whether the machine forwards packets of this family for others.
    func forwards(_ family: IPAddress.Family) throws(SystemError) -> Bool {
        try setting(NETCONFA_FORWARDING, ofInterface: NETCONFA_IFINDEX_ALL, family)
    }

    /// Whether a setting is on; false also where the kernel has none of that name.
    func setting(
        _ attribute: some BinaryInteger, ofInterface index: CInt, _ family: IPAddress.Family
    ) throws(SystemError) -> Bool {
        var header = netconfmsg()
        header.ncm_family = family.number
        let request = NetlinkRequest(type: RTM_GETNETCONF, flags: NLM_F_REQUEST, header: header) {
            nla_put_u32($0, CInt(NETCONFA_IFINDEX), UInt32(bitPattern: index))
        }
        let value = try ask(request) { message in
            message.attributes(after: netconfmsg.self).first { $0.type == Int(attribute) }?.uint32
        }
        return value.map { $0 != 0 } ?? false
    }
}
