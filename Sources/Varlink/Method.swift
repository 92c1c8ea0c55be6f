// SPDX-License-Identifier: Apache-2.0

/// A method of a Varlink interface, as a type: what a call of it carries and what answers it.
///
/// ```swift
/// enum Ping: VarlinkMethod {
///     static let name = "org.example.Test.Ping"
///     struct Parameters: VarlinkObject { … }
///     typealias Reply = VarlinkEmpty
/// }
/// ```
///
/// `varlink-swift` makes them of an interface's definition.
public protocol VarlinkMethod: Sendable {
    /// What a call carries. ``VarlinkEmpty`` for nothing.
    associatedtype Parameters: VarlinkObject
    /// What each reply carries. ``VarlinkEmpty`` for nothing.
    associatedtype Reply: VarlinkObject

    /// The method's name with its interface: "org.example.Test.Ping".
    static var name: String { get }
    /// Whether the method answers with a stream of replies. One that does is called with `more`, or answers
    /// `org.varlink.service.ExpectedMore`.
    static var isStream: Bool { get }
    /// Whether descriptors ride on a call. Those that come with a call of a method without are closed. One with is
    /// answered by ``VarlinkService/handleLater(_:_:)``.
    static var takesDescriptors: Bool { get }
}

extension VarlinkMethod {
    /// One call, one reply.
    public static var isStream: Bool { false }
    /// None.
    public static var takesDescriptors: Bool { false }
}

/// An error that a method answers with, as a type: its stored properties are the error's parameters.
public protocol VarlinkErrorReply: VarlinkObject {
    /// The error's name with its interface: "org.example.Test.NoSuchThing".
    static var errorName: String { get }
}

/// A name of a method or error, split where the interface's name ends.
struct VarlinkName {
    let interface: String
    let member: String

    init?(_ name: String) {
        guard let dot = name.lastIndex(of: ".") else { return nil }
        interface = String(name[..<dot])
        member = String(name[name.index(after: dot)...])
        if interface.isEmpty || member.isEmpty { return nil }
    }
}
