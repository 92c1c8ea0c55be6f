// SPDX-License-Identifier: Apache-2.0

private import Glibc

/// Whether the tests were built with AddressSanitizer or ThreadSanitizer. They multiply the memory that a program
/// takes, so that bounds of it say nothing.
package let isSanitized = dlsym(nil, "__asan_init") != nil || dlsym(nil, "__tsan_init") != nil
