// SPDX-License-Identifier: Apache-2.0

package import DialtoneNetworkPath
package import DialtonePlatform

/// Names to addresses, services and rules, asynchronously on the agent's queue: no thread, and nothing armed while no
/// query is under way.
///
/// The hosts file and the name servers are asked in the order of nsswitch.conf, by default the file first. A name that
/// stands in it is not asked of the servers at all, not even for the family that the file leaves out: an administrator
/// who pins a name to an address means that address. Search domains, `ndots` and the name servers come from
/// resolv.conf. Names go out as they are given, byte by byte: an internationalised one in the form that DNS knows
/// ("xn--…") is asked for like any other. Literal addresses are the caller's business.
///
/// The channel to the name servers lives only as long as there are questions. So a burst of questions (a thousand
/// connections that dial again when the path returns) shares one socket to each server, an idle agent keeps neither
/// sockets nor c-ares' 80 KB of tables, and no socket outlives the address that it was bound to. No answer is kept.
@AgentQueue
package final class Resolver {
    /// The longest that a query takes. Every server of a list of three was asked twice by then (see ``firstTimeout``),
    /// and a user who waits for a connection has long begun to wonder. After it, the caller's back-off decides.
    package nonisolated static let answerLimit = Duration.seconds(10)

    /// How long the first server may take before the next is asked; c-ares doubles it with each round through the
    /// list. A tenth of the default of resolv.conf(5) would do for a LAN; one second also serves a cellular uplink
    /// whose radio must wake first. It is set here, over `options timeout:`, so that ``answerLimit`` holds.
    nonisolated static let firstTimeout = Duration.seconds(1)

    /// Rounds through the list of servers: 1 s, 2 s and 4 s for each, so a single server is given up after 7 s.
    nonisolated static let rounds: CInt = 3

    /// How long ``resolve(_:_:_:)`` waits for the other family once one has brought addresses. RFC 8305, section 3,
    /// has 50 ms for who races the families; here the caller wants one list, and the second only bounds what a server
    /// that swallows AAAA questions can cost.
    nonisolated static let otherFamilyPatience = Duration.seconds(1)

    /// What a question that went out showed of the name servers.
    package enum Evidence: Hashable, Sendable {
        /// One of them answered, and knew what it said.
        case answered
        /// None sent a single packet back, for as long as the question was asked.
        case silent
    }

    /// Called with each answer to whosoever's question about addresses, before the one who asked: a name that is
    /// watched learns what was asked for another reason.
    package var onAnswer: (@AgentQueue (String, IPAddress.Family, Result<Resolution, ResolutionError>) -> Void)?

    /// Called with what each question showed, and the name that was asked for.
    package var onEvidence: (@AgentQueue (Evidence, String) -> Void)?

    private let files: NameFiles
    private let port: UInt16
    private(set) var channel: Channel?
    private var channelVersion: FileVersion?
    private var order: (order: NameOrder, version: FileVersion)?
    private var hosts: (file: HostsFile, version: FileVersion)?
    private var live: [ObjectIdentifier: Query.Question] = [:]
    private var received: [(question: Query.Question, answer: Query.Answer, isFromServers: Bool)] = []

    /// A resolver that follows a host's configuration.
    ///
    /// - Parameters:
    ///   - files: where the configuration stands.
    ///   - port: the UDP and TCP port of its name servers.
    package nonisolated init(files: NameFiles = NameFiles(), port: UInt16 = 53) {
        self.files = files
        self.port = port
    }

    /// Asks for each family of `name` and calls `handler` once for each, in the order in which the answers come, in a
    /// later turn of the queue, ``answerLimit`` from now at the latest.
    package func answers(
        to name: String, _ families: [IPAddress.Family] = [.v6, .v4],
        _ handler: @escaping @AgentQueue (IPAddress.Family, Result<Resolution, ResolutionError>) -> Void
    ) -> Query {
        let delivery = Query.Delivery.each { type, answer in
            if let family = type.family { handler(family, answer.map { Resolution($0) }) }
        }
        return start(Query(name, families.map { RecordType($0) }, of: self, delivery))
    }

    /// Asks for all families of `name` together and calls `handler` once, in a later turn of the queue, with the
    /// addresses of those that were answered, in the order of `families`.
    ///
    /// It waits for every family, but no longer than one second once one has brought addresses, and never longer than
    /// ``answerLimit``. It fails when none brought an address: finally if every family failed so.
    package func resolve(
        _ name: String, _ families: [IPAddress.Family] = [.v6, .v4],
        _ handler: @escaping @AgentQueue (Result<Resolution, ResolutionError>) -> Void
    ) -> Query {
        start(
            Query(
                name, families.map { RecordType($0) }, of: self,
                .together { answer in handler(answer.map { Resolution($0) }) }))
    }

    /// Asks where a service is offered (SRV, RFC 2782), and calls `handler` once, in a later turn of the queue,
    /// ``answerLimit`` from now at the latest, with the hosts in the order of the answer.
    ///
    /// `name` is complete, as "_sip._tcp.example.com": neither a search domain is appended, nor the hosts file read.
    /// It fails finally where the name, or such a record of it, does not exist.
    package func services(
        of name: String, _ handler: @escaping @AgentQueue (Result<[ServiceLocation], ResolutionError>) -> Void
    ) -> Query {
        start(Query(name, [.srv], of: self, .together { answer in handler(answer.map(\.services)) }))
    }

    /// Asks for the rules that lead on from a name (NAPTR, RFC 3403), and calls `handler` once, like
    /// ``services(of:_:)``. `name` is complete.
    package func pointers(
        of name: String, _ handler: @escaping @AgentQueue (Result<[NamingRule], ResolutionError>) -> Void
    ) -> Query {
        start(Query(name, [.naptr], of: self, .together { answer in handler(answer.map(\.rules)) }))
    }

    /// Tells the resolver that the host's addresses, routes or name servers changed. The questions under way are asked
    /// again over new sockets, within their old limit: those they were asked over may be bound to an address that is
    /// gone, and their repetitions would leave with it in vain.
    package func networkChanged() {
        guard channel != nil else { return }
        renewChannel()
    }

    /// Whether no server is asked for `name`, since it stands in the hosts file.
    package func isInHostsFile(_ name: String) -> Bool {
        guard readOrder().sources.first == .hostsFile else { return false }
        let isThere = readHosts().addresses(of: Self.withoutFinalDot(name)) != nil
        if live.isEmpty { hosts = nil }
        return isThere
    }

    /// Takes down an answer of c-ares; ``deliver()`` hands it on when c-ares is off the stack.
    func receive(_ answer: Query.Answer, for question: Query.Question) {
        received.append((question, answer, true))
    }

    /// How many answers are handed on in one turn: a verdict or a step of a dial each, some 0.1 ms. One read of a
    /// socket may bring a thousand.
    private static let answersPerTurn = 32

    /// Hands on what was received. Handlers may ask, cancel and so close the channel: never call it within c-ares.
    func deliver() {
        let answers = received.prefix(Self.answersPerTurn)
        received.removeFirst(answers.count)
        defer { deliverLater() }
        for (question, answer, isFromServers) in answers where live[ObjectIdentifier(question)] != nil {
            if isFromServers {
                answeredByServers(answer, question)
            } else {
                hand(answer, to: question)
            }
        }
    }

    /// Ends a question that nobody answered for too long.
    func limitReached(_ question: Query.Question) {
        guard live[ObjectIdentifier(question)] != nil else { return }
        answeredByServers(.failure(ResolutionError(.noAnswer, "no answer in \(Self.answerLimit)")), question)
    }

    /// Drops a question that was answered or cancelled; with the last of them the channel and the hosts file's text.
    func forget(_ question: Query.Question) {
        live[ObjectIdentifier(question)] = nil
        guard live.isEmpty else { return }
        closeChannel()
        hosts = nil
    }

    private func answeredByServers(_ answer: Query.Answer, _ question: Query.Question) {
        let name = question.query.name
        let evidence = evidence(of: answer, question)
        var answer = answer
        // What the servers do not have, or cannot say, the file may: where nsswitch.conf has it after them.
        if case .failure = answer, readOrder().sources == [.nameServers, .hostsFile],
            let entry = hostsFileEntry(for: question.query)
        {
            answer = Self.answer(from: entry, question.type)
        }
        hand(answer, to: question)
        if let evidence { onEvidence?(evidence, name) }
    }

    /// Hands an answer on, whichever source it came from, within the bounds of what is kept of one.
    private func hand(_ answer: Query.Answer, to question: Query.Question) {
        let answer = answer.map { $0.cut(for: question.type) }
        if let family = question.type.family, let onAnswer {
            onAnswer(question.query.name, family, answer.map { Resolution($0) })
        }
        question.query.answer(question, answer)
    }

    /// What an answer shows of the servers; `nil` where that is nothing. A server that says it cannot answer may be
    /// right about the name, and wrong about nothing else; one that swallows questions for AAAA alone answers others.
    private func evidence(of answer: Query.Answer, _ question: Query.Question) -> Evidence? {
        switch answer {
        case .success: return .answered
        case .failure(let error):
            switch error.kind {
            case .noSuchName, .noRecord: return .answered
            case .malformed, .serverFailure: return nil
            case .noAnswer: return channel?.hearing.packets == question.hearingBefore.packets ? .silent : nil
            }
        }
    }
}

extension Resolver {
    private func start(_ query: Query) -> Query {
        renewChannelIfConfigurationChanged()
        for question in query.unanswered { live[ObjectIdentifier(question)] = question }
        let sources = readOrder().sources
        if let entry = (sources.first == .hostsFile ? hostsFileEntry(for: query) : nil) ?? Self.meaning(of: query.name)
        {
            for question in query.unanswered {
                received.append((question, Self.answer(from: entry, question.type), false))
            }
        } else if sources.contains(.nameServers) {
            withChannel(for: query.unanswered) { channel in
                for question in query.unanswered { channel.ask(question) }
            }
        } else {
            let error = ResolutionError(.noSuchName, "it is not in the hosts file, and nsswitch.conf names no DNS")
            for question in query.unanswered { received.append((question, .failure(error), false)) }
        }
        deliverLater()
        return query
    }

    /// What the hosts file has for a query's name. It has no other records than addresses to say anything about.
    private func hostsFileEntry(for query: Query) -> [RecordType: RecordSet]? {
        guard query.isForAddresses, let entry = readHosts().addresses(of: Self.withoutFinalDot(query.name)) else {
            return nil
        }
        return Dictionary(
            // Made of a dictionary's keys, one for each family.
            uniqueKeysWithValues: entry.map { (RecordType($0), RecordSet($1, from: .hostsFile)) })
    }

    /// What a name stands for without any file or server (RFC 6761, section 6.3): these are the loopback's, and nothing
    /// else than addresses is to be had of them.
    private static func meaning(of name: String) -> [RecordType: RecordSet]? {
        let lower = withoutFinalDot(name).lowercased()
        guard lower == "localhost" || lower.hasSuffix(".localhost") else { return nil }
        return [
            .a: RecordSet([IPAddress(v4: 0x7F00_0001)], from: .definition),
            .aaaa: RecordSet([IPAddress(v6: 1)], from: .definition),
        ]
    }

    /// The dot says that no search domain is to be appended; it is not part of what stands in a file.
    private static func withoutFinalDot(_ name: String) -> String {
        name.hasSuffix(".") ? String(name.dropLast()) : name
    }

    private static func answer(from entry: [RecordType: RecordSet], _ type: RecordType) -> Query.Answer {
        if let records = entry[type] { return .success(records) }
        let text = type.family == nil ? "localhost has addresses only" : "the hosts file has no address of this family"
        return .failure(ResolutionError(.noRecord, text))
    }

    private func readOrder() -> NameOrder {
        let version = FileVersion(of: files.nsswitch)
        if let order, order.version == version { return order.order }
        let present = files.readOrder()
        order = (present, version)
        return present
    }

    /// The file is read once for a burst of questions; whether it is still the same costs one stat(2) each.
    private func readHosts() -> HostsFile {
        let version = FileVersion(of: files.hosts)
        if let hosts, hosts.version == version { return hosts.file }
        let present = files.readHosts()
        hosts = (present, version)
        return present
    }

    /// Runs `body` with the channel; where there is none to be had, each question is answered with the reason.
    private func withChannel(for questions: some Sequence<Query.Question>, _ body: (Channel) -> Void) {
        do throws(ResolutionError) {
            body(try openChannel())
        } catch {
            for question in questions { receive(.failure(error), for: question) }
        }
    }

    /// What is answered at once (by the hosts file, or because no packet could be sent) gets a turn of its own: the
    /// caller has the query in hand before its handler runs, and may cancel it.
    private func deliverLater() {
        if !received.isEmpty { AgentQueue.async { self.deliver() } }
    }

    private func openChannel() throws(ResolutionError) -> Channel {
        if let channel { return channel }
        // The version is taken before the file is read: a change between the two is then seen as one, not missed.
        channelVersion = FileVersion(of: files.resolvConf)
        let opened = try Channel(configurationFile: files.resolvConf, port: port) { [self] in deliver() }
        channel = opened
        return opened
    }

    private func closeChannel() {
        channel?.close()
        channel = nil
    }

    /// Questions may follow one another without a gap for hours while no server answers; their channel must not keep
    /// the servers of a network that was left long ago. One stat(2) of a file in /etc or /run, about a microsecond.
    private func renewChannelIfConfigurationChanged() {
        guard channel != nil, FileVersion(of: files.resolvConf) != channelVersion else { return }
        renewChannel()
    }

    private func renewChannel() {
        closeChannel()
        // Those that were answered in this very turn are not asked again.
        let answered = Set(received.map { ObjectIdentifier($0.question) })
        let questions = live.filter { !answered.contains($0.key) }.values
        withChannel(for: questions) { channel in
            for question in questions { channel.ask(question) }
        }
        deliverLater()
    }
}
