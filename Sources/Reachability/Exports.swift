// SPDX-License-Identifier: Apache-2.0

// The library's values are declared in a module that knows nothing of the kernel. Who imports the library gets them
// with it: a path that one may hold but not name would be a strange gift.
@_exported public import DialtoneNetworkPath
