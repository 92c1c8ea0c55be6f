// SPDX-License-Identifier: Apache-2.0

internal import Connection
internal import TOML

extension ConfigurationReader {
    /// `tls = { … }`. Files are named here and read when the connection is dialled, so that a certificate that is
    /// renewed needs no reload.
    func readTLS(_ table: TableReader) -> TLSPolicy {
        var table = table
        var policy = TLSPolicy()
        policy.authorities = readFile("ca", in: &table)
        policy.identity = readIdentity(&table)
        policy.pins = readPins(&table)
        if let verifies = table.boolean("verify") {
            policy.verifiesCertificate = verifies
            if !verifies, policy.pins.isEmpty, let node = table.any("verify") {
                table.notice(
                    "verify", node.position, "off: whoever is in between can pass for the server; pins would tell")
            }
        }
        let version: Located<TLSPolicy.Version>? = table.choice("min_version")
        if let version { policy.minimumVersion = version.value }
        policy.serverName = table.string("server_name")?.value
        policy.applicationProtocols = table.strings("alpn")?.map(\.value)
        table.finish()
        return policy
    }

    private func readIdentity(_ table: inout TableReader) -> TLSPolicy.Identity? {
        let certificate = readFile("certificate", in: &table)
        let key = readFile("key", in: &table)
        let passwordFile = readFile("password_file", in: &table)
        if let certificate { return .init(certificate: certificate, key: key, passwordFile: passwordFile) }
        if table.isAbsent("certificate") {
            for key in ["key", "password_file"] {
                guard let node = table.any(key) else { continue }
                table.error(key, node.position, "needs a certificate, which tells whose it is")
            }
        }
        return nil
    }

    private func readFile(_ key: String, in table: inout TableReader) -> String? {
        guard let path = table.string(key) else { return nil }
        if path.value.hasPrefix("/") { return path.value }
        table.error(key, path.position, "\"\(path.value)\" is not an absolute path")
        return nil
    }

    private func readPins(_ table: inout TableReader) -> Set<CertificatePin> {
        var pins: Set<CertificatePin> = []
        for text in table.strings("pins") ?? [] {
            if let pin = CertificatePin(text.value) {
                pins.insert(pin)
            } else {
                let right = "\"sha256/\" and the 44 characters of a public key's SHA-256 in base64 (RFC 7469)"
                table.error("pins", text.position, "\"\(text.value)\" is no pin; write \(right)")
            }
        }
        return pins
    }
}
