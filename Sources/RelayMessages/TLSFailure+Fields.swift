// SPDX-License-Identifier: Apache-2.0

internal import DialtoneConnection
internal import DialtonePlatform

// A failure of TLS as numbered fields: which it is, and what it says.

extension TLSFailure {
    private enum Kind: String {
        case certificate, noCommonVersion, noCommonCipher, noCommonProtocol, clientCertificateRequired
        case clientCertificateRefused, unknownName, alert, notTLS, endedInHandshake, timedOut, truncated, broken
        case unusableFile
    }

    func write(_ fields: inout FieldWriter) {
        switch self {
        case .certificate(let problem):
            fields.put(Part.kind, Kind.certificate.rawValue)
            fields.put(Part.problem, problem.write)
        case .noCommonVersion(let minimum): Part.put(Kind.noCommonVersion.rawValue, [minimum.rawValue], &fields)
        case .noCommonCipher: Part.put(Kind.noCommonCipher.rawValue, [], &fields)
        case .noCommonProtocol(let offered): Part.put(Kind.noCommonProtocol.rawValue, offered, &fields)
        case .clientCertificateRequired: Part.put(Kind.clientCertificateRequired.rawValue, [], &fields)
        case .clientCertificateRefused(let alert):
            Part.put(Kind.clientCertificateRefused.rawValue, [], &fields, alert)
        case .unknownName(let name): Part.put(Kind.unknownName.rawValue, [name], &fields)
        case .alert(let alert): Part.put(Kind.alert.rawValue, [], &fields, alert)
        case .notTLS: Part.put(Kind.notTLS.rawValue, [], &fields)
        case .endedInHandshake: Part.put(Kind.endedInHandshake.rawValue, [], &fields)
        case .timedOut: Part.put(Kind.timedOut.rawValue, [], &fields)
        case .truncated: Part.put(Kind.truncated.rawValue, [], &fields)
        case .broken(let text): Part.put(Kind.broken.rawValue, [text], &fields)
        case .unusableFile(let path, let problem):
            Part.put(Kind.unusableFile.rawValue, [path, problem], &fields)
        }
    }

    init(_ fields: FieldReader) throws(DamagedState) {
        let part = try Part(fields)
        guard let kind = Kind(rawValue: part.kind) else { throw DamagedState() }
        switch kind {
        case .certificate: self = .certificate(try CertificateProblem(part.problem))
        case .noCommonVersion:
            guard let version = TLSPolicy.Version(rawValue: try part.text(0)) else { throw DamagedState() }
            self = .noCommonVersion(minimum: version)
        case .noCommonCipher: self = .noCommonCipher
        case .noCommonProtocol: self = .noCommonProtocol(offered: part.texts)
        case .clientCertificateRequired: self = .clientCertificateRequired
        case .clientCertificateRefused: self = .clientCertificateRefused(part.alert)
        case .unknownName: self = .unknownName(try part.text(0))
        case .alert: self = .alert(part.alert)
        case .notTLS: self = .notTLS
        case .endedInHandshake: self = .endedInHandshake
        case .timedOut: self = .timedOut
        case .truncated: self = .truncated
        case .broken: self = .broken(try part.text(0))
        case .unusableFile: self = .unusableFile(path: try part.text(0), problem: try part.text(1))
        }
    }
}

extension CertificateProblem {
    private enum Kind: String {
        case expired, notYetValid, wrongName, selfSigned, unknownIssuer, revoked, revocationUnknown, weak
        case wrongPurpose, pinMismatch, invalid
    }

    fileprivate func write(_ fields: inout FieldWriter) {
        switch self {
        case .expired(let subject, let since): Part.put(Kind.expired.rawValue, [subject, since], &fields)
        case .notYetValid(let subject, let until, let clock):
            Part.put(Kind.notYetValid.rawValue, [subject, until, clock], &fields)
        case .wrongName(let wanted, let found): Part.put(Kind.wrongName.rawValue, [wanted] + found, &fields)
        case .selfSigned(let subject): Part.put(Kind.selfSigned.rawValue, [subject], &fields)
        case .unknownIssuer(let issuer): Part.put(Kind.unknownIssuer.rawValue, [issuer], &fields)
        case .revoked(let subject): Part.put(Kind.revoked.rawValue, [subject], &fields)
        case .revocationUnknown(let text): Part.put(Kind.revocationUnknown.rawValue, [text], &fields)
        case .weak(let text): Part.put(Kind.weak.rawValue, [text], &fields)
        case .wrongPurpose: Part.put(Kind.wrongPurpose.rawValue, [], &fields)
        case .pinMismatch(let found):
            Part.put(Kind.pinMismatch.rawValue, found.map { [$0.digest] } ?? [], &fields)
        case .invalid(let text): Part.put(Kind.invalid.rawValue, [text], &fields)
        }
    }

    fileprivate init(_ fields: FieldReader?) throws(DamagedState) {
        guard let fields else { throw DamagedState() }
        let part = try Part(fields)
        guard let kind = Kind(rawValue: part.kind) else { throw DamagedState() }
        switch kind {
        case .expired: self = .expired(subject: try part.text(0), since: try part.text(1))
        case .notYetValid:
            self = .notYetValid(subject: try part.text(0), until: try part.text(1), clock: try part.text(2))
        case .wrongName: self = .wrongName(wanted: try part.text(0), found: Array(part.texts.dropFirst()))
        case .selfSigned: self = .selfSigned(subject: try part.text(0))
        case .unknownIssuer: self = .unknownIssuer(try part.text(0))
        case .revoked: self = .revoked(subject: try part.text(0))
        case .revocationUnknown: self = .revocationUnknown(try part.text(0))
        case .weak: self = .weak(try part.text(0))
        case .wrongPurpose: self = .wrongPurpose
        case .pinMismatch: self = .pinMismatch(found: part.texts.first.flatMap { CertificatePin($0) })
        case .invalid: self = .invalid(try part.text(0))
        }
    }
}

/// What a failure is made of.
private struct Part {
    static let (kind, text, alert, problem) = (1, 2, 3, 4)

    var kind = ""
    var texts: [String] = []
    var alert = TLSAlert(rawValue: 0)
    var problem: FieldReader?

    init(_ fields: FieldReader) throws(DamagedState) {
        var fields = fields
        while let (field, value) = try fields.next() {
            switch field {
            case Self.kind: kind = try value.text()
            case Self.text: texts.append(try value.text())
            case Self.alert: alert = TLSAlert(rawValue: try value.unsigned(as: UInt8.self))
            case Self.problem: problem = try value.fields()
            default: break
            }
        }
    }

    func text(_ index: Int) throws(DamagedState) -> String {
        guard index < texts.count else { throw DamagedState() }
        return texts[index]
    }

    static func put(_ kind: String, _ texts: [String], _ fields: inout FieldWriter, _ alert: TLSAlert? = nil) {
        fields.put(Self.kind, kind)
        for text in texts { fields.put(Self.text, text) }
        if let alert { fields.put(Self.alert, UInt64(alert.rawValue)) }
    }
}
