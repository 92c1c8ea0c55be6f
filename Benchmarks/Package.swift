// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0

import PackageDescription

/// As in the main package.
let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

let package = Package(
    name: "Benchmarks",
    dependencies: [.package(name: "dialtone", path: "..")],
    targets: [
        .target(name: "CBench", linkerSettings: [.linkedLibrary("ssl"), .linkedLibrary("crypto")]),
        .executableTarget(
            name: "bench",
            dependencies: ["CBench"]
                + ["DialtoneClient", "LabSupport", "Models", "Presentation", "Reachability"].map {
                    .product(name: $0, package: "dialtone")
                },
            swiftSettings: strict),
        // What the pure parts do in virtual time, for docs/.
        .executableTarget(
            name: "figures", dependencies: [.product(name: "Models", package: "dialtone")], swiftSettings: strict),
    ]
)
