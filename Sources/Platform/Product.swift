// SPDX-License-Identifier: Apache-2.0

/// What is true of the daemon and its command line alike, which are released together.
package enum Product {
    /// The version that `--version` and `org.varlink.service.GetInfo` tell.
    package static let version = "0.1.0"
}
