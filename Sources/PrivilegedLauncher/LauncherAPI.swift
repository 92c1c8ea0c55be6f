// SPDX-License-Identifier: Apache-2.0

internal import Varlink

/// What the daemon asks of its launcher: the small privileged process that wakes clients where the daemon may not.
///
/// It takes a connection's name and no program, unit or user: those it reads from root's own files. A daemon that was
/// taken over can have nothing done that root has not written down.
enum LauncherAPI {
    static let name = "org.dialtone.Launcher"

    static let description = """
        # Wakes the clients of connections that root's configuration names, by the means that it names. For the daemon
        # alone.
        interface org.dialtone.Launcher

        # Attempts to wake the client of a connection, which root's files must give to "owner": names are by owner, and
        # a client of another user may have one of the same name. "process" is the place of a descriptor: of the
        # connection to the agent by which the client took it, from which the kernel tells whose process that is, or of
        # the program that was launched. "fileDescriptor" is that of its socket. The reply has a descriptor of the
        # program that was launched.
        method Wake(connection: string, owner: int, means: (signal, thaw, unit, exec), wake: int, attempt: int,
          reasons: []string, epoch: int, process: ?int, fileDescriptor: ?int) -> (process: ?int, number: ?int)

        # Replies when a program that was launched has ended, with its exit status or the signal that ended it.
        method Await(number: int) -> (status: ?int, signal: ?int)

        # It could not be done.
        error Failed(reason: string)
        """

    enum Wake: VarlinkMethod {
        static let name = "org.dialtone.Launcher.Wake"
        static let takesDescriptors = true

        struct Parameters: VarlinkParameters {
            var connection: String
            var owner: Int
            var means: String
            var wake: Int
            var attempt: Int
            var reasons: [String]
            var epoch: Int
            var process: Int?
            var fileDescriptor: Int?

            enum CodingKeys: String, CodingKey, CaseIterable {
                case connection, owner, means, wake, attempt, reasons, epoch, process, fileDescriptor
            }
        }

        struct Reply: Codable, Sendable {
            var process: Int?
            /// The program's number, for ``Await``.
            var number: Int?
        }
    }

    enum Await: VarlinkMethod {
        static let name = "org.dialtone.Launcher.Await"

        struct Parameters: VarlinkParameters {
            var number: Int

            enum CodingKeys: String, CodingKey, CaseIterable {
                case number
            }
        }

        struct Reply: Codable, Sendable {
            var status: Int?
            var signal: Int?
        }
    }

    struct Failed: VarlinkErrorReply {
        static let errorName = "org.dialtone.Launcher.Failed"
        var reason: String
    }
}
