// SPDX-License-Identifier: Apache-2.0

package import DialtonePlatform

/// What a service answers: its interfaces with their descriptions, and a handler for each method that is implemented.
/// `org.varlink.service` is among them from the start.
///
/// Handlers run on the agent's queue, one call of a connection after the other; see ``VarlinkServer``.
@AgentQueue
package final class VarlinkService {
    private struct Handler {
        let takesDescriptors: Bool
        let run: @AgentQueue (VarlinkCall, CallInProgress) throws(VarlinkFailure) -> Void
    }

    private struct Interface {
        let description: String
        var handlers: [String: Handler] = [:]
    }

    private var interfaces: [String: Interface] = [:]
    private var names: [String] = []

    /// Why nothing is done for a client, whatever it asks; `nil` where it is served. Its messages are not read: each is
    /// answered with that, also one that wants no answer.
    package var refusal: (@AgentQueue (VarlinkPeer) -> VarlinkFailure?)?

    /// A service with only `org.varlink.service`, whose `GetInfo` says what is given here.
    package init(vendor: String, product: String, version: String, url: String) {
        add(interface: ServiceAPI.name, description: ServiceAPI.description)
        handle(ServiceAPI.GetInfo.self) { [unowned self] _, _ in
            ServiceAPI.GetInfo.Reply(vendor: vendor, product: product, version: version, url: url, interfaces: names)
        }
        handle(ServiceAPI.GetInterfaceDescription.self) { [unowned self] parameters, _ throws(VarlinkFailure) in
            guard let interface = interfaces[parameters.interface] else {
                throw VarlinkFailure(ServiceAPI.InterfaceNotFound(interface: parameters.interface))
            }
            return ServiceAPI.GetInterfaceDescription.Reply(description: interface.description)
        }
    }

    /// Adds an interface. `description` is its definition in Varlink's language, as clients will get it.
    package func add(interface name: String, description: String) {
        // The daemon adds its interfaces at its start, whatever a client sends later.
        precondition(interfaces[name] == nil, "\(name) was added before")
        interfaces[name] = Interface(description: description)
        names.append(name)
    }

    /// Answers calls of `method` at once.
    package func handle<M: VarlinkMethod>(
        _ method: M.Type,
        _ handler: @escaping @AgentQueue (M.Parameters, VarlinkPeer) throws(VarlinkFailure) -> M.Reply
    ) {
        // Of the method's own declaration.
        precondition(!M.isStream, "\(M.name) answers with a stream")
        // Likewise.
        precondition(!M.takesDescriptors, "a handler of \(M.name) needs the exchange, where descriptors are")
        register(method) { call, progress throws(VarlinkFailure) in
            let parameters = try call.parameters(as: M.Parameters.self)
            progress.finish(.reply(try handler(parameters, progress.peer)))
        }
    }

    /// Answers calls of `method` later: the handler keeps the exchange until it has the answer. The connection waits.
    /// Descriptors are in the exchange as well, those of the call and those that ride on the answer.
    package func handleLater<M: VarlinkMethod>(
        _ method: M.Type,
        _ handler: @escaping @AgentQueue (M.Parameters, VarlinkExchange<M>) throws(VarlinkFailure) -> Void
    ) {
        // Of the method's own declaration.
        precondition(!M.isStream, "\(M.name) answers with a stream")
        register(method) { call, progress throws(VarlinkFailure) in
            try handler(try call.parameters(as: M.Parameters.self), VarlinkExchange(progress))
        }
    }

    /// Answers calls of `method` with a stream. The handler returns what the connection draws messages from, and keeps
    /// the stream to tell of new ones.
    package func handleStream<M: VarlinkMethod>(
        _ method: M.Type,
        _ handler: @escaping @AgentQueue (M.Parameters, VarlinkStream) throws(VarlinkFailure) -> any VarlinkSubscription
    ) {
        // Of the method's own declaration.
        precondition(M.isStream, "\(M.name) answers with a single reply")
        register(method) { call, progress throws(VarlinkFailure) in
            switch call.mode {
            case .more:
                let stream = VarlinkStream(progress)
                progress.stream(from: try handler(try call.parameters(as: M.Parameters.self), stream))
            case .single, .oneway, .upgrade:
                throw VarlinkFailure(ServiceAPI.ExpectedMore())
            }
        }
    }

    /// Methods that an interface declares and nobody answers: a service that is whole has none.
    package var unansweredMethods: [String] {
        names.flatMap { name -> [String] in
            guard let interface = interfaces[name] else { return [] }
            return interface.description.declaredMethods.filter { interface.handlers[$0] == nil }
                .map { "\(name).\($0)" }
        }
    }

    private func register<M: VarlinkMethod>(
        _ method: M.Type,
        _ handler: @escaping @AgentQueue (VarlinkCall, CallInProgress) throws(VarlinkFailure) -> Void
    ) {
        guard let name = VarlinkName(M.name), interfaces[name.interface] != nil else {
            // As above: at the start.
            preconditionFailure("the interface of \(M.name) was not added")
        }
        interfaces[name.interface]?.handlers[name.member] = Handler(takesDescriptors: M.takesDescriptors, run: handler)
    }

    /// Runs the handler of `call`, or answers why there is none.
    func begin(_ call: VarlinkCall, _ progress: CallInProgress) {
        do throws(VarlinkFailure) {
            let found = Result { () throws(VarlinkFailure) in try handler(for: call) }
            if (try? found.get())?.takesDescriptors != true { progress.refuseDescriptors() }
            if case .success = found { BlackBox.noteMethod(call.method) }
            try found.get().run(call, progress)
        } catch {
            progress.finish(error.message)
        }
    }

    private func handler(for call: VarlinkCall) throws(VarlinkFailure) -> Handler {
        guard let name = VarlinkName(call.method) else {
            throw VarlinkFailure(ServiceAPI.InvalidParameter(parameter: "method"))
        }
        guard let interface = interfaces[name.interface] else {
            throw VarlinkFailure(ServiceAPI.InterfaceNotFound(interface: name.interface))
        }
        guard let handler = interface.handlers[name.member] else {
            if interface.description.declaredMethods.contains(name.member) {
                throw VarlinkFailure(ServiceAPI.MethodNotImplemented(method: call.method))
            }
            throw VarlinkFailure(ServiceAPI.MethodNotFound(method: call.method))
        }
        // No method of this module's services changes the protocol of its connection.
        if call.mode == .upgrade { throw VarlinkFailure(ServiceAPI.MethodNotImplemented(method: call.method)) }
        return handler
    }
}

extension String {
    /// The methods of this definition of an interface. Definitions write one declaration a line.
    fileprivate var declaredMethods: [String] {
        split(separator: "\n").compactMap { line in
            let words = line.split(maxSplits: 2, whereSeparator: { " \t(".contains($0) })
            return words.count >= 2 && words[0] == "method" ? String(words[1]) : nil
        }
    }
}
