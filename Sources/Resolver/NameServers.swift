// SPDX-License-Identifier: Apache-2.0

public import NetworkPath

/// The name servers in the text of a resolv.conf(5), in their order.
///
/// Empty when the file names none. glibc and c-ares then ask this machine's own port 53; that is a habit of theirs and
/// no configuration, so it does not count as one.
public func nameServers(inConfiguration text: some StringProtocol) -> [IPAddress] {
    text.split(whereSeparator: \.isNewline).compactMap { line in
        // A keyword counts at the start of its line only; what follows the address is ignored. Both as in glibc.
        let words = line.split(whereSeparator: { $0 == " " || $0 == "\t" })
        guard line.hasPrefix("nameserver"), words.count > 1, words[0] == "nameserver" else { return nil }
        // The zone of a link-local server ("fe80::1%eth0") says how to reach it, not which it is.
        return IPAddress(String(words[1].prefix { $0 != "%" }))
    }
}
