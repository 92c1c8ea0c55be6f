// SPDX-License-Identifier: Apache-2.0

internal import DialtonePlatform
internal import Glibc

/// A file in memory in which it is counted how far flows are.
final class CountsFile: Sendable {
    let descriptor: OwnedDescriptor

    init(_ descriptor: consuming OwnedDescriptor) { self.descriptor = descriptor }
}

/// The files of the agents that have flows here. Each comes with every request; one descriptor of it is enough.
final class CountsFiles: Sendable {
    private struct Entry: Sendable {
        weak var file: CountsFile?
    }

    private let entries = Lock<[ino_t: Entry]>([:])

    /// The file behind a descriptor, which is kept or closed.
    func file(_ descriptor: consuming OwnedDescriptor) -> CountsFile {
        var status = stat()
        fstat(descriptor.number, &status)
        let new = CountsFile(descriptor)
        // Files in memory are all on one file system, so its number tells one from all others that there are.
        return entries.withLock { entries in
            if let known = entries[status.st_ino]?.file { return known }
            entries = entries.filter { $0.value.file != nil }
            entries[status.st_ino] = Entry(file: new)
            return new
        }
    }
}
