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
        .executableTarget(
            name: "push-phone",
            dependencies: [.product(name: "DialtonePush", package: "dialtone")],
            path: "push-phone", exclude: ["org.example.PushPhone.service", "send.py"]),
    ]
        // The stages of the tutorial in DialtoneClient's documentation, which has them as its code. The last is the
        // client above.
        + ["1-open", "2-greet", "3-answer", "4-wake"].map { stage in
            .executableTarget(
                name: "sleeping-client-\(stage)",
                dependencies: [.product(name: "DialtoneClient", package: "dialtone")],
                path: "sleeping-client/steps/\(stage)")
        }
)
