// SPDX-License-Identifier: Apache-2.0

package import DialtoneNetworkPath

/// A name server as it stands in resolv.conf(5).
package struct NameServer: Hashable, Sendable {
    /// Its address.
    package var address: IPAddress
    /// The link that a link-local address is on, by name: what follows the `%` in "fe80::1%eth0".
    package var interface: String?

    /// A server.
    package init(_ address: IPAddress, on interface: String? = nil) {
        self.address = address
        self.interface = interface
    }
}

/// The name servers in the text of a resolv.conf(5), in their order.
///
/// Empty when the file names none. glibc and c-ares then ask this machine's own port 53; that is a habit of theirs and
/// no configuration, so it does not count as one.
package func nameServers(inConfiguration text: some StringProtocol) -> [NameServer] {
    text.split(whereSeparator: \.isNewline).compactMap { line in
        // A keyword counts at the start of its line only; what follows the address is ignored. Both as in glibc.
        let words = line.split(whereSeparator: { $0 == " " || $0 == "\t" })
        guard line.hasPrefix("nameserver"), words.count > 1, words[0] == "nameserver" else { return nil }
        let parts = words[1].split(separator: "%", maxSplits: 1)
        guard let address = parts.first.flatMap({ IPAddress(String($0)) }) else { return nil }
        return NameServer(address, on: address.isLinkLocal && parts.count == 2 ? String(parts[1]) : nil)
    }
}

/// The lines of a resolv.conf(5) that say anything: without comments, blank lines and differences of white space.
func meaning(ofConfiguration text: some StringProtocol) -> [[Substring]] {
    text.split(whereSeparator: \.isNewline).compactMap { line in
        guard let first = line.first, first != "#", first != ";" else { return nil }
        let words = Substring(line).split(whereSeparator: { $0 == " " || $0 == "\t" })
        return words.isEmpty ? nil : words
    }
}
