// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// The files of this repository, as far as tests run, read or install them.
package enum SourceTree {
    /// The repository's own folder.
    package static let root = URL(filePath: #filePath).appending(path: "../../..").standardizedFileURL.path
}
