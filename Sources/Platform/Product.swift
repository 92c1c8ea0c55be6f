// SPDX-License-Identifier: Apache-2.0

/// What is true of the daemon and its command line alike, which are released together.
package enum Product {
    /// The version that `--version` and `org.varlink.service.GetInfo` tell: the one in the file `VERSION`.
    package static let version = "0.1.0"
    /// Where to read about it, as `GetInfo` tells it. The project has no site, but its manual is on each machine that
    /// it is installed on. The form is that of `Documentation=` in systemd.unit(5); uri(7) has the scheme.
    package static let homepage = "man:dialtone(1)"
}
