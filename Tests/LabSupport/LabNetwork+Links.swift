// SPDX-License-Identifier: Apache-2.0

/// Cables, links and addresses of the host.
extension LabNetwork {
    /// Pulls the cable out of an uplink: the host's interface stays up and loses its carrier. Addresses and routes
    /// stay. Returns when the host's kernel shows it.
    package func cut(_ uplink: Uplink) async throws {
        try await router.ip("link set \(uplink.name) down")
        try await host.link(uplink.name, "up, without carrier") { $0.isUp && !$0.hasCarrier }
    }

    /// Plugs the cable back in. Returns when the host's kernel shows the carrier.
    package func plug(_ uplink: Uplink) async throws {
        try await router.ip("link set \(uplink.name) up")
        try await waitUntilUsable(uplink)
    }

    /// Takes the host's interface down. With it go, as the kernel has it, its IPv4 routes (without a message) and its
    /// IPv6 addresses and routes.
    package func takeDown(_ uplink: Uplink) async throws {
        try await host.ip("link set \(uplink.name) down")
    }

    /// Takes the host's interface up and gives it back what a network manager would: addresses and default routes.
    package func bringUp(_ uplink: Uplink) async throws {
        try await host.ip(batch: ["link set \(uplink.name) up"] + configuration(of: uplink))
        try await waitUntilUsable(uplink)
    }

    /// Waits for the carrier, and for the addresses unless their duplicates are looked for. At both ends: until the
    /// kernel has drawn its conclusions from a new carrier, it drops what is sent there.
    func waitUntilUsable(_ uplink: Uplink) async throws {
        let detecting = detectsDuplicates(on: uplink)
        try await router.link(uplink.name, "has carrier") { $0.hasCarrier }
        try await host.link(uplink.name, "has carrier, and no address is tentative") { link in
            link.hasCarrier && (detecting || link.addresses.allSatisfy { $0.tentative != true })
        }
    }

    /// Adds an address to the host's end of an uplink: `"192.0.2.9/24"`.
    package func addAddress(_ prefix: String, to uplink: Uplink) async throws {
        try await host.ip(addressCommand("add", prefix, uplink))
    }

    /// Removes an address, and with it what the kernel removes: routes that prefer it as their source, and, with the
    /// last IPv4 address, every IPv4 route of the link, without a message.
    package func removeAddress(_ prefix: String, from uplink: Uplink) async throws {
        try await host.ip("address delete \(prefix) dev \(uplink.name)")
    }

    /// What a new lease does: the new address comes, the old one goes, and the default route of its family is there
    /// again.
    package func replaceAddress(_ family: Family, on uplink: Uplink, with prefix: String) async throws {
        try await host.ip(batch: [
            addressCommand("add", prefix, uplink),
            "address delete \(uplink.prefix(family)) dev \(uplink.name)",
            "route replace " + defaultRoute(via: uplink, family, metric: uplink.metric),
        ])
    }

    /// Turns duplicate address detection on or off for the addresses an uplink gets from now on (off at the start).
    /// With it an IPv6 address is tentative for one to two seconds.
    package func setDuplicateAddressDetection(_ isOn: Bool, on uplink: Uplink) async throws {
        try await host.sysctl([("net.ipv6.conf.\(uplink.name).accept_dad", isOn ? "1" : "0")])
        setDetectsDuplicates(isOn, on: uplink)
    }

    /// `nodad` besides the parameter, because without it an address is tentative until a kernel thread had its turn.
    func addressCommand(_ verb: String, _ prefix: String, _ uplink: Uplink) -> String {
        "address \(verb) \(prefix) dev \(uplink.name)" + (detectsDuplicates(on: uplink) ? "" : " nodad")
    }
}
