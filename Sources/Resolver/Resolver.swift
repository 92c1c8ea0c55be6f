// SPDX-License-Identifier: Apache-2.0

// `timespec` is defined by whichever C module the compiler loads first; both are named, so that each build finds it.
internal import CAres
internal import Glibc
public import NetworkPath
public import Platform

/// Names to addresses, asynchronously on the agent's queue: no thread, and nothing armed while no query is under way.
///
/// The hosts file is asked first, and a name that stands in it is not asked of the name servers at all, not even for
/// the family that the file leaves out: an administrator who pins a name to an address means that address. Search
/// domains, `ndots` and the name servers come from resolv.conf. Literal addresses are the caller's business.
///
/// The channel to the name servers lives only as long as there are questions. So a burst of questions (a thousand
/// connections that dial again when the path returns) shares one socket to each server, an idle agent keeps neither
/// sockets nor c-ares' 80 KB of tables, and no socket outlives the address that it was bound to.
@AgentQueue
public final class Resolver {
    /// The longest that a query takes. Every server of a list of three was asked twice by then (see ``firstTimeout``),
    /// and a user who waits for a connection has long begun to wonder. After it, the caller's back-off decides.
    public nonisolated static let answerLimit = Duration.seconds(10)

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

    private let configurationFile: String
    private let port: UInt16
    private(set) var channel: Channel?
    private var channelVersion: FileVersion?
    private var live: [ObjectIdentifier: Query.Question] = [:]
    private var received: [(Query.Question, Query.Answer)] = []

    /// A resolver that follows a resolv.conf.
    ///
    /// - Parameters:
    ///   - configurationFile: the path of a file in the form of resolv.conf(5).
    ///   - port: the UDP and TCP port of its name servers.
    public nonisolated init(configurationFile: String = "/etc/resolv.conf", port: UInt16 = 53) {
        self.configurationFile = configurationFile
        self.port = port
    }

    /// Asks for each family of `name` and calls `handler` once for each, in the order in which the answers come, in a
    /// later turn of the queue, ``answerLimit`` from now at the latest.
    public func answers(
        to name: String, _ families: [IPAddress.Family] = [.v6, .v4],
        _ handler: @escaping @AgentQueue (IPAddress.Family, Result<Resolution, ResolutionError>) -> Void
    ) -> Query {
        start(Query(name, families, of: self, .each(handler)))
    }

    /// Asks for all families of `name` together and calls `handler` once, in a later turn of the queue, with the
    /// addresses of those that were answered, in the order of `families`.
    ///
    /// It waits for every family, but no longer than one second once one has brought addresses, and never longer than
    /// ``answerLimit``. It fails when none brought an address: with `.noSuchName` if every family failed so, else
    /// with `.transient`.
    public func resolve(
        _ name: String, _ families: [IPAddress.Family] = [.v6, .v4],
        _ handler: @escaping @AgentQueue (Result<Resolution, ResolutionError>) -> Void
    ) -> Query {
        start(Query(name, families, of: self, .together(handler)))
    }

    /// Tells the resolver that the host's addresses or routes changed. The questions under way are asked again over
    /// new sockets, within their old limit: those they were asked over may be bound to an address that is gone, and
    /// their repetitions would leave with it in vain.
    public func networkChanged() {
        guard channel != nil else { return }
        renewChannel()
    }

    /// Takes down an answer of c-ares; ``deliver()`` hands it on when c-ares is off the stack.
    func receive(_ answer: Query.Answer, for question: Query.Question) {
        received.append((question, answer))
    }

    /// Hands on what was received. Handlers may ask, cancel and so close the channel: never call it within c-ares.
    func deliver() {
        let answers = received
        received = []
        for (question, answer) in answers { question.query.answer(question, answer) }
    }

    /// Drops a question that was answered or cancelled, and the channel with the last of them.
    func forget(_ question: Query.Question) {
        live[ObjectIdentifier(question)] = nil
        if live.isEmpty { closeChannel() }
    }

    private func start(_ query: Query) -> Query {
        renewChannelIfConfigurationChanged()
        for question in query.unanswered { live[ObjectIdentifier(question)] = question }
        withChannel(for: query.unanswered) { channel in
            if let entry = channel.hostsFileEntry(query.name) {
                for question in query.unanswered { receive(Self.answer(from: entry, question.family), for: question) }
            } else {
                for question in query.unanswered { channel.ask(question) }
            }
        }
        return query
    }

    private static func answer(from entry: [IPAddress.Family: [IPAddress]], _ family: IPAddress.Family) -> Query.Answer
    {
        guard let addresses = entry[family] else {
            return .failure(.noSuchName("the hosts file has no address of this family"))
        }
        return .success(Resolution(addresses: addresses, expires: BootClock.now(), isFromHostsFile: true))
    }

    /// Runs `body` with the channel; where there is none to be had, each question is answered with the reason.
    ///
    /// What is answered at once (by the hosts file, or because no packet could be sent) gets a turn of its own: the
    /// caller has the query in hand before its handler runs, and may cancel it.
    private func withChannel(for questions: some Sequence<Query.Question>, _ body: (Channel) -> Void) {
        do throws(ResolutionError) {
            body(try openChannel())
        } catch {
            for question in questions { receive(.failure(error), for: question) }
        }
        if !received.isEmpty { AgentQueue.async { self.deliver() } }
    }

    private func openChannel() throws(ResolutionError) -> Channel {
        if let channel { return channel }
        // The version is taken before the file is read: a change between the two is then seen as one, not missed.
        channelVersion = FileVersion(of: configurationFile)
        let opened = try Channel(configurationFile: configurationFile, port: port) { [self] in deliver() }
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
        guard channel != nil, FileVersion(of: configurationFile) != channelVersion else { return }
        renewChannel()
    }

    private func renewChannel() {
        closeChannel()
        withChannel(for: live.values) { channel in
            for question in live.values { channel.ask(question) }
        }
    }
}

/// What tells one content of a file from the next without reading it.
private struct FileVersion: Equatable {
    private let numbers: [Int]

    /// The version of the file at `path`, symbolic links followed; equal to itself when there is none.
    init(of path: String) {
        var status = stat()
        guard stat(path, &status) == 0 else {
            numbers = []
            return
        }
        let changed = status.st_mtim
        numbers = [Int(status.st_dev), Int(status.st_ino), Int(status.st_size), changed.tv_sec, changed.tv_nsec]
    }
}
