import Foundation
package import GenShared

/// Where the real parts are; `ops/test` starts them and sets these variables.
///
/// A missing one is a failure, not a skip.
package enum TestEnvironment {
    /// Thrown where a variable is missing.
    package struct Missing: Error, CustomStringConvertible {
        package let description: String
    }

    package static func value(_ name: String) throws -> String {
        guard let value = ProcessInfo.processInfo.environment[name], !value.isEmpty else {
            throw Missing(description: "\(name) is not set: run the integration tests by ./ops/test")
        }
        return value
    }

    package static func amqpURL() throws -> AMQPURL { try AMQPURL(value("GEN_TEST_AMQP_URL")) }
    package static func redisURL() throws -> RedisURL { try RedisURL(value("GEN_TEST_REDIS_URL")) }
    /// The optimised programs, as users run them.
    package static func program(_ name: String) throws -> String { "\(try value("GEN_TEST_RELEASE_BIN"))/\(name)" }
    package static func model() throws -> String { try value("GEN_TEST_MODEL") }

    /// What a program of ours needs to find the servers.
    package static func programEnvironment() throws -> [String: String] {
        var environment = ProcessInfo.processInfo.environment
        environment["GEN_AMQP_URL"] = try value("GEN_TEST_AMQP_URL")
        environment["GEN_REDIS_URL"] = try value("GEN_TEST_REDIS_URL")
        environment["GEN_CONFIG"] = nil
        environment["GEN_MODEL"] = nil
        return environment
    }

    /// A client for the test's own process.
    package static func client() throws -> Client {
        Client(amqp: try amqpURL(), redis: try redisURL(), name: "integration-test")
    }

    /// A name that no other test uses.
    package static func uniqueName(_ prefix: String) -> String {
        "\(prefix)\(String(UInt32.random(in: 0 ... .max), radix: 36))"
    }
}
