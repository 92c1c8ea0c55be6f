// SPDX-License-Identifier: Apache-2.0

import DialtoneNotifications
import Testing

/// What a user sees of an outage, from its beginning to its end.
@Suite struct BoardTests {
    @Test func `an outage is shown after ten minutes, once, and withdrawn when it is over`() {
        var wall = Wall()
        wall.take(.snapshot([.up()]))
        #expect(wall.board.deadline == nil)
        wall.take(.changed(.down()))
        #expect(wall.board.deadline == .seconds(1600))
        wall.pass(.milliseconds(599_999))
        #expect(wall.news() == [])
        wall.pass(.milliseconds(1))
        #expect(wall.news() == [Wall.outage])
        #expect(wall.board.deadline == nil, "nothing is waited for")
        for _ in 0..<3 { wall.take(.changed(.down())) }
        wall.pass(.seconds(100_000))
        #expect(wall.news() == [])
        wall.take(.changed(.up()))
        #expect(wall.news() == ["withdraw 1"])
        #expect(wall.board.overview.isEmpty)
    }

    @Test func `a short outage is not shown`() {
        var wall = Wall()
        wall.take(.snapshot([.down()]))
        wall.pass(.seconds(599))
        wall.take(.changed(.up()))
        wall.pass(.seconds(10_000))
        // The next one has its own ten minutes.
        wall.take(.changed(.down(since: 11_599)))
        wall.pass(.seconds(599))
        #expect(wall.news() == [])
        wall.pass(.seconds(1))
        #expect(wall.news() == ["show 1: office is down / Since 11599 s: refused [Redial]"])
    }

    @Test func `it is updated when it says something else, and not more often than once a minute`() {
        var wall = Wall.withOutage()
        wall.take(.changed(.down("office", "no route")))
        #expect(wall.news() == ["update 1: office is down / Since 1000 s: no route [Redial]"])
        wall.take(.changed(.down("office", "refused")))
        wall.pass(.seconds(30))
        wall.take(.changed(.down("office", "timed out")))
        wall.pass(.milliseconds(29_999))
        #expect(wall.news() == [])
        wall.pass(.milliseconds(1))
        #expect(wall.news() == ["update 1: office is down / Since 1000 s: timed out [Redial]"])
        // What is back to what is shown is no news.
        wall.take(.changed(.down("office", "refused")))
        wall.take(.changed(.down("office", "timed out")))
        wall.pass(.seconds(1000))
        #expect(wall.news() == [])
    }

    @Test func `what the user closed does not come again for the same outage`() {
        var wall = Wall.withOutage()
        wall.close(1)
        wall.take(.changed(.down("office", "no route")))
        wall.take(.daemonWent)
        wall.take(.daemonCame)
        wall.pass(.seconds(10_000))
        #expect(wall.news() == [])
        #expect(wall.board.overview.map(\.stage) == [.seen])
        wall.take(.changed(.up()))
        wall.take(.changed(.down(since: 11_600)))
        wall.pass(.seconds(600))
        #expect(wall.news() == ["show 2: office is down / Since 11600 s: refused [Redial]"])
    }

    @Test func `an outage whose beginning is told a little differently is the same one`() {
        var wall = Wall.withOutage()
        for milliseconds in [-3, 3, -1] {
            wall.take(.changed(.down().with { $0.downSince = .seconds(1000) + .milliseconds(milliseconds) }))
        }
        #expect(wall.news() == [])
    }

    @Test func `an outage whose end was missed is another one`() {
        var wall = Wall.withOutage()
        wall.take(.snapshot([.down(since: 1600)]))
        #expect(wall.news() == ["withdraw 1"])
        wall.pass(.seconds(600))
        #expect(wall.news() == ["show 2: office is down / Since 1600 s: refused [Redial]"])
    }

    @Test func `what is noticed late must last for another minute`() {
        var wall = Wall()
        wall.take(.snapshot([.down(since: -5000)]))
        wall.pass(.seconds(59))
        #expect(wall.news() == [], "the session begins, and the network is coming up")
        wall.pass(.seconds(1))
        #expect(wall.news() == ["show 1: office is down / Since -5000 s: refused [Redial]"])
        wall.take(.changed(.up()))
        wall.take(.changed(.down(since: 1060)))
        _ = wall.news()
        wall.suspend(.seconds(28_800))
        #expect(wall.news() == [], "the machine slept")
        wall.take(.changed(.up()))
        wall.pass(.seconds(600))
        #expect(wall.news() == [])
    }

    @Test func `its button dials anew, and an outage that stands is shown again after the same time`() {
        var wall = Wall.withOutage()
        wall.take(.pressed(id: 1))
        #expect(wall.news() == ["redial office", "withdraw 1"])
        wall.close(1)
        wall.take(.pressed(id: 1))
        wall.pass(.seconds(599))
        #expect(wall.news() == [], "one press is one redial")
        wall.pass(.seconds(1))
        #expect(wall.news() == ["show 2: office is down / Since 1000 s: refused [Redial]"])
        wall.take(.changed(.up()))
        #expect(wall.news() == ["withdraw 2"])
    }

    @Test func `while the agent is away nothing new is said of connections, and what stands stays`() {
        var wall = Wall.withOutage()
        wall.take(.changed(.down("van", since: 1600)))
        wall.take(.agentLost)
        wall.pass(.seconds(3000))
        #expect(wall.news() == [])
        #expect(wall.board.deadline == nil)
        wall.take(.snapshot([.up(), .down("van", since: 1600)]))
        #expect(wall.news() == ["withdraw 1"])
        wall.pass(.seconds(60))
        #expect(wall.news() == ["show 2: van is down / Since 1600 s: refused [Redial]"])
        wall.take(.agentLost)
        wall.take(.snapshot([]))
        #expect(wall.news() == ["withdraw 2"], "it is no connection any more")
    }

    @Test func `a connection that is closed is no outage`() {
        var wall = Wall.withOutage()
        wall.take(.closed("office"))
        #expect(wall.news() == ["withdraw 1"])
    }
}

/// Daemons that come, go and answer late.
@Suite struct DaemonTests {
    @Test func `without a daemon what is due is kept, and shown by the next one if it is still true`() {
        var wall = Wall()
        wall.hasDaemon = false
        wall.take(.snapshot([.down(), .down("van")]))
        wall.pass(.seconds(600))
        #expect(wall.news() == ["nobody shows office is down", "nobody shows van is down"])
        for reason in ["no route", "timed out", "refused"] { wall.take(.changed(.down("office", reason))) }
        wall.pass(.seconds(100_000))
        #expect(wall.news() == [], "nothing is tried in a loop")
        #expect(wall.board.deadline == nil)
        #expect(wall.board.overview.map(\.stage) == [.kept, .kept])
        wall.take(.changed(.up("van")))
        wall.hasDaemon = true
        wall.take(.daemonCame)
        #expect(wall.news() == ["show 1: office is down / Since 1000 s: refused [Redial]"])
    }

    @Test func `before there is a bus nothing is tried`() {
        var wall = Wall(hasBus: false)
        wall.take(.appNotStarted(app: "phone", why: "no"))
        wall.pass(.seconds(1))
        #expect(wall.news() == [])
        #expect(wall.board.deadline == nil)
        wall.take(.daemonCame)
        #expect(wall.news() == ["show 1: phone cannot be started / A push waits for it: no"])
    }

    @Test func `something new that is due is another attempt, since the bus may start a daemon only now`() {
        var wall = Wall()
        wall.hasDaemon = false
        wall.take(.snapshot([.down()]))
        wall.pass(.seconds(600))
        _ = wall.news()
        wall.hasDaemon = true
        wall.take(.changed(.down("van", since: 1600)))
        wall.pass(.seconds(600))
        #expect(
            wall.news() == [
                "show 1: office is down / Since 1000 s: refused [Redial]",
                "show 2: van is down / Since 1600 s: refused [Redial]",
            ])
    }

    @Test func `a daemon that takes another's place is shown everything, and one after the other not too often`() {
        var wall = Wall.withOutage()
        wall.take(.daemonCame)
        wall.pass(.seconds(9))
        #expect(wall.news() == [])
        wall.pass(.seconds(1))
        #expect(wall.news() == ["show 2: office is down / Since 1000 s: refused [Redial]"])
        wall.pass(.seconds(10))
        wall.take(.daemonCame)
        #expect(wall.news() == ["show 3: office is down / Since 1000 s: refused [Redial]"], "long enough after that")
        // This one ends at what it is shown, and is started again and again.
        for _ in 0..<100 {
            wall.take(.daemonWent)
            wall.take(.daemonCame)
            wall.pass(.seconds(1))
        }
        let shows = wall.news().count
        #expect((8...11).contains(shows), "\(shows) in 100 s")
    }

    @Test func `one that is over before the daemon answered is withdrawn at the answer`() {
        var wall = Wall()
        wall.answersAtOnce = false
        wall.take(.snapshot([.down()]))
        wall.pass(.seconds(600))
        wall.take(.changed(.up()))
        #expect(wall.news() == [])
        wall.answer()
        #expect(wall.news() == ["show 1: office is down / Since 1000 s: refused [Redial]", "withdraw 1"])
    }

    @Test func `one that is over while it is updated is withdrawn at once`() {
        var wall = Wall.withOutage()
        wall.answersAtOnce = false
        wall.take(.changed(.down("office", "no route")))
        wall.take(.changed(.up()))
        #expect(wall.news() == ["withdraw 1"])
    }

    @Test func `one that is closed while it is updated stays closed`() {
        var wall = Wall.withOutage()
        wall.answersAtOnce = false
        wall.take(.changed(.down("office", "no route")))
        wall.close(1)
        wall.answer()
        _ = wall.news()
        #expect(wall.shown.isEmpty, "the daemon made a new one of the update")
        #expect(wall.board.overview.map(\.stage) == [.seen])
    }

    @Test func `an answer that comes after the daemon is no answer of the next one`() {
        var wall = Wall()
        wall.answersAtOnce = false
        wall.take(.snapshot([.down()]))
        wall.pass(.seconds(600))
        wall.take(.daemonWent)
        wall.take(.notShown(attempt: 1))
        wall.take(.daemonCame)
        wall.pass(.seconds(10))
        wall.take(.notShown(attempt: 1))
        #expect(wall.board.overview.map(\.stage) == [.shown])
    }

    @Test func `no more than eight stand at once, and the others follow`() {
        var wall = Wall()
        let all = (10..<30).map { WatchedConnection.down("c\($0)") }
        wall.take(.snapshot(all))
        wall.pass(.seconds(600))
        #expect(wall.news().count == 8)
        #expect(wall.board.deadline == nil)
        wall.close(3)
        wall.take(.changed(.up("c10")))
        #expect(
            wall.news() == [
                "show 9: c18 is down / Since 1000 s: refused [Redial]", "withdraw 1",
                "show 10: c19 is down / Since 1000 s: refused [Redial]",
            ])
    }

    @Test func `so many troubles are followed and no more`() {
        var wall = Wall()
        wall.take(.snapshot((0..<1000).map { WatchedConnection.down("c\($0)") }))
        #expect(wall.news() == ["full"])
        #expect(wall.board.overview.count == 256)
        for number in 0..<1000 { wall.take(.appNotStarted(app: "app\(number)", why: "no")) }
        #expect(wall.board.overview.count == 256)
        #expect(wall.news() == [])
    }
}
