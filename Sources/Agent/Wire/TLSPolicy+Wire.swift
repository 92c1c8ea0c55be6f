// SPDX-License-Identifier: Apache-2.0

internal import Connection
internal import DialtoneAPI
internal import Glibc
internal import Varlink

extension TLSPolicy {
    /// What a client asks for. Not validated.
    ///
    /// - Parameter user: whose client it is.
    /// - Throws: `InvalidParameter`, or `InvalidRemote` for files that the client may not name.
    init(_ wire: ConnectionsAPI.TLS, for remote: String, user: UInt32) throws(VarlinkFailure) {
        self.init()
        pins = try Self.pins(wire.pins ?? [])
        if let verify = wire.verify { verifiesCertificate = verify }
        if let version = wire.minVersion {
            guard let version = Version(rawValue: version) else { throw Self.invalid("settings.tls.minVersion") }
            minimumVersion = version
        }
        serverName = wire.serverName
        applicationProtocols = wire.alpn
        authorities = wire.ca
        if let certificate = wire.certificate {
            identity = Identity(certificate: certificate, key: wire.key, passwordFile: wire.passwordFile)
        } else if wire.key != nil || wire.passwordFile != nil {
            throw Self.invalid("settings.tls.certificate")
        }
        // The daemon reads them with its own rights, which may be more than the client's: the words of the failure
        // would tell of files that the client cannot see, and a key would serve whoever names it.
        let namesFiles = authorities != nil || identity != nil
        guard !namesFiles || user == 0 || user == geteuid() else {
            throw VarlinkFailure(
                ConnectionsAPI.InvalidRemote(
                    remote: remote,
                    reason: "files for TLS can be named in the configuration alone: ask the administrator for a "
                        + "[[connection]] with tls = { … } and owner = \(user)"))
        }
    }

    private static func pins(_ texts: [String]) throws(VarlinkFailure) -> Set<CertificatePin> {
        var pins: Set<CertificatePin> = []
        for text in texts {
            guard let pin = CertificatePin(text) else { throw invalid("settings.tls.pins") }
            pins.insert(pin)
        }
        return pins
    }

    private static func invalid(_ parameter: String) -> VarlinkFailure {
        VarlinkFailure(VarlinkService.InvalidParameter(parameter: parameter))
    }
}

extension ConnectionsAPI.Security {
    init(_ summary: TLSSummary) {
        let assurance: Assurance =
            switch summary.assurance {
            case .verified: .verified
            case .pinned: .pinned
            case .unverified: .unverified
            }
        self.init(
            version: summary.version.rawValue, cipher: summary.cipher, assurance: assurance,
            isResumed: summary.isResumed, applicationProtocol: summary.applicationProtocol,
            certificateEndsAt: summary.certificateEnd.map { Timestamp(milliseconds: $0.seconds * 1000) },
            isOwnCertificate: summary.certificateEnd?.isOwn == true ? true : nil)
    }
}
