// SPDX-License-Identifier: Apache-2.0

import DialtoneConnection
import Testing

@Suite struct TLSPolicyTests {
    @Test func `a pin is a base64 digest with or without its prefix`() {
        let digest = "d6qzRu9zOECb90Uez27xWltNsj0e1Md7GkYYkVoZWmM="
        #expect(CertificatePin(digest)?.description == "sha256/\(digest)")
        #expect(CertificatePin("sha256/\(digest)") == CertificatePin(digest))
    }

    @Test(arguments: [
        "", "sha256/", "sha1/d6qzRu9zOECb90Uez27xWltNsj0e1Md7GkYYkVoZWmM=",
        "d6qzRu9zOECb90Uez27xWltNsj0e1Md7GkYYkVoZWmM", "d6qzRu9zOECb90Uez27xWltNsj0e1Md7GkYYkVoZWmN=",
        "d6qzRu9zOECb90Uez27xWltNsj0e1Md7GkYYkVoZWm==", "d6qzRu9zOECb90Uez27xWltNsj0e1Md7GkYYkVoZW-M=",
        "77aab346ef7338409bf7451ecf6ef15a5b4db23d1ed4c77b1a4618915a195a63",
    ])
    func `other texts are no pin`(text: String) {
        #expect(CertificatePin(text) == nil)
    }

    @Test func `what time alone mends is not permanent`() {
        let passing: [TLSFailure] = [
            .certificate(.notYetValid(subject: "x", until: "y", clock: "z")), .alert(TLSAlert(rawValue: 80)),
            .endedInHandshake, .truncated, .broken("x"),
        ]
        let lasting: [TLSFailure] = [
            .certificate(.expired(subject: "x", since: "y")), .certificate(.wrongName(wanted: "x", found: [])),
            .noCommonVersion(minimum: .v12), .noCommonCipher, .clientCertificateRequired, .notTLS,
            .unusableFile(path: "x", problem: "y"),
        ]
        #expect(passing.allSatisfy { !$0.isPermanent })
        #expect(lasting.allSatisfy { $0.isPermanent && $0.advice != nil })
    }

    @Test func `an alert is told by name or number`() {
        #expect(TLSAlert(rawValue: 48).description == "unknown CA")
        #expect(TLSAlert(rawValue: 255).description == "alert 255")
    }
}
