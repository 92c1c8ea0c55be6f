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

/// Built by scripts/fuzz alone, which has every module instrumented.
let package = Package(
    name: "Fuzz",
    dependencies: [.package(name: "dialtone", path: "..")],
    targets: [
        .target(name: "CFuzzer"),
        .executableTarget(
            name: "fuzz", dependencies: ["CFuzzer", .product(name: "Readers", package: "dialtone")],
            swiftSettings: strict,
            // Here alone, since it brings a main of its own.
            linkerSettings: [.linkedLibrary("stdc++"), .unsafeFlags(["-sanitize=fuzzer"])]),
    ]
)
