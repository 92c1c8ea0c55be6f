// SPDX-License-Identifier: Apache-2.0

internal import CDialtoneBus
internal import DialtonePlatform

/// An object of ours at its path: finds the method that a call is for, checks what came with it, and answers
/// Introspect. `org.freedesktop.DBus.Peer` is sd-bus's own.
@AgentQueue
final class BusObject {
    private nonisolated static let introspectable = "org.freedesktop.DBus.Introspectable"

    let path: String
    private let interfaces: [BusInterface]
    private weak var connection: BusConnection?

    init(_ path: String, _ interfaces: [BusInterface], on connection: BusConnection) {
        self.path = path
        self.connection = connection
        self.interfaces = interfaces + [Self.introspection(of: interfaces)]
    }

    /// The interface that tells of the others and of itself.
    private nonisolated static func introspection(of interfaces: [BusInterface]) -> BusInterface {
        BusInterface(
            introspectable,
            [
                BusInterface.Method("Introspect", [], returns: [.init("xml_data", "s")]) { call in
                    call.reply([.string(description(of: interfaces + [introspection(of: [])]))])
                }
            ])
    }

    /// What Introspect answers (D-Bus specification, "Introspection Data Format").
    nonisolated static func description(of interfaces: [BusInterface]) -> String {
        var lines = [
            "<!DOCTYPE node PUBLIC \"-//freedesktop//DTD D-BUS Object Introspection 1.0//EN\"",
            " \"http://www.freedesktop.org/standards/dbus/1.0/introspect.dtd\">",
            "<node>",
        ]
        for interface in interfaces {
            lines.append("  <interface name=\"\(interface.name)\">")
            for method in interface.methods {
                lines.append("    <method name=\"\(method.name)\">")
                for (arguments, direction) in [(method.arguments, "in"), (method.results, "out")] {
                    lines += arguments.map {
                        "      <arg name=\"\($0.name)\" type=\"\($0.type)\" direction=\"\(direction)\"/>"
                    }
                }
                if method.hasNoReply {
                    lines.append("      <annotation name=\"org.freedesktop.DBus.Method.NoReply\" value=\"true\"/>")
                }
                lines.append("    </method>")
            }
            lines.append("  </interface>")
        }
        return (lines + ["</node>", ""]).joined(separator: "\n")
    }

    /// Takes a call for this object.
    fileprivate func take(_ pointer: OpaquePointer) {
        let message = BusMessage(pointer)
        // Each message that comes from a bus has a sender.
        guard let connection, let sender = message.sender else { return }
        func answer(_ method: BusInterface.Method?, _ arguments: [BusValue]) -> BusCall {
            let results = (method?.results ?? []).map(\.type).joined()
            return BusCall(pointer, from: sender, arguments, results: results, on: connection)
        }
        // A call may leave out its interface (D-Bus specification, "Message Types").
        let possible = interfaces.filter { message.interface == nil || $0.name == message.interface }
        let methods = possible.flatMap(\.methods).filter { $0.name == message.member }
        if possible.isEmpty {
            return answer(nil, []).fail(BusFailure.Name.unknownInterface, "there is no such interface at \(path)")
        }
        guard let first = methods.first else {
            return answer(nil, []).fail(BusFailure.Name.unknownMethod, "the interface has no such method")
        }
        guard let method = methods.first(where: { $0.signature == message.signature }), let values = message.values()
        else {
            let text = "\(first.name) takes \"\(first.signature)\", within 64 KiB and without a key twice"
            return answer(nil, []).fail(BusFailure.Name.invalidArguments, text)
        }
        let call = answer(method, values)
        method.handler(call)
        call.forgetArguments()
    }
}

/// Called by sd-bus within `sd_bus_process`, so on the agent's queue, with each call for an object's path.
func busCallArrived(
    _ message: OpaquePointer?, _ object: UnsafeMutableRawPointer?, _ error: UnsafeMutablePointer<sd_bus_error>?
) -> CInt {
    guard let message, let object else { return 0 }
    // Both are used in this call alone, on the queue that it is made on.
    nonisolated(unsafe) let (borrowed, context) = (message, object)
    AgentQueue.assumeIsolated { Unmanaged<BusObject>.fromOpaque(context).takeUnretainedValue().take(borrowed) }
    return 1
}
