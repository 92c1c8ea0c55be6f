// SPDX-License-Identifier: Apache-2.0

internal import DialtoneVarlink

/// From when on ntfy's messages are asked for on the next socket, and which of those are known already.
///
/// ntfy wants no acknowledgement: a client says by `since` what it has, as a time or as the id of a message. The id
/// of the last one that arrived would lose messages. The server subscribes a client before it hands over the stored
/// messages, so that a new one may come first (`handleSubscribeWS`), and it hands on a new message beside storing it,
/// so that two may arrive in the other order than they are stored in. So this keeps a time of the server's clock
/// before which everything arrived, and the names of those behind it that arrived, too. Messages and mark are saved
/// in one transaction: what is before the mark, or named behind it, is in our store.
///
/// The mark moves on, by whole seconds, when that is safe:
///
/// - To the second behind the newest message once nothing came for a minute. The stored ones come without a pause: the
///   server gives up a socket that takes over 2 s for a message (`wsWriteWait`).
/// - To a minute before the newest message while messages keep coming, once no older one came for a minute.
struct NtfyMark: VarlinkObject {
    /// The minute of both rules.
    static let patience = Duration.seconds(60)
    /// So many seconds may lie between two messages that arrive in the other order than their times. A message that the
    /// sender delayed is sent up to 10 s after its time (`DelayedSenderInterval`).
    static let overlap = 60
    /// The most names that are kept. A message whose name is forgotten is told once more.
    static let mostNames = 300
    /// The largest time: in the year 9999.
    static let latest = 253_402_300_799

    /// Everything with an earlier time has arrived, in seconds since 1970; 0 for nothing.
    private(set) var since = 0
    /// Messages from `since` on that arrived.
    private var names: [Name] = []

    /// Of this socket alone: the newest time that came, when something came last, when something came that was
    /// older than the newest, and whether a message must come again.
    private var newest = 0
    private var lastCame: Duration?
    private var lastStraggled = Duration.zero
    private var isHeld = false

    private struct Name: VarlinkObject {
        let id: String
        let time: Int

        init(id: String, time: Int) { (self.id, self.time) = (id, time) }

        init?(from fields: inout some VarlinkFieldReader) {
            guard let id = fields.text("id"), let time = fields.integer("time") else { return nil }
            self.init(id: id, time: time)
        }

        func write(to fields: inout some VarlinkFieldWriter) {
            fields.put("id", id)
            fields.put("time", time)
        }
    }

    /// Nothing has arrived.
    init() {}

    /// Reads what was saved.
    init?(from fields: inout some VarlinkFieldReader) {
        since = min(max(fields.integer("since") ?? 0, 0), Self.latest)
        let names: [Name] = fields.objects("names") ?? []
        self.names = Array(names.suffix(Self.mostNames))
    }

    /// Writes what outlives the process.
    func write(to fields: inout some VarlinkFieldWriter) {
        fields.put("since", since)
        fields.put("names", names)
    }

    /// What the request has for `since`. A topic is drawn at random and ours alone: all that is stored there is ours.
    var parameter: String { since == 0 ? "all" : "\(since)" }

    /// When the mark may move on without another message.
    var deadline: Duration? { isHeld ? nil : lastCame.map { $0 + Self.patience } }

    /// A socket on which the server hands over what is stored.
    mutating func begin(at now: Duration) {
        (newest, lastCame, lastStraggled, isHeld) = (since, nil, now, false)
    }

    /// A message came.
    ///
    /// - Returns: whether it is a new one.
    mutating func came(_ id: String, time: Int, at now: Duration) -> Bool {
        if !isHeld, lastCame != nil, now - lastStraggled >= Self.patience { raise(to: newest - Self.overlap) }
        if time < newest - Self.overlap { lastStraggled = now }
        newest = max(newest, time)
        lastCame = now
        guard !names.contains(where: { $0.id == id }) else { return false }
        names.append(Name(id: id, time: time))
        if names.count > Self.mostNames, let oldest = names.indices.min(by: { names[$0].time < names[$1].time }) {
            names.remove(at: oldest)
        }
        return true
    }

    /// The deadline is there. Where it is long past, the machine or this process slept, and may have slept in the
    /// middle of what the server hands over: then the minute begins anew.
    mutating func passTime(at now: Duration) {
        guard let deadline, deadline <= now else { return }
        guard now - deadline < Self.patience else {
            lastCame = now
            return
        }
        lastCame = nil
        raise(to: newest + 1)
    }

    /// A message that came is to come once more, on the next socket.
    mutating func putOff(_ id: String, time: Int) {
        isHeld = true
        since = min(since, time)
        names.removeAll { $0.id == id }
    }

    private mutating func raise(to time: Int) {
        guard time > since else { return }
        since = min(time, Self.latest)
        names.removeAll { $0.time < since }
    }
}
