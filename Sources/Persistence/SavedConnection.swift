// SPDX-License-Identifier: Apache-2.0

package import DialtoneConnection
package import DialtoneConnectionIO
internal import DialtoneNetworkPath
package import DialtonePlatform
internal import DialtoneRelayMessages

/// A connection as the state has it: what the next run of the agent needs to go on with it.
package struct SavedConnection: Hashable {
    /// Its name.
    package var name: String
    /// Whose it is.
    package var owner: UInt32
    /// Whether a configuration file names it, which has its policy.
    package var isConfigured: Bool
    /// Where it leads, as a URL. With the policy's marks, what a flow was made for.
    package var remote: String
    /// The firewall mark of its packets.
    package var mark: UInt32?
    /// Whose its packets are.
    package var user: UInt32?
    /// Whether it is dialled anew when its flow ends.
    package var redials = true
    /// Of a connection that a client opened, the policy as the client gave it: the parameters of `Open`, in JSON.
    package var parameters: [UInt8]
    /// The opening exchange that its client left when it parked, as the client gave it: the steps, in JSON. It holds
    /// secrets, and the state is nowhere but in memory.
    package var opening: [UInt8] = []
    /// The messages that it left to be answered, likewise.
    package var answers: [UInt8] = []
    /// Its flows.
    package var flows: SavedFlows
    /// Who has them, or had them last, and the wake that stands.
    package var clients = Clientele()
    /// The processes that ``clients`` speaks of.
    package var processes: [SavedProcess] = []
    /// What is counted of it; `nil` where an earlier version counted nothing, or nothing that this one can go on with.
    package var totals: SavedTotals?

    /// What tells it from all others.
    package var key: ConnectionKey { ConnectionKey(name, of: owner) }

    private enum Field {
        static let (name, owner, isConfigured, remote, mark, user, epoch, standing) = (1, 2, 3, 4, 5, 6, 8, 9)
        static let (ended, wake, endsWithItsFlow, opening, hasClient) = (10, 12, 13, 14, 15)
        /// As versions without readers wrote it: the flow was taken for a program of which no process was known yet.
        /// Like 11, 17 and 18 it is not written any more.
        static let wasLaunching = 16
        static let (reader, endedReader, client, program, process) = (19, 20, 21, 22, 23)
        // 7 was those of an earlier interface, whose settings this one does not know.
        static let parameters = 24
        static let (totals, answers) = (25, 26)
    }

    /// A connection without a flow.
    package init(name: String, owner: UInt32, isConfigured: Bool, remote: String) {
        self.name = name
        self.owner = owner
        self.isConfigured = isConfigured
        self.remote = remote
        parameters = []
        flows = SavedFlows()
    }

    /// What the store has of it.
    var storeNumbers: [UInt64] {
        flows.numbers + processes.map(\.stored)
    }

    /// Writes it in numbered fields.
    package func write(_ fields: inout FieldWriter) {
        fields.put(Field.name, name)
        fields.put(Field.owner, UInt64(owner))
        fields.put(Field.isConfigured, isConfigured ? 1 : 0)
        fields.put(Field.remote, remote)
        if let mark { fields.put(Field.mark, UInt64(mark)) }
        if let user { fields.put(Field.user, UInt64(user)) }
        if !redials { fields.put(Field.endsWithItsFlow, 1) }
        if !parameters.isEmpty { fields.put(Field.parameters, parameters) }
        if !opening.isEmpty { fields.put(Field.opening, opening) }
        if !answers.isEmpty { fields.put(Field.answers, answers) }
        fields.put(Field.epoch, flows.epoch)
        if let standing = flows.standing { fields.put(Field.standing, standing.write) }
        for ended in flows.ended { fields.put(Field.ended, ended.write) }
        if clients.hasHadClient { fields.put(Field.hasClient, 1) }
        if let reader = flows.standing?.adoption.ownership.reader { fields.put(Field.reader, reader.write) }
        for ended in clients.ended where ended.reader != nil { fields.put(Field.endedReader, ended.write) }
        if let client = clients.client { fields.put(Field.client, client.number) }
        if let program = clients.program { fields.put(Field.program, program.number) }
        for process in processes { fields.put(Field.process, process.write) }
        if let wake = clients.wake { fields.put(Field.wake, wake.write) }
        if let totals { fields.put(Field.totals, totals.write) }
    }

    /// One that was written.
    package init(_ fields: FieldReader) throws(DamagedState) {
        self.init(name: "", owner: 0, isConfigured: false, remote: "")
        var fields = fields
        var (hasOwner, reader) = (false, Reader?.none)
        while let (field, value) = try fields.next() {
            switch field {
            case Field.name: name = try value.text()
            case Field.owner: (owner, hasOwner) = (try value.unsigned(as: UInt32.self), true)
            case Field.isConfigured: isConfigured = try value.unsigned() != 0
            case Field.remote: remote = try value.text()
            case Field.mark: mark = try value.unsigned(as: UInt32.self)
            case Field.user: user = try value.unsigned(as: UInt32.self)
            case Field.endsWithItsFlow: redials = try value.unsigned() == 0
            case Field.parameters: parameters = Array(try value.bytes())
            case Field.opening: opening = Array(try value.bytes())
            case Field.answers: answers = Array(try value.bytes())
            case Field.epoch: flows.epoch = try value.count()
            case Field.standing: flows.standing = try .init(value.fields())
            case Field.ended: flows.ended.append(try .init(value.fields()))
            case Field.hasClient: clients.hasHadClient = try value.unsigned() != 0
            case Field.wasLaunching:
                if try value.unsigned() != 0 { reader = .launch(.init(wake: 0, attempt: 0)) }
            case Field.reader: reader = try .init(value.fields())
            case Field.endedReader: clients.ended.append(try .init(value.fields()))
            case Field.client: clients.client = KnownProcess(try value.count())
            case Field.program: clients.program = KnownProcess(try value.count())
            case Field.process: processes.append(try .init(value.fields()))
            case Field.wake: clients.wake = try .init(value.fields())
            // Of no worth beside the sockets.
            case Field.totals: totals = try? .init(value.fields())
            default: break
            }
        }
        if let reader, let ownership = flows.standing?.adoption.ownership, ownership.holder == .client {
            flows.standing?.adoption.ownership = FlowOwnership(reader: reader, session: ownership.session)
        }
        // An owner that is missing must not be taken for root.
        guard hasOwner, !name.isEmpty, !remote.isEmpty else { throw DamagedState() }
    }
}

/// A process that a connection knows, as the state has it.
package struct SavedProcess: Hashable {
    /// By which number the connection knows it.
    package var process: KnownProcess
    /// Under which number the store has a descriptor of it.
    package var stored: UInt64
    /// Of a program that the agent launched, its process number: the launcher is asked by it how the program ended.
    package var launchedAs: Int32?

    private enum Field {
        static let (process, stored, launchedAs) = (1, 2, 3)
    }

    package init(process: KnownProcess, stored: UInt64, launchedAs: Int32?) {
        (self.process, self.stored, self.launchedAs) = (process, stored, launchedAs)
    }

    fileprivate func write(_ fields: inout FieldWriter) {
        fields.put(Field.process, process.number)
        fields.put(Field.stored, stored)
        if let launchedAs { fields.put(Field.launchedAs, UInt64(clamping: launchedAs)) }
    }

    fileprivate init(_ fields: FieldReader) throws(DamagedState) {
        var (fields, process, stored) = (fields, UInt64?.none, UInt64?.none)
        while let (field, value) = try fields.next() {
            switch field {
            case Field.process: process = try value.count()
            case Field.stored: stored = try value.count()
            case Field.launchedAs: launchedAs = Int32(clamping: try value.unsigned())
            default: break
            }
        }
        guard let process, let stored else { throw DamagedState() }
        (self.process, self.stored) = (KnownProcess(process), stored)
    }
}

extension Reader {
    private enum Field {
        static let (client, program, isUnknown, launchWake, launchAttempt) = (1, 2, 3, 4, 5)
    }

    fileprivate func write(_ fields: inout FieldWriter) {
        switch self {
        case .client(let process): fields.put(Field.client, process.number)
        case .program(let process): fields.put(Field.program, process.number)
        case .unknown: fields.put(Field.isUnknown, 1)
        case .launch(let attempt):
            fields.put(Field.launchWake, attempt.wake)
            fields.put(Field.launchAttempt, UInt64(attempt.attempt))
        }
    }

    fileprivate init(_ fields: FieldReader) throws(DamagedState) {
        var (fields, reader, wake, attempt) = (fields, Reader?.none, UInt64?.none, 0)
        while let (field, value) = try fields.next() {
            switch field {
            case Field.client: reader = .client(KnownProcess(try value.count()))
            case Field.program: reader = .program(KnownProcess(try value.count()))
            case Field.isUnknown: reader = .unknown
            case Field.launchWake: wake = try value.count()
            case Field.launchAttempt: attempt = Int(clamping: try value.unsigned())
            default: break
            }
        }
        if let wake { reader = .launch(.init(wake: wake, attempt: attempt)) }
        guard let reader else { throw DamagedState() }
        self = reader
    }
}

extension Clientele.EndedFlow {
    private enum Field {
        static let (epoch, reader, left) = (1, 2, 3)
    }

    private static let touches: [Touch] = [.untouched, .touched, .unknown]

    fileprivate func write(_ fields: inout FieldWriter) {
        fields.put(Field.epoch, epoch)
        if let reader { fields.put(Field.reader, reader.write) }
        if let number = left.flatMap(Self.touches.firstIndex) { fields.put(Field.left, UInt64(number)) }
    }

    fileprivate init(_ fields: FieldReader) throws(DamagedState) {
        var (fields, epoch, reader, left) = (fields, UInt64?.none, Reader?.none, Touch?.none)
        while let (field, value) = try fields.next() {
            switch field {
            case Field.epoch: epoch = try value.count()
            case Field.reader: reader = try .init(value.fields())
            case Field.left:
                let number = Int(clamping: try value.unsigned())
                left = Self.touches.indices.contains(number) ? Self.touches[number] : .unknown
            default: break
            }
        }
        guard let epoch else { throw DamagedState() }
        self.init(epoch: epoch, reader: reader, left: left)
    }
}

extension SavedConnection: CustomReflectable {
    /// Without the bytes of its settings, its opening and its answers, which may hold passwords.
    package var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "name": name, "owner": owner, "isConfigured": isConfigured, "remote": remote, "redials": redials,
                "parameters": parameters.count, "opening": opening.count, "answers": answers.count, "flows": flows,
                "clients": clients,
                "processes": processes,
            ], displayStyle: .struct)
    }
}

extension SavedFlows.Standing {
    private enum Field {
        static let (epoch, local, remote, holder, session, lastProof, interface) = (1, 2, 3, 4, 5, 6, 7)
        static let (connectedAt, since, number) = (8, 9, 10)
        // 11 is not written any more.
        static let (isBound, isInDoubt, place) = (12, 13, 14)
        /// As `dialtone-tls` said it.
        static let security = 15
        static let (upSince, handled) = (16, 17)
    }

    fileprivate func write(_ fields: inout FieldWriter) {
        fields.put(Field.epoch, adoption.epoch)
        fields.put(Field.local, adoption.local.write)
        fields.put(Field.remote, adoption.remote.write)
        fields.put(Field.holder, adoption.ownership.holder.rawValue)
        fields.put(Field.session, adoption.ownership.session.rawValue)
        if let proof = adoption.lastProof { fields.put(Field.lastProof, signed: proof.nanoseconds) }
        fields.put(Field.interface, adoption.interface)
        if let past = adoption.past {
            fields.put(Field.connectedAt, signed: past.connectedAt.nanoseconds)
            fields.put(Field.since, signed: past.since.nanoseconds)
            fields.put(Field.upSince, signed: past.upSince.nanoseconds)
            if past.isInDoubt { fields.put(Field.isInDoubt, 1) }
        }
        if let number { fields.put(Field.number, number) }
        if let place { fields.put(Field.place, place.code) }
        if let security = adoption.security { fields.put(Field.security, RelayWord.secured(security).encoded) }
        if adoption.isBound { fields.put(Field.isBound, 1) }
        if let handled = adoption.handled { fields.put(Field.handled, UInt64(handled)) }
    }

    fileprivate init(_ fields: FieldReader) throws(DamagedState) {
        var (fields, epoch, number, place) = (fields, UInt64?.none, UInt64?.none, StreamCounts.Place?.none)
        var (local, remote) = (Endpoint?.none, Endpoint?.none)
        var (holder, session) = (FlowOwnership.Holder.daemon, FlowOwnership.Session.unknown)
        var (proof, interface) = (Duration?.none, String?.none)
        var (connectedAt, since, upSince) = (Duration.zero, Duration.zero, Duration?.none)
        var (isBound, isInDoubt) = (false, false)
        var (security, handled) = (TLSSummary?.none, UInt32?.none)
        while let (field, value) = try fields.next() {
            switch field {
            case Field.epoch: epoch = try value.count()
            case Field.local: local = try .init(value.fields())
            case Field.remote: remote = try .init(value.fields())
            case Field.holder: holder = try value.choice()
            case Field.session: session = try value.choice()
            case Field.lastProof: proof = .nanoseconds(try value.signed())
            case Field.interface: interface = try value.text()
            case Field.connectedAt: connectedAt = .nanoseconds(try value.signed())
            case Field.since: since = .nanoseconds(try value.signed())
            case Field.upSince: upSince = .nanoseconds(try value.signed())
            case Field.number: number = try value.count()
            case Field.place: place = StreamCounts.Place(code: try value.unsigned())
            case Field.isBound: isBound = try value.unsigned() != 0
            case Field.security:
                if case .secured(let summary) = try RelayWord(value.bytes()) { security = summary }
            case Field.isInDoubt: isInDoubt = try value.unsigned() != 0
            case Field.handled: handled = try value.unsigned(as: UInt32.self)
            default: break
            }
        }
        guard let epoch, let local, let remote else { throw DamagedState() }
        self.init(
            adoption: Adoption(
                epoch: epoch, local: local, remote: remote,
                ownership: FlowOwnership(reader: holder == .client ? .unknown : nil, session: session),
                lastProof: proof, interface: interface, isBound: isBound, security: security,
                handled: handled,
                past: .init(connectedAt: connectedAt, since: since, upSince: upSince, isInDoubt: isInDoubt)),
            number: number, place: place)
    }
}

extension SavedFlows.Ended {
    private enum Field {
        static let (epoch, remote, number, place) = (1, 2, 3, 4)
    }

    fileprivate func write(_ fields: inout FieldWriter) {
        fields.put(Field.epoch, epoch)
        fields.put(Field.remote, remote.write)
        fields.put(Field.number, number)
        if let place { fields.put(Field.place, place.code) }
    }

    fileprivate init(_ fields: FieldReader) throws(DamagedState) {
        var (fields, epoch, remote, number) = (fields, UInt64?.none, Endpoint?.none, UInt64?.none)
        var place: StreamCounts.Place?
        while let (field, value) = try fields.next() {
            switch field {
            case Field.epoch: epoch = try value.count()
            case Field.remote: remote = try .init(value.fields())
            case Field.number: number = try value.count()
            case Field.place: place = StreamCounts.Place(code: try value.unsigned())
            default: break
            }
        }
        guard let epoch, let remote, let number else { throw DamagedState() }
        self.init(epoch: epoch, remote: remote, number: number, place: place)
    }
}

extension StandingWake {
    private enum Field {
        static let (number, reason, since, attempts, means, hasFailed) = (1, 2, 3, 4, 5, 6)
    }

    fileprivate func write(_ fields: inout FieldWriter) {
        fields.put(Field.number, number)
        for reason in reasons { fields.put(Field.reason, reason.rawValue) }
        fields.put(Field.since, signed: since.nanoseconds)
        fields.put(Field.attempts, UInt64(attempts))
        fields.put(Field.means, means?.rawValue)
        fields.put(Field.hasFailed, hasFailed ? 1 : 0)
    }

    fileprivate init(_ fields: FieldReader) throws(DamagedState) {
        self.init(number: 0, reasons: [], since: .zero)
        var fields = fields
        while let (field, value) = try fields.next() {
            switch field {
            case Field.number: number = try value.count()
            case Field.reason: reasons.append(try value.choice())
            case Field.since: since = .nanoseconds(try value.signed())
            case Field.attempts: attempts = Int(clamping: try value.unsigned())
            case Field.means: means = try value.choice()
            case Field.hasFailed: hasFailed = try value.unsigned() != 0
            default: break
            }
        }
        guard number > 0, !reasons.isEmpty else { throw DamagedState() }
    }
}

extension Endpoint {
    private enum Field {
        static let (address, port) = (1, 2)
    }

    fileprivate func write(_ fields: inout FieldWriter) {
        fields.put(Field.address, address.bytes)
        fields.put(Field.port, UInt64(port))
    }

    fileprivate init(_ fields: FieldReader) throws(DamagedState) {
        var (fields, address, port) = (fields, IPAddress?.none, UInt16?.none)
        while let (field, value) = try fields.next() {
            switch field {
            case Field.address: address = IPAddress(bytes: try value.bytes())
            case Field.port: port = try value.unsigned(as: UInt16.self)
            default: break
            }
        }
        guard let address, let port else { throw DamagedState() }
        self.init(address: address, port: port)
    }
}

extension Duration {
    /// Whole nanoseconds, as many as an instant of the boot clock has.
    var nanoseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1_000_000_000 + attoseconds / 1_000_000_000
    }
}
