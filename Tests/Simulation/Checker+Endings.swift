// SPDX-License-Identifier: Apache-2.0

@testable import DialtoneConnection

// Servers that end each flow at the same age.

extension Checker {
    /// The failures so far have another cause than those that may come.
    func startOver() {
        (failures, refusedSince) = (0, nil)
        endings = []
    }

    /// A flow that stood is over.
    func noteEnding(at age: Duration, of input: ConnectionInput) {
        switch input {
        case .remoteClosed, .flowFailed(_, .reset):
            // As old as ten minutes, a flow may be ended for its age.
            if age > .seconds(600) { return endings = [] }
            if let last = endings.last, age < last * 0.9 || age > last * 1.1 { endings = [] }
            endings.append(age)
        case .flowFailed: endings = []
        default: break
        }
    }

    /// Whether a flow without a login that lasted so long is one of a row that the server ends early.
    func isShortLived(at age: Duration) -> Bool {
        guard endings.count > 1, let last = endings.last else { return false }
        return age <= last * 1.1
    }
}
