// SPDX-License-Identifier: Apache-2.0

/// One call of ``ConnectionStateMachine/process(_:now:using:)``: its instant, its random source, and the actions so
/// far.
struct Turn<Random: RandomNumberGenerator> {
    let now: Duration
    var random: Random
    var actions: [ConnectionAction] = []

    mutating func perform(_ action: ConnectionAction) {
        actions.append(action)
    }
}
