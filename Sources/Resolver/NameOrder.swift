// SPDX-License-Identifier: Apache-2.0

/// Which sources a name is looked for in, one after the other, by the line `hosts:` of nsswitch.conf(5).
struct NameOrder: Hashable, Sendable {
    enum Source: Hashable, Sendable {
        /// The hosts file.
        case hostsFile
        /// The name servers.
        case nameServers
    }

    let sources: [Source]

    /// The order in which glibc asks where nothing says otherwise.
    static let usual = NameOrder([.hostsFile, .nameServers])

    init(_ sources: [Source]) {
        self.sources = sources
    }

    /// The order in the text of an nsswitch.conf. Other services than the two (`mymachines`, `mdns4_minimal`) are not
    /// asked here, and the reactions in brackets are those that the order already has: a source that has the name ends
    /// the search. Where neither of the two is named, both are asked as usual, since a machine that resolves by other
    /// means alone has name servers all the same, and no better answer could be given.
    init(inConfiguration text: String) {
        var sources: [Source] = []
        for line in text.split(whereSeparator: \.isNewline) {
            let words = line.prefix { $0 != "#" }.split(whereSeparator: { " \t:".contains($0) })
            guard words.first == "hosts" else { continue }
            for word in words.dropFirst() {
                switch word {
                case "files", "db": sources.append(.hostsFile)
                case "dns": sources.append(.nameServers)
                // systemd-resolved reads the hosts file before it asks its servers (nss-resolve(8)).
                case "resolve": sources += [.hostsFile, .nameServers]
                default: break
                }
            }
            break
        }
        var ordered: [Source] = []
        for source in sources where !ordered.contains(source) { ordered.append(source) }
        self = ordered.isEmpty ? .usual : NameOrder(ordered)
    }
}
