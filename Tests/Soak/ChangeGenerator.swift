// SPDX-License-Identifier: Apache-2.0

import DialtoneTestSupport

/// Thinks up what happens to the network. The same seed gives the same changes, whatever the kernel makes of them:
/// about every other one fails for want of what it names, and that is part of the game.
struct ChangeGenerator {
    private var random: SplitMix64

    init(seed: UInt64) {
        random = SplitMix64(seed: seed)
    }

    /// The changes of one step: a single one for the most part, a burst now and then.
    mutating func step() -> Step {
        // Left to chance alone, sooner or later nothing is up and nothing can be told from anything else.
        if chance(12) { return Step(changes: repair()) }
        if chance(1) { return Step(changes: [.pause]) }
        let count =
            switch below(100) {
            case ..<45: 1
            case ..<75: 2 + below(4)
            case ..<93: 6 + below(25)
            default: 31 + below(170)
            }
        let changes = (0..<count).flatMap { _ in change() }
        // A storm comes as fast as one process can make it.
        return Step(changes: count > 30 && chance(70) ? changes.filter(\.isBatchable) : changes)
    }

    private mutating func change() -> [Change] {
        switch below(100) {
        case ..<14: linkChange()
        case ..<32: addressChange()
        case ..<62: routeChange()
        case ..<74: ruleChange()
        case ..<84: nextHopChange()
        case ..<93: neighbourChange()
        case ..<95: advertisement()
        default: parameterChange()
        }
    }

    /// What a network manager does after trouble.
    private mutating func repair() -> [Change] {
        var changes: [Change] = [.host("link set lo up")]
        for cable in Topology.cables where chance(70) {
            changes += Topology.farConfiguration(cable).map(Change.far)
            changes += Topology.configuration("e\(cable)", cable).map(Change.host)
        }
        // Rules are few and far-reaching: one that refuses everything must not stay for the rest of the run.
        for preference in 100...109 where chance(60) {
            changes += Self.bothFamilies("rule delete pref \(preference)")
        }
        return changes + Self.bothFamilies("rule add pref 32766 lookup main")
    }
}

// MARK: Chance

extension ChangeGenerator {
    mutating func below(_ bound: Int) -> Int { Int(truncatingIfNeeded: random.next() >> 1) % bound }
    mutating func chance(_ percent: Int) -> Bool { below(100) < percent }
    mutating func pick<T>(_ choices: [T]) -> T { choices[below(choices.count)] }
    /// `text` in so many of a hundred cases, else nothing.
    mutating func maybe(_ percent: Int, _ text: String) -> String { chance(percent) ? " " + text : "" }

    /// A link, the cables that stay three times as often as the others, and its number in addresses.
    mutating func link() -> (name: String, number: Int) {
        let links = [("x0", 3), ("x1", 4), ("m0", 5), ("b0", 6), ("i0", 7)]
        return chance(75) ? { ("e\($0)", $0) }(below(3)) : pick(links)
    }

    mutating func family() -> Int { pick([4, 6]) }

    /// Where nothing else in a command says which family is meant.
    static func bothFamilies(_ command: String) -> [Change] { ["-4", "-6"].map { .host("\($0) \(command)") } }
}
