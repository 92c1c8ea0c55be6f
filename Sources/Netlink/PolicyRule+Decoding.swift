// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneNetlink
internal import DialtoneNetworkPath
internal import Glibc

extension PolicyRule {
    /// Attributes that came after the headers which this is built with (include/uapi/linux/fib_rules.h, 6.15).
    private enum Later {
        static let dscp = 25
        static let flowLabel = 26
        static let destinationPortMask = 29
        static let sourcePortMask = 28
    }

    /// The rule in an `RTM_NEWRULE`; `nil` for anything else, and for rules of other families.
    init?(_ message: NetlinkMessage) {
        guard message.type == RTM_NEWRULE, let header = message.payload(fib_rule_hdr.self),
            let family = IPAddress.Family(number: header.family)
        else { return nil }
        self.init(family, priority: 0, .nop)
        isInverted = header.flags & UInt32(FIB_RULE_INVERT) != 0
        trafficClass = header.tos
        var table = UInt32(header.table)
        var jump: UInt32 = 0
        var hasMask = false
        for attribute in message.attributes(after: fib_rule_hdr.self) {
            switch attribute.type {
            case Int(FRA_PRIORITY): priority = attribute.uint32 ?? 0
            case Int(FRA_TABLE): table = attribute.uint32 ?? table
            case Int(FRA_GOTO): jump = attribute.uint32 ?? 0
            case Int(FRA_FWMARK): mark = attribute.uint32 ?? 0
            case Int(FRA_FWMASK):
                markMask = attribute.uint32 ?? 0
                hasMask = true
            // All bits set is the kernel's word for "not".
            case Int(FRA_SUPPRESS_PREFIXLEN):
                suppressedLength = attribute.uint32.flatMap { $0 == .max ? nil : Int($0) }
            case Int(FRA_SUPPRESS_IFGROUP): suppressedGroup = attribute.uint32.flatMap { $0 == .max ? nil : $0 }
            default: takeSelector(attribute, header)
            }
        }
        if mark != 0, !hasMask { markMask = .max }
        action = Action(header.action, table: table, jump: jump)
    }

    private mutating func takeSelector(_ attribute: NetlinkAttribute, _ header: fib_rule_hdr) {
        switch attribute.type {
        case Int(FRA_SRC): source = IPAddress(bytes: attribute.bytes).map { IPPrefix($0, length: Int(header.src_len)) }
        case Int(FRA_DST):
            destination = IPAddress(bytes: attribute.bytes).map { IPPrefix($0, length: Int(header.dst_len)) }
        case Int(FRA_IIFNAME): inbound = attribute.string
        case Int(FRA_OIFNAME): outbound = attribute.string
        case Int(FRA_L3MDEV): isForVRF = attribute.bytes.first.map { $0 != 0 } ?? false
        case Int(FRA_IP_PROTO): transport = attribute.bytes.first.flatMap { $0 == 0 ? nil : $0 }
        case Int(FRA_UID_RANGE): users = attribute.range(of: UInt32.self)
        case Int(FRA_SPORT_RANGE): sourcePorts = attribute.range(of: UInt16.self).map { Ports($0) }
        case Int(FRA_DPORT_RANGE): destinationPorts = attribute.range(of: UInt16.self).map { Ports($0) }
        case Later.sourcePortMask: sourcePorts?.mask = attribute.partialMask
        case Later.destinationPortMask: destinationPorts?.mask = attribute.partialMask
        case Later.dscp: trafficClass = (attribute.bytes.first ?? 0) << 2
        // A lookup has neither a flow label nor a traffic class: whatever number says that the rule wants one.
        case Later.flowLabel where attribute.bytes.contains { $0 != 0 }: trafficClass = .max
        case Int(FRA_TUN_ID):
            tunnel = attribute.bytes.count >= 8 ? UInt64(bigEndian: attribute.bytes.loadUnaligned(as: UInt64.self)) : 0
        default: break
        }
    }
}

extension PolicyRule.Action {
    fileprivate init(_ number: UInt8, table: UInt32, jump: UInt32) {
        switch Int(number) {
        case Int(FR_ACT_TO_TBL): self = .table(table)
        case Int(FR_ACT_GOTO): self = .goto(jump)
        case Int(FR_ACT_NOP): self = .nop
        case Int(FR_ACT_BLACKHOLE): self = .blackhole
        case Int(FR_ACT_UNREACHABLE): self = .unreachable
        case Int(FR_ACT_PROHIBIT): self = .prohibit
        default: self = .other(number)
        }
    }
}

extension NetlinkAttribute {
    /// Its value as a mask of ports; `nil` for one of all bits, which the kernel gives to every single port.
    fileprivate var partialMask: UInt16? {
        guard bytes.count >= 2 else { return nil }
        let mask = bytes.loadUnaligned(as: UInt16.self)
        return mask == .max ? nil : mask
    }

    /// Two numbers of which the second is not the lower one.
    fileprivate func range<T: FixedWidthInteger & BitwiseCopyable>(of _: T.Type) -> ClosedRange<T>? {
        let size = MemoryLayout<T>.size
        guard bytes.count >= 2 * size else { return nil }
        let first = bytes.loadUnaligned(as: T.self)
        let last = bytes.loadUnaligned(fromByteOffset: size, as: T.self)
        return first <= last ? first...last : nil
    }
}

extension IPAddress.Family {
    /// The family of this number; `nil` for another than the Internet's two.
    init?(number: UInt8) {
        switch CInt(number) {
        case AF_INET: self = .v4
        case AF_INET6: self = .v6
        default: return nil
        }
    }

    /// Its number.
    var number: UInt8 { UInt8(self == .v4 ? AF_INET : AF_INET6) }
}
