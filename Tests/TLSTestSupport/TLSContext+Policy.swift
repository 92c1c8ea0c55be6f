// SPDX-License-Identifier: Apache-2.0

package import DialtoneConnection
internal import DialtonePlatform
internal import DialtoneRelayMessages
package import DialtoneTLS
internal import Glibc

extension TLSFiles {
    /// The files that a policy names, opened as the agent opens them.
    package init(of policy: TLSPolicy) throws(TLSFailure) {
        let files = try SettingsFiles(of: policy)
        let opened = withExtendedLifetime(files) { files.numbers.map { dup($0) } }
        func file(_ index: Int) -> OwnedDescriptor? {
            index < opened.count ? OwnedDescriptor(opened[index]) : nil
        }
        self.init(
            authorities: OwnedDescriptor(opened[0]), certificate: file(1), key: file(2), password: file(3))
    }
}

extension TLSContext {
    /// A context for a policy, whose files are opened as the agent opens them.
    package convenience init(_ policy: TLSPolicy) throws(TLSFailure) {
        try self.init(policy, TLSFiles(of: policy))
    }
}
