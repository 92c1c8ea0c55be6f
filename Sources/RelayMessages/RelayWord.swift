// SPDX-License-Identifier: Apache-2.0

package import DialtoneConnection
package import DialtonePlatform

/// What `dialtone-tls` tells of a flow: `secured` or `failed` first, and `ended` once after `secured`.
package enum RelayWord: Hashable, Sendable {
    /// The server is who it must be, and plaintext flows.
    case secured(TLSSummary)
    /// It did not come about.
    case failed(RelayFailure)
    /// The server's part is over: in order, or by a failure. What came before is delivered, however slowly it is read.
    case ended(RelayFailure?)

    private enum Kind: String {
        case secured, failed, ended
    }

    private enum Field {
        static let (kind, version, cipher, assurance, isResumed, applicationProtocol, code) = (1, 2, 3, 4, 5, 6, 7)
        static let (failure, certificateEnd, isOwnCertificate) = (8, 9, 10)
    }

    /// As it goes over the socket.
    package var encoded: [UInt8] {
        var fields = FieldWriter()
        switch self {
        case .secured(let summary):
            fields.put(Field.kind, Kind.secured.rawValue)
            fields.put(Field.version, summary.version.rawValue)
            fields.put(Field.cipher, summary.cipher)
            fields.put(Field.assurance, summary.assurance.rawValue)
            fields.put(Field.isResumed, summary.isResumed ? 1 : 0)
            fields.put(Field.applicationProtocol, summary.applicationProtocol)
            if let end = summary.certificateEnd {
                fields.put(Field.certificateEnd, signed: end.seconds)
                if end.isOwn { fields.put(Field.isOwnCertificate, 1) }
            }
        case .failed(let failure):
            fields.put(Field.kind, Kind.failed.rawValue)
            Self.put(failure, &fields)
        case .ended(let failure):
            fields.put(Field.kind, Kind.ended.rawValue)
            if let failure { Self.put(failure, &fields) }
        }
        return fields.bytes
    }

    /// The years that a certificate may end in (RFC 5280, section 4.1.2.5: until 9999), and a little around them.
    private static let instants: ClosedRange<Int64> = -(1 << 38)...(1 << 38)

    private static func instant(_ value: FieldReader.Value) throws(DamagedState) -> Int64 {
        let seconds = try value.signed()
        guard instants.contains(seconds) else { throw DamagedState() }
        return seconds
    }

    private static func put(_ failure: RelayFailure, _ fields: inout FieldWriter) {
        switch failure {
        case .socket(let code): fields.put(Field.code, UInt64(UInt32(bitPattern: code)))
        case .tls(let failure): fields.put(Field.failure, failure.write)
        }
    }

    /// A word that came.
    package init(_ bytes: ArraySlice<UInt8>) throws(DamagedState) {
        var kind: Kind?
        var (version, assurance) = (TLSPolicy.Version?.none, TLSSummary.Assurance?.none)
        var (cipher, isResumed, applicationProtocol) = ("", false, String?.none)
        var (end, isOwn) = (Int64?.none, false)
        var failure: RelayFailure?
        var fields = FieldReader(bytes)
        while let (field, value) = try fields.next() {
            switch field {
            case Field.kind: kind = try value.choice()
            case Field.version: version = try value.choice()
            case Field.cipher: cipher = try value.text()
            case Field.assurance: assurance = try value.choice()
            case Field.isResumed: isResumed = try value.unsigned() != 0
            case Field.applicationProtocol: applicationProtocol = try value.text()
            case Field.certificateEnd: end = try Self.instant(value)
            case Field.isOwnCertificate: isOwn = try value.unsigned() != 0
            case Field.code: failure = .socket(Int32(bitPattern: try value.unsigned(as: UInt32.self)))
            case Field.failure: failure = .tls(try TLSFailure(value.fields()))
            default: break
            }
        }
        switch (kind, failure) {
        case (.secured, _):
            guard let version, let assurance else { throw DamagedState() }
            self = .secured(
                TLSSummary(
                    version: version, cipher: cipher, assurance: assurance, isResumed: isResumed,
                    applicationProtocol: applicationProtocol,
                    certificateEnd: end.map { .init(seconds: $0, isOwn: isOwn) }))
        case (.failed, let failure?): self = .failed(failure)
        case (.ended, let failure): self = .ended(failure)
        case (.failed, nil), (nil, _): throw DamagedState()
        }
    }
}

/// Why a flow with TLS did not come about, or ended.
package enum RelayFailure: Error, Hashable, Sendable {
    /// The TCP socket failed, with the kernel's number (errno(3)).
    case socket(Int32)
    /// TLS did.
    case tls(TLSFailure)
}
