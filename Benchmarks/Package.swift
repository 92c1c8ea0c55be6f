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
                + ["DialtoneClient", "_LabSupport", "lab-neighbour", "_Models", "_Presentation", "Reachability"].map {
                    .product(name: $0, package: "dialtone")
                },
            packageAccess: false, swiftSettings: strict + insider),
        // Whom the agent wakes, and who wakes without it. Static, since it is started for single messages.
        .executableTarget(
            name: "sleeper", dependencies: ["CAsking"],
            linkerSettings: [.unsafeFlags(["-static-executable", "-use-ld=lld"])]),
        // What the pure parts do in virtual time, for docs/.
        .executableTarget(
            name: "figures", dependencies: [.product(name: "_Models", package: "dialtone")],
            packageAccess: false, swiftSettings: strict + insider),
    ]
)
