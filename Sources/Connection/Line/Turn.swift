// SPDX-License-Identifier: Apache-2.0

/// One call of ``ConnectionStateMachine/process(_:now:dialsFrom:using:)``: its instant, from when on its user lets it
/// dial, its random source, and the actions so far.
struct Turn<Random: RandomNumberGenerator> {
    let now: Duration
    let dialsFrom: Duration
    var random: Random
    var actions: [ConnectionAction] = []

    mutating func perform(_ action: ConnectionAction) {
        actions.append(action)
    }
}
