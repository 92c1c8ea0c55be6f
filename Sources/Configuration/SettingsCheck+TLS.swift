// SPDX-License-Identifier: Apache-2.0

internal import DialtoneAPI
internal import DialtoneConnection

extension SettingsCheck {
    /// How a connection is secured. Files are named here and read when it is dialled, so that a certificate that is
    /// renewed needs no reload.
    mutating func tls(_ tls: ConnectionsAPI.TLS?) -> TLSPolicy? {
        guard let tls else { return nil }
        let before = found.all.count
        var policy = TLSPolicy()
        policy.authorities = file(tls.ca, "tls.ca")
        let certificate = file(tls.certificate, "tls.certificate")
        let key = file(tls.key, "tls.key")
        let passwordFile = file(tls.passwordFile, "tls.passwordFile")
        if let certificate {
            policy.identity = .init(certificate: certificate, key: key, passwordFile: passwordFile)
        } else if tls.certificate == nil, !unread.mayContain("tls.certificate") {
            let needs = "needs a certificate, which tells whose it is"
            if tls.key != nil { found.wrong("tls.key", needs) }
            if tls.passwordFile != nil { found.wrong("tls.passwordFile", needs) }
        }
        for (index, text) in (tls.pins ?? []).enumerated() {
            if let pin = CertificatePin(text) {
                policy.pins.insert(pin)
            } else {
                let right = "\"sha256/\" and the 44 characters of a public key's SHA-256 in base64 (RFC 7469)"
                found.wrong("tls.pins[\(index)]", "\"\(text)\" is no pin; write \(right)")
            }
        }
        policy.verifiesCertificate = tls.verify ?? true
        if !policy.verifiesCertificate, (tls.pins ?? []).isEmpty, !unread.mayContain("tls.pins") {
            found.withoutEffect("tls.verify", "off: whoever is in between can pass for the server; pins would tell")
        }
        let version: TLSPolicy.Version? = choice(tls.minVersion, "tls.minVersion")
        if let version { policy.minimumVersion = version }
        policy.serverName = tls.serverName
        policy.applicationProtocols = tls.alpn
        let saysSomething = policy != TLSPolicy() || found.all.count > before
        if saysSomething, let problem = remote?.lackOfTLS { found.wrong(Self.field(of: problem), problem.reason) }
        for problem in policy.problems { found.wrong(Self.field(of: problem), problem.reason) }
        return policy
    }

    private mutating func file(_ path: String?, _ field: String) -> String? {
        guard let path else { return nil }
        if path.hasPrefix("/") { return path }
        found.wrong(field, "\"\(path)\" is not an absolute path")
        return nil
    }
}
