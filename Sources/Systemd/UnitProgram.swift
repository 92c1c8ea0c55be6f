// SPDX-License-Identifier: Apache-2.0

internal import DialtoneBus
internal import Glibc

/// A program that the service manager is to run, as a unit of its own.
package struct UnitProgram: Sendable {
    /// The unit's name without its kind: letters, digits and `. _ - :`.
    package var name: String
    /// What `systemctl status` says it is.
    package var description: String
    /// The program, by its absolute path, and its arguments.
    package var command: [String]
    /// Whose it is.
    package var user: UInt32
    /// Where it begins; the root where that is not there.
    package var directory: String
    /// Its environment, `NAME=value`.
    package var environment: [String]
    /// As what it writes to the journal.
    package var identifier: String
    /// Whether the socket is its standard output, too, or its standard input alone.
    package var writesToSocket: Bool
    /// How long it may take to begin.
    package var startLimit: Duration

    /// A program.
    package init(
        name: String, description: String, command: [String], user: UInt32, directory: String, environment: [String],
        identifier: String, writesToSocket: Bool, startLimit: Duration
    ) {
        self.name = name
        self.description = description
        self.command = command
        self.user = user
        self.directory = directory
        self.environment = environment
        self.identifier = identifier
        self.writesToSocket = writesToSocket
        self.startLimit = startLimit
    }

    /// How a program ended.
    package enum End: Hashable, Sendable {
        /// By itself, with this status.
        case exited(Int32)
        /// By this signal.
        case killed(Int32)
        /// Nobody saw how: the bus went before.
        case unseen
    }

    /// Writes the properties of the unit (org.freedesktop.systemd1(5), systemd.exec(5)).
    func write(_ arguments: BusArguments, socket: CInt?) {
        arguments.property("Description", "s") { arguments.string(description) }
        // The job is done when the program itself runs, or fails when it cannot be.
        arguments.property("Type", "s") { arguments.string("exec") }
        arguments.property("ExecStart", "a(sasb)") {
            arguments.array(of: "(sasb)") {
                arguments.structure("sasb") {
                    arguments.string(command.first ?? "")
                    // systemd puts variables into the arguments, and not into the path (systemd.service(5), "Command
                    // lines").
                    arguments.strings(command.map(Self.escaped))
                    arguments.boolean(false)
                }
            }
        }
        arguments.property("User", "s") { arguments.string("\(user)") }
        arguments.property("WorkingDirectory", "s") {
            // A user's entry may name a home that is no absolute path, which systemd refuses.
            arguments.string("-\(directory.hasPrefix("/") ? directory : "/")")
        }
        arguments.property("Environment", "as") { arguments.strings(environment) }
        arguments.property("TimeoutStartUSec", "t") {
            // The launcher's own figure: some seconds.
            arguments.uint64(UInt64(startLimit / .microseconds(1)))
        }
        writeStreams(arguments, socket)
        // No privilege, and no way to gain one; and the signals as a shell would give them.
        arguments.property("NoNewPrivileges", "b") { arguments.boolean(true) }
        arguments.property("CapabilityBoundingSet", "t") { arguments.uint64(0) }
        arguments.property("IgnoreSIGPIPE", "b") { arguments.boolean(false) }
        arguments.property("UMask", "u") { arguments.uint32(0o022) }
        // What it leaves running goes on, as it would without a unit.
        arguments.property("KillMode", "s") { arguments.string("process") }
        // How it ended is known for as long as somebody holds on to it, and nothing is left of it after that.
        arguments.property("AddRef", "b") { arguments.boolean(true) }
        arguments.property("CollectMode", "s") { arguments.string("inactive-or-failed") }
    }

    /// What systemd makes `argument` of: two dollar signs stand for one.
    static func escaped(_ argument: String) -> String {
        // By the scalar: a dollar sign makes one character with a mark that follows it.
        String(String.UnicodeScalarView(argument.unicodeScalars.flatMap { $0 == "$" ? [$0, $0] : [$0] }))
    }

    private func writeStreams(_ arguments: BusArguments, _ socket: CInt?) {
        if let socket {
            arguments.property("StandardInputFileDescriptor", "h") { arguments.descriptor(socket) }
        }
        if let socket, writesToSocket {
            arguments.property("StandardOutputFileDescriptor", "h") { arguments.descriptor(socket) }
        } else {
            arguments.property("StandardOutput", "s") { arguments.string("journal") }
        }
        arguments.property("StandardError", "s") { arguments.string("journal") }
        arguments.property("SyslogIdentifier", "s") { arguments.string(identifier) }
    }
}
