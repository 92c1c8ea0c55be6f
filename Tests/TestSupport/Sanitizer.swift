// SPDX-License-Identifier: Apache-2.0

private import Glibc

/// Whether the tests were built with AddressSanitizer or ThreadSanitizer. They multiply the memory that a program
/// takes, so that bounds of it say nothing.
package let isSanitized = dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil

/// Whether `memory` is below `bound`. Under a sanitizer that is not held, which is said.
package func isBelow(_ memory: Int, _ bound: Int) -> Bool {
    if isSanitized { print("not held under a sanitizer: memory below \(bound), \(memory) now") }
    return isSanitized || memory < bound
}
