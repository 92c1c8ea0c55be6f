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

/// The name that SwiftPM gives the main package's modules for `package` access: that of its folder, as an identifier.
/// Given to a target here, whose own name `packageAccess: false` leaves out, it is let in there too.
let insider: [SwiftSetting] = {
    var name = Context.packageDirectory.split(separator: "/").dropLast().last.map { $0.lowercased() } ?? ""
    name = String(name.map { $0.isLetter || $0.isNumber ? $0 : "_" })
    if name.first?.isNumber == true { name = "_" + name.dropFirst() }
    return [.unsafeFlags(["-package-name", name])]
}()

/// Built by scripts/fuzz alone, which has every module instrumented.
let package = Package(
    name: "Fuzz",
    dependencies: [.package(name: "dialtone", path: "..")],
    targets: [
        .target(name: "CFuzzer"),
        .executableTarget(
            name: "fuzz", dependencies: ["CFuzzer", .product(name: "_Readers", package: "dialtone")],
            packageAccess: false, swiftSettings: strict + insider,
            // Here alone, since it brings a main of its own.
            linkerSettings: [.linkedLibrary("stdc++"), .unsafeFlags(["-sanitize=fuzzer"])]),
    ]
)
