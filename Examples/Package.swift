// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

/// As a program of your own would have it: it depends on one product, by a path here, by a URL elsewhere.
let package = Package(
    name: "Examples",
    dependencies: [.package(name: "dialtone", path: "..")],
    targets: [
        .executableTarget(
            name: "reachability-watch",
            dependencies: [.product(name: "Reachability", package: "dialtone")],
            path: "reachability-watch"),
        .executableTarget(
            name: "sleeping-client",
            dependencies: [.product(name: "DialtoneClient", package: "dialtone")],
            path: "sleeping-client/swift"),
    ]
)
