// swift-tools-version: 6.3
import PackageDescription

/// One set of rules for every target: imports are visible and checked, warnings are errors.
let settings: [SwiftSetting] = [
    .enableUpcomingFeature("ExistentialAny"),
    .enableUpcomingFeature("MemberImportVisibility"),
    .enableUpcomingFeature("InternalImportsByDefault"),
    .treatAllWarnings(as: .error),
]

let package = Package(
    name: "gencluster",
    products: [
        .library(name: "GenShared", targets: ["GenShared"]),
        .executable(name: "genworker", targets: ["GenWorker"]),
        .executable(name: "gendispatcher", targets: ["GenDispatcher"]),
    ],
    targets: [
        // No pkgConfig: hiredis' flags are refused by the package manager, and the three headers need none.
        .systemLibrary(name: "CRabbitMQ", providers: [.apt(["librabbitmq-dev"])]),
        .systemLibrary(name: "CHiredis", providers: [.apt(["libhiredis-dev"])]),
        .systemLibrary(name: "CCurl", providers: [.apt(["libcurl4-openssl-dev"])]),
        .systemLibrary(name: "CLinux"),
        .systemLibrary(name: "COpenSSL", providers: [.apt(["libssl-dev"])]),

        .target(
            name: "GenShared", dependencies: ["CRabbitMQ", "CHiredis", "CCurl", "CLinux", "COpenSSL"],
            swiftSettings: settings),
        .executableTarget(name: "GenWorker", dependencies: ["GenShared"], swiftSettings: settings),
        .executableTarget(name: "GenDispatcher", dependencies: ["GenShared"], swiftSettings: settings),

        .executableTarget(
            name: "RuntimeFigures", dependencies: ["GenShared"], path: "bench/RuntimeFigures", swiftSettings: settings),

        .target(
            name: "GenTestSupport", dependencies: ["GenShared"], path: "Tests/GenTestSupport", swiftSettings: settings),
        .testTarget(name: "GenSharedTests", dependencies: ["GenShared", "GenTestSupport"], swiftSettings: settings),
        .testTarget(
            name: "GenWorkerTests", dependencies: ["GenWorker", "GenShared", "GenTestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "GenDispatcherTests", dependencies: ["GenDispatcher", "GenShared", "GenTestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "SimulationTests", dependencies: ["GenWorker", "GenShared", "GenTestSupport"],
            swiftSettings: settings),
        .testTarget(
            name: "IntegrationTests", dependencies: ["GenShared", "GenTestSupport"], swiftSettings: settings),
        .testTarget(name: "FaultTests", dependencies: ["GenShared", "GenTestSupport"], swiftSettings: settings),
    ],
    swiftLanguageModes: [.v6]
)
