// SPDX-License-Identifier: Apache-2.0

import DialtoneExpectations
import DialtoneLabSupport
import DialtoneTestSupport
import Foundation
import Testing

/// `dialtone-reachable@.service` and its target, under a real systemd, as they are installed.
@Suite(.booted, .serialized, .timeLimit(.minutes(10)))
struct ReachableUnitStories {
    private static let (service, target) = (
        "dialtone-reachable@192.0.2.7.service", "dialtone-reachable@192.0.2.7.target"
    )

    /// A unit that is bound to the host, as docs/hooks-and-units.md has it, and takes so many seconds to stop.
    private static func phone(stop: Double = 0) -> String {
        """
        [Unit]
        BindsTo=\(target)
        After=\(target)

        [Service]
        ExecStart=/bin/sh -c 'trap "sleep \(stop); exit 0" TERM; sleep infinity & wait'
        KillMode=mixed

        [Install]
        WantedBy=\(target)
        """
    }

    /// One that stops at once, and one that still stops when the host's unit starts again.
    @Test(arguments: [0, 0.5])
    func `a bound unit stops when the route goes and starts when it is back, each time`(stop: Double) async throws {
        let machine = try await BootedMachine.boot(units: ["phone.service": Self.phone(stop: stop)])
        try await machine.run("systemctl", "--runtime", "enable", "phone.service")
        try await machine.run("systemctl", "start", "--no-block", Self.target)
        for _ in 0..<3 {
            try await machine.expect("activating", of: Self.service)
            try await machine.expect("inactive", of: Self.target, "phone.service")
            try await machine.expect("Not reachable: no interface has a carrier", .status, of: Self.service)
            try await machine.plug()
            try await machine.expect("active", of: Self.service, Self.target, "phone.service")
            try await machine.expect("Reachable", .status, of: Self.service)
            try await machine.network.ip("link del up0")
        }
        try await machine.turnOff()
    }

    @Test func `a start waits for the route, and systemctl stop lasts`() async throws {
        let machine = try await BootedMachine.boot(units: ["phone.service": Self.phone()])
        // Nobody wants it but this start.
        async let start = machine.run("systemctl", "start", "phone.service")
        try await machine.expect("activating", of: Self.service)
        try await machine.plug()
        _ = try await start
        try await machine.expect("active", of: Self.service, Self.target, "phone.service")
        try await machine.run("systemctl", "stop", Self.service)
        try await machine.expect("inactive", of: Self.service, Self.target, "phone.service")
        expect(try await machine.run("systemctl", "list-jobs", "--no-legend"), is: "")
        try await machine.turnOff()
    }

    @Test func `with --probe it waits for the server's answer`() async throws {
        let unit = "dialtone-reachable@127.0.0.1:7001.service"
        let machine = try await BootedMachine.boot()
        try await machine.run("systemctl", "set-environment", "OPTIONS=ignored")
        try await machine.run("mkdir", "-p", "/run/systemd/system/\(unit).d")
        try await machine.run(
            "sh", "-c", "printf '[Service]\\nEnvironment=OPTIONS=--probe\\n' >/run/systemd/system/\(unit).d/probe.conf")
        try await machine.run("systemctl", "daemon-reload")
        try await machine.run("systemctl", "start", "--no-block", unit)
        try await machine.expect("Not reachable: refused", .status, of: unit)
        try await machine.expect("activating", of: unit)
        let bell = try await machine.bell(7001)
        try await machine.expect("active", of: unit)
        try await machine.turnOff()
        withExtendedLifetime(bell) {}
    }

    @Test func `an instance that names no host fails, is not started again, and says what is wrong`() async throws {
        let machine = try await BootedMachine.boot()
        for (instance, words) in [
            ("my-host", "\"my/host\" is invalid"), ("my-host", "write a hyphen as \\x2d"),
            ("host:99999", "invalid port \"99999\""), ("gopher:--host", "unknown scheme \"gopher\""),
            ("fe80::1", "each link has a fe80::1 of its own"),
        ] {
            let unit = "dialtone-reachable@\(instance).service"
            try await machine.run("sh", "-c", "systemctl start '\(unit)' || true")
            try await machine.expect("failed", of: unit)
            let journal = try await machine.run("journalctl", "--unit=\(unit)", "--output=cat", "--no-pager")
            #expect(journal.contains(words), "\(journal)")
            expect(try await machine.run("systemctl", "show", unit, "--property=NRestarts", "--value"), is: "0")
        }
        try await machine.turnOff()
    }
}

extension BootedMachine {
    fileprivate enum Property: String {
        case state = "ActiveState"
        case status = "StatusText"
    }

    /// A link with a route to 192.0.2.0/24.
    fileprivate func plug() async throws {
        try await network.ip("link add up0 type veth peer name up1")
        try await network.ip("link set up1 up")
        try await network.ip("address add 192.0.2.1/24 dev up0")
        try await network.ip("link set up0 up")
    }

    /// Waits until a property of each unit has a value.
    fileprivate func expect(_ value: String, _ property: Property = .state, of units: String...) async throws {
        for unit in units {
            var seen = ""
            do {
                try await eventually("\(unit) to be \(value)") {
                    seen = try await run("systemctl", "show", unit, "--property=\(property.rawValue)", "--value")
                    return seen == value
                }
            } catch let error as NothingCame {
                let log = try await run("journalctl", "--unit=\(unit)", "--output=cat", "--no-pager")
                throw NothingCame(description: "\(error.description), it is \(seen)\n\(log)")
            }
        }
    }
}
