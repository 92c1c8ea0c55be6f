// SPDX-License-Identifier: Apache-2.0

/// A method of a Varlink interface, as a type: what a call of it carries and what answers it.
///
/// ```swift
/// enum Ping: VarlinkMethod {
///     static let name = "org.example.Test.Ping"
///     struct Parameters: VarlinkParameters {
///         var text: String
///         enum CodingKeys: CodingKey { case text }
///     }
///     struct Reply: Codable, Sendable { var text: String }
/// }
/// ```
public protocol VarlinkMethod: Sendable {
    /// What a call carries. ``VarlinkEmpty`` for nothing.
    associatedtype Parameters: VarlinkParameters
    /// What each reply carries. ``VarlinkEmpty`` for nothing.
    associatedtype Reply: Codable & Sendable

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

    /// The interface's part of ``name``.
    public static var interfaceName: String { VarlinkName(name)?.interface ?? "" }
}

/// The parameters of a method.
///
/// Fields that the method does not have are refused by their name: a caller who misspells an optional parameter must
/// not get the behaviour without it. That needs the names, so the coding keys, which the compiler otherwise keeps to
/// itself, are spelled out.
public protocol VarlinkParameters: Codable, Sendable {
    /// The fields there are.
    associatedtype CodingKeys: CodingKey

    /// The type of a field that is an object, or an array of objects, whose own fields are to be checked as well.
    static func object(in field: CodingKeys) -> (any VarlinkParameters.Type)?
}

extension VarlinkParameters {
    /// No field is an object.
    public static func object(in field: CodingKeys) -> (any VarlinkParameters.Type)? { nil }

    /// Throws `DecodingError.dataCorrupted` at the first field that this type, or one inside it, does not have.
    static func refuseUnknownFields(_ decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: AnyKey.self)
        for key in container.allKeys {
            guard let field = CodingKeys(stringValue: key.stringValue) else {
                throw DecodingError.dataCorruptedError(forKey: key, in: container, debugDescription: "no such field")
            }
            if let object = object(in: field), try !container.decodeNil(forKey: key) {
                try object.refuseUnknownFieldsOfEach(container.superDecoder(forKey: key))
            }
        }
    }
}

extension VarlinkParameters {
    /// The same for an object or for each one of an array.
    fileprivate static func refuseUnknownFieldsOfEach(_ decoder: any Decoder) throws {
        guard var objects = try? decoder.unkeyedContainer() else { return try refuseUnknownFields(decoder) }
        while !objects.isAtEnd { try refuseUnknownFields(objects.superDecoder()) }
    }
}

/// No parameters.
public struct VarlinkEmpty: VarlinkParameters, Hashable {
    /// It has no fields.
    public enum CodingKeys: CodingKey {}

    /// No parameters.
    public init() {}
}

/// An error that a method answers with, as a type: its stored properties are the error's parameters.
public protocol VarlinkErrorReply: Codable, Sendable {
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
