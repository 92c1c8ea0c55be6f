// SPDX-License-Identifier: Apache-2.0

import DialtoneLabSupport
import Foundation

/// What the kernel says of messages that it could not deliver.
enum NetlinkDrops {
    /// The messages lost so far by the sockets that hear of IPv6 rules, in the namespace of the calling thread. Only
    /// the product's do; the Lab's own monitor does not ask for them.
    static func ofWatchersOfRules() throws -> Int {
        let table = try String(contentsOfFile: "/proc/thread-self/net/netlink", encoding: .utf8)
        // sk, Eth (the protocol), Pid, Groups, Rmem, Wmem, Dump, Locks, Drops, Inode.
        return table.split(separator: "\n").dropFirst().reduce(0) { sum, line in
            let fields = line.split(separator: " ")
            guard fields.count >= 9, let groups = UInt32(fields[3], radix: 16), groups & ipv6RuleGroup != 0,
                let drops = Int(fields[8])
            else { return sum }
            return sum + drops
        }
    }

    /// RTNLGRP_IPV6_RULE is the nineteenth (linux/rtnetlink.h).
    private static let ipv6RuleGroup: UInt32 = 1 << 18
}
