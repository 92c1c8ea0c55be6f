// SPDX-License-Identifier: Apache-2.0

import DialtoneAPI
import DialtoneClient
import DialtoneLabSupport

/// One thing that happens, and what the agent is expected to make of it.
struct Scene: Sendable {
    /// What happens, as the heading says it.
    let title: String
    /// Makes it happen.
    let action: @Sendable (Stage) async throws -> Void
    /// The event of the connection that ends the scene.
    let ending: @Sendable (ConnectionsAPI.Event) -> Bool

    private static func isReady(on interface: String) -> @Sendable (ConnectionsAPI.Event) -> Bool {
        { $0.kind == .state && $0.connection.state == .ready && $0.connection.interface == interface }
    }

    /// The scenes in their order; each begins where the one before ended.
    static let all = [
        Scene(title: "The cable of wan0 is pulled; wan1 is there") {
            try await $0.lab.cut(.wan0)
        } ending: {
            isReady(on: "wan1")($0)
        },
        Scene(title: "The cable is plugged in again: a new socket over the better path, then the old one closes") {
            try await $0.lab.plug(.wan0)
        } ending: {
            isReady(on: "wan0")($0)
        },
        Scene(title: "The address of wan0 changes under the socket") {
            try await $0.lab.replaceAddress(.v4, on: .wan0, with: "192.0.2.77/24")
        } ending: {
            isReady(on: "wan0")($0)
        },
        Scene(title: "The default route moves to wan1: the connection follows, without a gap") {
            try await $0.lab.preferDefaultRoute(via: .wan1, families: [.v4])
        } ending: {
            isReady(on: "wan1")($0)
        },
        Scene(title: "An operator redials") {
            try await $0.agent.client.redial(Stage.connection)
        } ending: {
            isReady(on: "wan1")($0)
        },
        Scene(title: "Both cables are pulled: after 5 s no socket, no packet, no timer") {
            try await $0.lab.cut(.wan0)
            try await $0.lab.cut(.wan1)
        } ending: {
            $0.connection.state == .waiting
        },
        Scene(title: "One cable is plugged in again") {
            try await $0.lab.plug(.wan1)
        } ending: {
            isReady(on: "wan1")($0)
        },
        Scene(title: "The broker is killed: refused, so the agent backs off") {
            try await $0.broker.kill()
        } ending: {
            $0.connection.state == .backingOff && $0.connection.attempt > 2
        },
        Scene(title: "The broker is started again") {
            try await $0.broker.restart()
        } ending: {
            isReady(on: "wan1")($0)
        },
    ]
}
