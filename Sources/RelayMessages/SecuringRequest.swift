// SPDX-License-Identifier: Apache-2.0

package import DialtoneConnection
internal import DialtoneNetworkPath
package import DialtonePlatform

/// What the agent asks of `dialtone-tls` for one flow. Descriptors ride on the same message, in this order:
///
/// 1. The TCP socket, connected.
/// 2. One end of a pair of Unix sockets: plaintext comes out of it and goes into it.
/// 3. The file in which the flow's ``StreamCounts`` are written.
/// 4. The file of the authorities that are trusted: the connection's own, or the system's.
/// 5. Where the client has a certificate, the files of it, of its key, and of the password of the key, if there is one.
package struct SecuringRequest: Hashable, Sendable {
    /// Whom the session is with, and how. The policy's paths are for messages: its files are opened by the agent.
    package var session: TLSRequest
    /// On whose account the arithmetic is.
    package var user: UInt32
    /// The connection's name: the next flow of the same user and name may take the session up again.
    package var connection: String
    /// The place of the flow's ``StreamCounts`` in the file of them.
    package var place: StreamCounts.Place

    /// A request.
    package init(_ session: TLSRequest, user: UInt32, connection: String, place: StreamCounts.Place) {
        self.session = session
        self.user = user
        self.connection = connection
        self.place = place
    }

    private enum Field {
        static let (name, address, applicationProtocol, authorities, certificate, key) = (1, 2, 3, 4, 5, 6)
        static let (password, pin, isUnverified, minimumVersion, user, connection, place) = (7, 8, 9, 10, 11, 12, 13)
    }

    /// As it goes over the socket.
    package var encoded: [UInt8] {
        var fields = FieldWriter()
        switch session.host {
        case .name(let name): fields.put(Field.name, name)
        case .address(let address): fields.put(Field.address, address.bytes)
        }
        for name in session.applicationProtocols { fields.put(Field.applicationProtocol, name) }
        let policy = session.policy
        fields.put(Field.authorities, policy.authorities)
        fields.put(Field.certificate, policy.identity?.certificate)
        fields.put(Field.key, policy.identity?.key)
        fields.put(Field.password, policy.identity?.passwordFile)
        for pin in policy.pins { fields.put(Field.pin, pin.digest) }
        if !policy.verifiesCertificate { fields.put(Field.isUnverified, 1) }
        fields.put(Field.minimumVersion, policy.minimumVersion.rawValue)
        fields.put(Field.user, UInt64(user))
        fields.put(Field.connection, connection)
        fields.put(Field.place, place.code)
        return fields.bytes
    }

    /// A request that came.
    package init(_ bytes: ArraySlice<UInt8>) throws(DamagedState) {
        var host: Target.Host?
        var (certificate, key, password) = (String?.none, String?.none, String?.none)
        var policy = TLSPolicy()
        var protocols: [String] = []
        var (connection, user, place) = ("", UInt32?.none, StreamCounts.Place?.none)
        var fields = FieldReader(bytes)
        while let (field, value) = try fields.next() {
            switch field {
            case Field.name: host = .name(try value.text())
            case Field.address:
                guard let address = IPAddress(bytes: try value.bytes()) else { throw DamagedState() }
                host = .address(address)
            case Field.applicationProtocol: protocols.append(try value.text())
            case Field.authorities: policy.authorities = try value.text()
            case Field.certificate: certificate = try value.text()
            case Field.key: key = try value.text()
            case Field.password: password = try value.text()
            case Field.pin:
                guard let pin = CertificatePin(try value.text()) else { throw DamagedState() }
                policy.pins.insert(pin)
            case Field.isUnverified: policy.verifiesCertificate = try value.unsigned() == 0
            case Field.minimumVersion: policy.minimumVersion = try value.choice()
            case Field.user: user = try value.unsigned(as: UInt32.self)
            case Field.connection: connection = try value.text()
            case Field.place: place = StreamCounts.Place(code: try value.unsigned())
            default: break
            }
        }
        guard let host, let user, let place else { throw DamagedState() }
        policy.identity = certificate.map { .init(certificate: $0, key: key, passwordFile: password) }
        policy.applicationProtocols = protocols
        // What stands in the request is what was asked for already: the remote's name and protocols are filled in.
        self.init(TLSRequest(to: host, under: policy), user: user, connection: connection, place: place)
    }

    /// How many descriptors ride on it.
    package var descriptorCount: Int {
        guard let identity = session.policy.identity else { return 4 }
        return identity.passwordFile == nil ? 6 : 7
    }
}
