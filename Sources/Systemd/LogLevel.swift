// SPDX-License-Identifier: Apache-2.0

package import DialtonePlatform
package import Logging

extension ProgramOptions {
    /// The least that is logged, by the option `--log-level`.
    package func logLevel() throws(Mistake) -> Logger.Level {
        guard let text = self["log-level"] else { return .notice }
        guard let level = Logger.Level(rawValue: text) else {
            let levels = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
            throw Mistake(description: "'\(text)' is no log level; there are \(levels)")
        }
        return level
    }
}
