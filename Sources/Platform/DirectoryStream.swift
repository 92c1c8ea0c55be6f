// SPDX-License-Identifier: Apache-2.0

package import Glibc

/// A directory that is read, entry by entry (readdir(3)), in the file system's order.
package struct DirectoryStream: ~Copyable {
    private let stream: OpaquePointer

    /// Opens the directory of a path.
    package init(_ path: String) throws(SystemError) {
        guard let stream = opendir(path) else { throw .last("reading \(path)") }
        self.stream = stream
    }

    /// Reads the directory that a descriptor is of, from its start; the descriptor stays as it is.
    package init(_ directory: borrowing OwnedDescriptor) throws(SystemError) {
        // The stream closes the one that it reads, and moves along in it.
        let number = openat(directory.number, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard number >= 0 else { throw .last("opening a directory") }
        guard let stream = fdopendir(number) else {
            let error = SystemError.last("reading a directory")
            close(number)
            throw error
        }
        self.stream = stream
    }

    deinit { closedir(stream) }

    /// The directory's own status (fstat(2)).
    package var status: stat {
        var status = stat()
        fstat(dirfd(stream), &status)
        return status
    }

    /// The name of the next entry; those of the directory itself and of the one above are left out. `nil` at the end.
    package borrowing func next() -> String? {
        while let entry = readdir(stream) {
            let name = withUnsafeBytes(of: &entry.pointee.d_name) {
                String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != ".", name != ".." { return name }
        }
        return nil
    }
}
