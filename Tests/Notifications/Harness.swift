// SPDX-License-Identifier: Apache-2.0

import DialtoneNotifications
import Testing

/// A board, a clock that the test turns, and a daemon that the test plays.
struct Wall {
    var board = NoticeBoard(pushConnection: "push") { "\($0.components.seconds) s" }
    var now = Duration.seconds(1000)
    /// What the daemon shows: by its own number.
    var shown: [UInt32: Notice.Content] = [:]
    /// All that was done, in words.
    var done: [String] = []
    var hasDaemon = true
    /// Whether the daemon answers at once; else ``answer()`` has it do so.
    var answersAtOnce = true
    private var unanswered: [(Notice, UInt64)] = []
    private var nextID: UInt32 = 1

    /// - Parameter hasBus: whether the bus is connected to.
    init(hasBus: Bool = true) { if hasBus { take(.daemonCame) } }

    static let outage = "show 1: office is down / Since 1000 s: refused [Redial]"

    /// One that an outage has been shown on.
    static func withOutage() -> Wall {
        var wall = Wall()
        wall.take(.snapshot([.down()]))
        wall.pass(.seconds(600))
        #expect(wall.news() == [outage])
        return wall
    }

    /// Tells the board something, and does what it says.
    mutating func take(_ input: NoticeInput) {
        for effect in board.take(input, at: now) {
            switch effect {
            case .show(let notice, let attempt):
                unanswered.append((notice, attempt))
            case .withdraw(let id):
                done.append("withdraw \(id)")
                shown[id] = nil
            case .redial(let name): done.append("redial \(name)")
            case .run(let command, let subject):
                done.append("run \(command.joined(separator: " ")) for \(subject.name)")
            case .full: done.append("full")
            }
        }
        if answersAtOnce { answer() }
    }

    /// Has the daemon answer what it was asked.
    mutating func answer() {
        while !unanswered.isEmpty {
            let (notice, attempt) = unanswered.removeFirst()
            guard hasDaemon else {
                done.append("nobody shows \(notice.content.title)")
                take(.notShown(attempt: attempt))
                continue
            }
            let id = notice.replaces.flatMap { shown[$0] == nil ? nil : $0 } ?? nextID
            if id == nextID { nextID += 1 }
            done.append("\(notice.replaces == nil ? "show" : "update") \(id): \(notice.content.text)")
            shown[id] = notice.content
            take(.shown(attempt: attempt, id: id))
        }
    }

    /// Lets time pass, from one deadline to the next.
    mutating func pass(_ time: Duration) {
        let end = now + time
        while let deadline = board.deadline, deadline <= end {
            now = max(deadline, now)
            take(.timePassed)
        }
        now = end
    }

    /// The machine sleeps: no timer rings until the end.
    mutating func suspend(_ time: Duration) {
        now += time
        if let deadline = board.deadline, deadline <= now { take(.timePassed) }
    }

    /// The user closes one, or its time on the screen is over.
    mutating func close(_ id: UInt32) {
        shown[id] = nil
        take(.closedByDaemon(id: id))
    }

    /// What was done since the last look.
    mutating func news() -> [String] {
        defer { done = [] }
        return done
    }
}

extension Notice.Content {
    var text: String { "\(title) / \(body)\(button.map { " [\($0)]" } ?? "")" }
}

extension WatchedConnection {
    static func up(_ name: String = "office") -> WatchedConnection { WatchedConnection(name: name) }

    /// Down since then; each instant is another outage.
    static func down(_ name: String = "office", since: Int64 = 1000, _ failure: String? = "refused")
        -> WatchedConnection
    {
        var connection = WatchedConnection(name: name)
        connection.downSince = .seconds(since)
        connection.failure = failure
        return connection
    }

    func with(_ change: (inout WatchedConnection) -> Void) -> WatchedConnection {
        var connection = self
        change(&connection)
        return connection
    }
}
