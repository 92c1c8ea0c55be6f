// SPDX-License-Identifier: Apache-2.0

import LabSupport
import Testing

extension Trait where Self == ConditionTrait {
    /// Skips a test outside of the Lab's sandbox, and says how to get into it.
    static var lab: Self {
        .enabled(if: LabSandbox.isInside, Comment(rawValue: LabSandbox.obstacle ?? "inside of the sandbox"))
    }
}
