// SPDX-License-Identifier: Apache-2.0

/// The value of a text that a test wrote itself, where only texts from outside can be malformed.
package func known<Value>(_ value: Value?, function: StaticString = #function) -> Value {
    // Tests call it with constants of their own; a mistake in one ends the run at once, and says where.
    guard let value else { preconditionFailure("\(function): not a \(Value.self)") }
    return value
}
