// SPDX-License-Identifier: Apache-2.0

/// A value that takes one word where it is kept, and whose copies share it: for what is large, and mostly absent or the
/// same in many places. An agent keeps thousands of connections, and several events of each.
package indirect enum Boxed<Value: Sendable>: Sendable {
    case value(Value)

    package var value: Value {
        switch self {
        case .value(let value): value
        }
    }
}

extension Boxed: Equatable where Value: Equatable {}
extension Boxed: Hashable where Value: Hashable {}
