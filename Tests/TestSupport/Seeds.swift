// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The seeds of a property test's runs: new ones each time, so that repeated runs see ever more cases.
///
/// A seed is the test's argument, so the runner prints it with a failure; `DIALTONE_SEED` in the environment replays
/// it.
package func seeds(_ count: Int) -> [UInt64] {
    if let text = getenv("DIALTONE_SEED"), let seed = UInt64(String(cString: text)) { return [seed] }
    return (0..<count).map { _ in UInt64.random(in: 0 ... .max) }
}
