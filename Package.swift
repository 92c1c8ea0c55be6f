// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0

import Glibc
import PackageDescription

/// Every target of the project is compiled alike: Swift 6 mode, the strict upcoming features, no warning left standing.
let strict: [SwiftSetting] = [
    .swiftLanguageMode(.v6),
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .treatAllWarnings(as: .error),
]

/// What the simulation lives through a million times is optimized in debug builds too; assertions hold all the same.
let optimized = strict + [.unsafeFlags(["-O", "-assert-config", "Debug"], .when(configuration: .debug))]

/// What a release runs now and then, and not for each event, is compiled for size.
let small = strict + [.unsafeFlags(["-Osize"], .when(configuration: .release))]

/// A table of relocations that is a tenth as large, and is read at each start. The glibc of this machine, which the
/// programs need from then on, must understand it (`DT_RELR`, since 2.36).
let packedRelocations: [String] = {
    var name = [UInt8](repeating: 0, count: 64)
    _ = name.withUnsafeMutableBytes { confstr(Int32(_CS_GNU_LIBC_VERSION), $0.baseAddress, $0.count) }
    let version = String(decoding: name.prefix { $0 != 0 }, as: UTF8.self).split(whereSeparator: { !$0.isNumber })
        .prefix(2).compactMap { Int($0) }
    return version.count == 2 && (version[0], version[1]) >= (2, 36) ? ["-z", "pack-relative-relocs"] : []
}()

/// The programs of releases are linked without what nobody calls, and without a table of their functions for others.
let lean: [LinkerSetting] = [
    .unsafeFlags(
        ["-use-ld=lld"]
            + (["--gc-sections", "--no-export-dynamic"] + packedRelocations).flatMap { ["-Xlinker", $0] },
        .when(configuration: .release))
]

/// A test target's folder is `Tests/<name without the suffix "Tests">`.
func tests(
    _ name: String, _ dependencies: [Target.Dependency], resources: [Resource] = [], exclude: [String] = [],
    settings: [SwiftSetting] = strict, plugins: [Target.PluginUsage] = []
) -> Target {
    .testTarget(
        name: "\(name)Tests",
        dependencies: dependencies + ["Expectations"],
        path: "Tests/\(name)",
        exclude: exclude,
        resources: resources,
        swiftSettings: settings,
        plugins: plugins
    )
}

/// What a module is called, also for others. SwiftPM refuses a graph in which two packages have a target of the same
/// name, and a program may well have a `Platform` or a `Resolver` of its own. So each module that is not a library for
/// others has the project's name before its own. In this file and in the names of folders it does without.
func fullName(_ name: String) -> String {
    let isForC = name.hasPrefix("C") && name.dropFirst().first?.isUppercase == true
    let own = isForC ? String(name.dropFirst()) : name
    let isModule = own.first?.isUppercase == true
    guard isModule, own != "Reachability", !own.hasPrefix("Dialtone") else { return name }
    return (isForC ? "C" : "") + "Dialtone" + own
}

let deque = Target.Dependency.product(name: "DequeModule", package: "swift-collections")
let heap = Target.Dependency.product(name: "HeapModule", package: "swift-collections")
let ordered = Target.Dependency.product(name: "OrderedCollections", package: "swift-collections")
let logging = Target.Dependency.product(name: "Logging", package: "swift-log")
let arguments = Target.Dependency.product(name: "ArgumentParser", package: "swift-argument-parser")

let package = Package(
    name: "dialtone",
    products: [
        .library(name: "Reachability", targets: ["Reachability"]),
        .library(name: "DialtoneClient", targets: ["DialtoneClient"]),
        .library(name: "DialtonePush", targets: ["DialtonePush"]),
        .executable(name: "dialtoned", targets: ["dialtoned"]),
        .executable(name: "dialtone", targets: ["dialtone"]),
        .executable(name: "dialtone-launcher", targets: ["dialtone-launcher"]),
        .executable(name: "dialtone-tls", targets: ["dialtone-tls"]),
        .executable(name: "dialtone-session", targets: ["dialtone-session"]),
        // For the packages of this repository, and for nobody else: what begins with an underscore has no public
        // declarations. Decision 0028.
        .library(name: "_LabSupport", targets: ["Bus", "CLabSupport", "LabSupport", "Platform"].map(fullName)),
        .executable(name: "lab-neighbour", targets: ["lab-neighbour"]),
        .library(name: "_Models", targets: ["Coalescing", "Connection", "Models", "TestSupport"].map(fullName)),
        .library(name: "_Presentation", targets: [fullName("Presentation")]),
        // What reads bytes that come from outside, and what is made of them.
        .library(
            name: "_Readers",
            targets: [
                "Agent", "Bus", "Coalescing", "Configuration", "Connection", "ConnectionIO", "DialtoneAPI",
                "DialtoneClient", "DialtonePush", "Distributor", "Netlink", "NetworkPath", "Persistence", "Platform",
                "Presentation", "PrivilegedLauncher", "Processes", "PushServers", "Reachability", "RelayMessages",
                "Resolver", "Session", "TLS", "TLSRelay", "TLSTestSupport", "TOML", "Varlink", "WebPush",
            ].map(fullName)),
    ],
    dependencies: [
        // The versions that it is tested with, and no others: a build of today and one of next year link the same code.
        .package(url: "https://github.com/apple/swift-argument-parser", exact: "1.8.2"),
        .package(url: "https://github.com/apple/swift-collections", exact: "1.6.0"),
        .package(url: "https://github.com/apple/swift-log", exact: "1.16.2"),
    ],
    targets: [
        // Ground: the one queue, the boot clock, descriptors, kernel errors.
        .systemLibrary(name: "CPlatform"),
        .target(name: "CBlackBox"),
        .target(
            name: "Platform", dependencies: ["CBlackBox", "CPlatform", "NetworkPath", deque, heap],
            swiftSettings: strict),

        // The network: pure verdicts, the kernel's word, names, and the public library.
        .target(name: "NetworkPath", swiftSettings: strict),
        .systemLibrary(name: "CNetlink", pkgConfig: "libnl-3.0", providers: [.apt(["libnl-3-dev"])]),
        .target(name: "Netlink", dependencies: ["CNetlink", "NetworkPath", "Platform"], swiftSettings: strict),
        .systemLibrary(name: "CAres", pkgConfig: "libcares", providers: [.apt(["libc-ares-dev"])]),
        .target(name: "Resolver", dependencies: ["CAres", "NetworkPath", "Platform"], swiftSettings: strict),
        .target(
            name: "Reachability", dependencies: ["Netlink", "NetworkPath", "Platform", "Resolver", deque],
            swiftSettings: strict),

        // Connections: pure values that decide, and what does as they say.
        .target(name: "Coalescing", swiftSettings: optimized),
        .target(name: "Connection", dependencies: ["Coalescing", "NetworkPath"], swiftSettings: optimized),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .target(
            name: "TLS", dependencies: ["COpenSSL", "NetworkPath", "Platform", "Connection"], swiftSettings: strict),
        .target(
            name: "RelayMessages", dependencies: ["CPlatform", "Connection", "NetworkPath", "Platform"],
            swiftSettings: small),
        .systemLibrary(name: "CSeccomp", pkgConfig: "libseccomp", providers: [.apt(["libseccomp-dev"])]),
        .target(
            name: "TLSRelay",
            dependencies: ["CPlatform", "CSeccomp", "Connection", "Platform", "RelayMessages", "TLS"],
            swiftSettings: strict),
        .target(
            name: "ConnectionIO",
            dependencies: [
                "Coalescing", "Connection", "NetworkPath", "Platform", "Reachability", "RelayMessages", "Resolver",
                deque,
            ],
            swiftSettings: strict),

        .target(
            name: "ServerProbe",
            dependencies: ["Connection", "ConnectionIO", "NetworkPath", "Platform", "RelayMessages", "TLS"],
            swiftSettings: small),

        // The socket: protocol, typed interface, client; and what its values look like to a person.
        .target(name: "VarlinkDefinition", swiftSettings: strict),
        .target(name: "VarlinkGeneration", dependencies: ["VarlinkDefinition"], swiftSettings: strict),
        .executableTarget(
            name: "varlink-swift", dependencies: ["VarlinkDefinition", "VarlinkGeneration"], swiftSettings: strict),
        .plugin(name: "VarlinkSwift", capability: .buildTool(), dependencies: ["varlink-swift"]),
        .systemLibrary(name: "CJansson", pkgConfig: "jansson", providers: [.apt(["libjansson-dev"])]),
        .target(
            name: "Varlink", dependencies: ["CJansson", "CPlatform", "Platform", deque, heap],
            exclude: ["org.varlink.service.varlink"], swiftSettings: strict, plugins: ["VarlinkSwift"]),
        .target(
            name: "DialtoneAPI", dependencies: ["NetworkPath", "Platform", "Varlink"],
            exclude: ["org.dialtone.Network.varlink", "org.dialtone.Connections.varlink"],
            swiftSettings: strict, plugins: ["VarlinkSwift"]),
        .target(
            name: "DialtoneClient", dependencies: ["DialtoneAPI", "NetworkPath", "Platform", "Varlink"],
            swiftSettings: strict),
        // Push: what a message says, pure over bytes; and an app's end of UnifiedPush, the public library.
        .target(name: "WebPush", dependencies: ["COpenSSL", "Platform", "Varlink"], swiftSettings: strict),
        .target(
            name: "DialtonePush", dependencies: ["Bus", "Platform", "Varlink", "WebPush"], swiftSettings: strict),

        .target(
            name: "Presentation", dependencies: ["DialtoneAPI", "NetworkPath", "Platform", "PushAPI", "Varlink"],
            swiftSettings: strict),

        // The daemon and the command line.
        .systemLibrary(name: "CSystemd", pkgConfig: "libsystemd", providers: [.apt(["libsystemd-dev"])]),
        .systemLibrary(name: "CBus", pkgConfig: "libsystemd", providers: [.apt(["libsystemd-dev"])]),
        .target(name: "Bus", dependencies: ["CBus", "Platform"], swiftSettings: small),
        .target(name: "Systemd", dependencies: ["Bus", "CSystemd", "Platform", logging], swiftSettings: small),
        .target(name: "CProcesses"),
        .target(
            name: "Processes", dependencies: ["Bus", "CProcesses", "Platform", "Connection", "NetworkPath", "Systemd"],
            swiftSettings: small),
        .target(name: "TOML", swiftSettings: small),
        .target(
            name: "Configuration",
            dependencies: [
                "Coalescing", "Connection", "DialtoneAPI", "Notifications", "Platform", "Processes", "TOML", "Varlink",
            ],
            swiftSettings: small),
        .target(
            name: "Persistence",
            dependencies: [
                "Connection", "ConnectionIO", "DialtoneAPI", "NetworkPath", "Platform", "RelayMessages", "Systemd",
                "Varlink", deque, logging, ordered,
            ],
            swiftSettings: small),
        .target(
            name: "PrivilegedLauncher",
            dependencies: [
                "Configuration", "Connection", "DialtoneAPI", "NetworkPath", "Platform", "Processes", "Systemd",
                "Varlink", logging,
            ],
            exclude: ["org.dialtone.Launcher.varlink"], swiftSettings: small, plugins: ["VarlinkSwift"]),
        .target(
            name: "Agent",
            dependencies: [
                "Configuration", "Connection", "ConnectionIO", "DialtoneAPI", "NetworkPath", "Persistence", "Platform",
                "PrivilegedLauncher", "Processes", "Reachability", "RelayMessages", "Systemd", "Varlink", deque,
                logging, ordered,
            ],
            swiftSettings: small),
        .executableTarget(
            name: "dialtoned", dependencies: ["Agent", "Platform", "Systemd", logging], swiftSettings: small,
            linkerSettings: lean),
        .executableTarget(
            name: "dialtone-launcher", dependencies: ["Platform", "PrivilegedLauncher", "Systemd", logging],
            swiftSettings: small, linkerSettings: lean),
        .executableTarget(
            name: "dialtone-tls", dependencies: ["Platform", "TLSRelay"], swiftSettings: strict, linkerSettings: lean),
        // The user's session: a client of the daemon on the session bus.
        .target(
            name: "PushAPI", dependencies: ["Platform", "Varlink"],
            exclude: ["org.dialtone.Notifications.varlink", "org.dialtone.Push.varlink"],
            swiftSettings: strict, plugins: ["VarlinkSwift"]),
        .target(name: "Notifications", swiftSettings: small),
        .target(name: "Distributor", dependencies: [deque, ordered], swiftSettings: optimized),
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),
        .target(name: "PushStore", dependencies: ["CSQLite", "Distributor", "Platform"], swiftSettings: small),
        .systemLibrary(name: "CExpat", pkgConfig: "expat", providers: [.apt(["libexpat1-dev"])]),
        .target(
            name: "PushServers", dependencies: ["CExpat", "Distributor", "Platform", "Varlink"],
            swiftSettings: small),
        .target(
            name: "Session",
            dependencies: [
                "Bus", "CPlatform", "Configuration", "DialtoneAPI", "DialtoneClient", "Distributor", "NetworkPath",
                "Notifications", "Platform", "Processes", "PushAPI", "PushServers", "PushStore", "Systemd", "Varlink",
                logging,
            ],
            swiftSettings: small),
        .executableTarget(
            name: "dialtone-session", dependencies: ["Platform", "Session", "Systemd"], swiftSettings: small,
            linkerSettings: lean),
        .target(
            name: "Hooks",
            dependencies: ["CPlatform", "DialtoneAPI", "DialtoneClient", "Platform", "Systemd", "Varlink", logging],
            swiftSettings: small),
        .executableTarget(
            name: "dialtone",
            dependencies: [
                "Configuration", "Connection", "DialtoneAPI", "DialtoneClient", "Hooks", "NetworkPath", "Platform",
                "Presentation", "Processes", "PushAPI", "Reachability", "ServerProbe", "Systemd", "Varlink", arguments,
                logging,
            ],
            swiftSettings: small),

        // Networks of namespaces, for tests, the demo and benchmarks.
        .target(name: "CLabSupport", path: "Tests/CLabSupport"),
        .target(
            name: "LabSupport", dependencies: ["CLabSupport", "DialtoneAPI", "DialtoneClient", "Platform"],
            path: "Tests/LabSupport", swiftSettings: strict),
        .executableTarget(
            name: "dialtone-demo",
            dependencies: [
                "DialtoneAPI", "DialtoneClient", "LabSupport", "Platform", "Presentation", "Varlink", "dialtoned",
                arguments,
            ],
            path: "Demo", swiftSettings: strict),

        // Tests: one folder per target, and what they share.
        .target(
            name: "TestSupport", dependencies: ["NetworkPath", "Platform"], path: "Tests/TestSupport",
            swiftSettings: strict),
        // What tests expect of values that they await.
        .target(name: "Expectations", path: "Tests/Expectations", swiftSettings: strict),
        // Worlds in virtual time that both tests and benchmarks look at.
        .target(
            name: "Models", dependencies: ["Coalescing", "Connection", "Distributor", "NetworkPath", "TestSupport"],
            path: "Tests/Models", swiftSettings: optimized),
        // Certificates and a server's end of TLS, in memory.
        .target(
            name: "TLSTestSupport",
            dependencies: [
                "COpenSSL", "Connection", "ConnectionIO", "Platform", "RelayMessages", "TLS", "TLSRelay",
            ], path: "Tests/TLSTestSupport", swiftSettings: strict),
        tests("Platform", ["NetworkPath", "Platform", "TestSupport"]),
        tests("NetworkPath", ["NetworkPath", "TestSupport"]),
        tests("Netlink", ["CNetlink", "Netlink", "NetworkPath", "Platform", "TestSupport"]),
        tests("Resolver", ["NetworkPath", "Platform", "Resolver", "TestSupport"]),
        tests("Connection", ["Coalescing", "Connection", "NetworkPath", "TestSupport"]),
        tests(
            "Reachability", ["Netlink", "NetworkPath", "Platform", "Reachability", "Resolver", "TestSupport"],
            resources: [.copy("Recordings")]),
        tests("TLS", ["CPlatform", "NetworkPath", "Platform", "Connection", "TLS", "TLSTestSupport", "TestSupport"]),
        tests(
            "TLSRelay",
            ["Connection", "NetworkPath", "Platform", "RelayMessages", "TLSRelay", "TLSTestSupport", "TestSupport"]),
        tests(
            "ConnectionIO",
            [
                "Coalescing", "Connection", "ConnectionIO", "NetworkPath", "Platform", "RelayMessages",
                "TLSTestSupport", "TestSupport",
            ]),
        tests(
            "Varlink", ["Platform", "TestSupport", "Varlink"],
            exclude: ["org.example.Codec.varlink", "org.example.Luggage.varlink", "org.example.Test.varlink"],
            plugins: ["VarlinkSwift"]),
        tests("VarlinkDefinition", ["VarlinkDefinition", "VarlinkGeneration"]),
        tests(
            "DialtoneAPI",
            [
                "DialtoneAPI", "NetworkPath", "Persistence", "Platform", "TestSupport", "Varlink", "VarlinkDefinition",
            ],
            resources: [.copy("Interfaces"), .copy("strict.py")]),
        tests("DialtoneClient", ["DialtoneAPI", "DialtoneClient", "Platform", "TestSupport", "Varlink"]),
        tests("WebPush", ["Platform", "TestSupport", "WebPush"]),
        tests("DialtonePush", ["DialtonePush", "Platform", "TestSupport"], exclude: ["distributor.py"]),
        tests(
            "PushServers", ["Distributor", "Platform", "PushServers", "TestSupport", "Varlink"],
            exclude: ["autopush_standin.py", "firefox_push.py", "ntfy_standin.py"]),
        tests("Presentation", ["DialtoneAPI", "NetworkPath", "Presentation", "PushAPI", "TestSupport", "Varlink"]),
        tests("Systemd", ["Platform", "Systemd", "TestSupport", logging]),
        tests("Bus", ["Bus", "Platform", "TestSupport"]),
        tests(
            "Session",
            [
                "Bus", "Configuration", "DialtoneAPI", "DialtoneClient", "Distributor", "Notifications", "Platform",
                "PushAPI", "Session", "TestSupport", "Varlink", "dialtone", logging,
            ],
            resources: [.copy("connector.py"), .copy("notification_daemon.py"), .copy("upower.py")]),
        tests("Processes", ["Processes", "CPlatform", "Platform", "Connection", "TestSupport"]),
        tests("Distributor", ["Distributor", "Models", "TestSupport"], settings: optimized),
        tests("Notifications", ["Notifications", "TestSupport"]),
        tests("PushStore", ["CSQLite", "Distributor", "Models", "PushStore", "TestSupport", "push-store-writer"]),
        .executableTarget(
            name: "push-store-writer", dependencies: ["Distributor", "PushStore"], path: "Tests/PushStoreWriter",
            swiftSettings: strict),
        tests("Hooks", ["DialtoneAPI", "Hooks", "Platform", "TestSupport", "Varlink"]),
        tests("TOML", ["TOML"]),
        tests(
            "Agent",
            [
                "Agent", "CLabSupport", "Coalescing", "Configuration", "Connection", "ConnectionIO", "DialtoneAPI",
                "NetworkPath", "Persistence", "Platform", "PrivilegedLauncher", "Processes", "Reachability",
                "RelayMessages", "Systemd", "TestSupport", "Varlink", logging, ordered,
            ]),
        // The state machine in virtual time; the whole on a real kernel; the house rules.
        tests(
            "Simulation",
            [
                "Coalescing", "Connection", "ConnectionIO", "Models", "NetworkPath", "Persistence", "Platform",
                "TestSupport",
            ], settings: optimized),
        tests(
            "Lab",
            [
                "Processes", "CNetlink", "CPlatform", "ConnectionIO", "DialtoneAPI", "DialtoneClient", "LabSupport",
                "Netlink", "NetworkPath", "Platform", "Reachability", "Resolver", "Connection", "Systemd",
                "TLSTestSupport", "TestSupport", "Varlink", "VarlinkDefinition", "dialtone", "dialtone-launcher",
                "dialtone-session", "dialtoned", "lab-client", "lab-fuzzer", "lab-launch", "lab-logind",
                "lab-neighbour", "lab-network-manager", "lab-phone", "lab-systemd",
            ],
            resources: [
                .copy("agent.py"), .copy("asking_server.py"), .copy("mqtt_sleeper.py"), .copy("night_sleeper.py"),
            ], exclude: ["Golden", "push_app.py", "push_sender.py"]),
        tests(
            "Soak",
            [
                "LabSupport", "Netlink", "NetworkPath", "Platform", "Reachability", "Resolver", "TestSupport",
                "dialtone",
            ]),
        .executableTarget(
            name: "lab-client", dependencies: ["DialtoneAPI", "DialtoneClient", "Platform", "Varlink"],
            path: "Tests/LabClient", swiftSettings: strict),
        .executableTarget(name: "lab-launch", path: "Tests/LabLaunch"),
        .executableTarget(
            name: "lab-phone", dependencies: ["DialtonePush"], path: "Tests/LabPhone", swiftSettings: strict),
        .executableTarget(name: "lab-neighbour", path: "Tests/LabNeighbour"),
        .executableTarget(
            name: "lab-fuzzer",
            dependencies: ["CPlatform", "DialtoneAPI", "LabSupport", "Platform", "TestSupport", "VarlinkDefinition"],
            path: "Tests/LabFuzzer", swiftSettings: strict),
        .executableTarget(name: "lab-logind", dependencies: ["CSystemd"], path: "Tests/LabLogind"),
        .executableTarget(name: "lab-systemd", dependencies: ["CSystemd"], path: "Tests/LabSystemd"),
        .executableTarget(
            name: "lab-network-manager", dependencies: ["CSystemd"], path: "Tests/LabNetworkManager"),
        tests("Tidy", []),
    ]
)

for target in package.targets where target.type == .regular || target.type == .system {
    target.path = target.path ?? "Sources/\(target.name)"
    target.name = fullName(target.name)
}
for target in package.targets {
    target.dependencies = target.dependencies.map { dependency in
        if case .byNameItem(let name, let condition) = dependency {
            .byNameItem(name: fullName(name), condition: condition)
        } else {
            dependency
        }
    }
}
