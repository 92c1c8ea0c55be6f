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
        .target(name: "CAsking"),
        .target(
            name: "CBench", dependencies: ["CAsking"],
            linkerSettings: [.linkedLibrary("ssl"), .linkedLibrary("crypto")]),
        .executableTarget(
            name: "bench",
            dependencies: ["CAsking", "CBench"]
                + ["DialtoneClient", "LabSupport", "lab-neighbour", "Models", "Presentation", "Reachability"].map {
                    .product(name: $0, package: "dialtone")
                },
            swiftSettings: strict),
        // Whom the agent wakes, and who wakes without it. Static, since it is started for single messages.
        .executableTarget(
            name: "sleeper", dependencies: ["CAsking"],
            linkerSettings: [.unsafeFlags(["-static-executable", "-use-ld=lld"])]),
        // What the pure parts do in virtual time, for docs/.
        .executableTarget(
            name: "figures", dependencies: [.product(name: "Models", package: "dialtone")], swiftSettings: strict),
    ]
)
