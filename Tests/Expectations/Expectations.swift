// SPDX-License-Identifier: Apache-2.0

package import Testing

/// Expects a value that had to be awaited, and prints it where it is another: `#expect` prints no part of an expression
/// with `await` in it.
package func expect<Value: Equatable>(
    _ value: Value, is expected: Value, _ comment: @autoclosure () -> Comment? = nil,
    sourceLocation: SourceLocation = #_sourceLocation
) {
    #expect(value == expected, comment(), sourceLocation: sourceLocation)
}

/// Expects that something holds of a value that had to be awaited, and prints the value where it does not.
package func expect<Value>(
    _ value: Value, _ comment: @autoclosure () -> Comment? = nil, sourceLocation: SourceLocation = #_sourceLocation,
    that holds: (Value) throws -> Bool
) rethrows {
    if try holds(value) { return }
    Issue.record("\(comment().map { "\($0): " } ?? "")what came was \(value)", sourceLocation: sourceLocation)
}
