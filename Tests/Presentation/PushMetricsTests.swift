// SPDX-License-Identifier: Apache-2.0

import DialtonePushAPI
import DialtoneVarlink
import Foundation
import Testing

@testable import DialtonePresentation

/// Metrics of push as a collector reads them.
@Suite struct PushMetricsTests {
    private static func status(_ server: PushAPI.Server?) -> PushAPI.Status.Reply {
        .init(
            server: server, registrations: 4, waiting: 6, lastMessageAt: server == nil ? nil : Sample.noon,
            isOnBus: server != nil, busTrouble: nil, storageTrouble: server == nil ? "the disk is full" : nil,
            counters: .init(arrived: 20, taken: 12, givenUp: 2, failedTries: 9))
    }

    private static func registration(
        _ number: Int, _ app: String, waiting: Int, isVoIP: Bool = false, isDemoted: Bool = false,
        state: PushAPI.RegistrationState = .registered
    ) -> PushAPI.Registration {
        .init(
            number: number, app: app, sandbox: nil, summary: "what \"it\" is for", kind: isVoIP ? .voip : .standard,
            isDemoted: isDemoted, state: state, lastMessageAt: nil, waiting: waiting, reason: nil)
    }

    private static let registrations = [
        registration(1, "org.example.Phone", waiting: 3, isVoIP: true),
        registration(2, "org.example.Phone", waiting: 1),
        registration(3, "org.example.Rude", waiting: 2, isVoIP: true, isDemoted: true),
        registration(4, "org.example.New", waiting: 0, state: .registering),
    ]
    private static let server = PushAPI.Server(
        server: "xmpp:alice@example.com", isUp: true, since: Sample.noon, reason: nil, connection: "push")

    /// What somebody reads with all metrics in it.
    private static let whole = """
        # TYPE dialtone_push_logged_in gauge
        # HELP dialtone_push_logged_in Whether this machine is logged in at the push server; missing where none is \
        configured.
        dialtone_push_logged_in 1
        # TYPE dialtone_push_login_timestamp_seconds gauge
        # UNIT dialtone_push_login_timestamp_seconds seconds
        # HELP dialtone_push_login_timestamp_seconds Since when it is logged in; missing where it is not.
        dialtone_push_login_timestamp_seconds 1800000000.0
        # TYPE dialtone_push_on_bus gauge
        # HELP dialtone_push_on_bus Whether apps can reach the session agent on the session bus.
        dialtone_push_on_bus 1
        # TYPE dialtone_push_storage_failing gauge
        # HELP dialtone_push_storage_failing Whether messages cannot be kept just now, so that the server is to keep \
        them.
        dialtone_push_storage_failing 0
        # TYPE dialtone_push_registered_apps gauge
        # HELP dialtone_push_registered_apps How many apps have a registration with an endpoint.
        dialtone_push_registered_apps 2
        # TYPE dialtone_push_registrations gauge
        # HELP dialtone_push_registrations How many registrations there are, by how their messages are delivered and \
        by their state.
        dialtone_push_registrations{type="standard",state="registering"} 1
        dialtone_push_registrations{type="standard",state="registered"} 2
        dialtone_push_registrations{type="voip",state="registering"} 0
        dialtone_push_registrations{type="voip",state="registered"} 1
        # TYPE dialtone_push_waiting_messages gauge
        # HELP dialtone_push_waiting_messages How many messages wait for their app, by how they are delivered.
        dialtone_push_waiting_messages{type="standard"} 3
        dialtone_push_waiting_messages{type="voip"} 3
        # TYPE dialtone_push_last_message_timestamp_seconds gauge
        # UNIT dialtone_push_last_message_timestamp_seconds seconds
        # HELP dialtone_push_last_message_timestamp_seconds When the last message came; missing where none did.
        dialtone_push_last_message_timestamp_seconds 1800000000.0
        # TYPE dialtone_push_arrived_messages counter
        # HELP dialtone_push_arrived_messages How many messages came from the server; one that came twice counts twice.
        dialtone_push_arrived_messages_total 20
        # TYPE dialtone_push_taken_messages counter
        # HELP dialtone_push_taken_messages How many messages an app took.
        dialtone_push_taken_messages_total 12
        # TYPE dialtone_push_given_up_messages counter
        # HELP dialtone_push_given_up_messages How many messages were given up: too late, or too often refused.
        dialtone_push_given_up_messages_total 2
        # TYPE dialtone_push_failed_tries counter
        # HELP dialtone_push_failed_tries How often an app was called with a message and did not take it.
        dialtone_push_failed_tries_total 9
        # EOF

        """

    /// All metrics.
    static func text(_ format: ExpositionFormat) -> String {
        PushMetricsText(status(server), registrations).text(format)
    }

    @Test func `all that is known is told, by type and not by app`() {
        let text = Self.text(.openMetrics)
        #expect(text == Self.whole)
        #expect(!text.contains("example"))
    }

    @Test func `what is not known is not told`() {
        let text = PushMetricsText(Self.status(nil), []).text(.prometheus)
        for part in ["logged_in", "login_timestamp", "last_message"] {
            #expect(!text.contains("dialtone_push_\(part)"), "\(text)")
        }
        #expect(text.contains("\ndialtone_push_on_bus 0\n") && text.contains("\ndialtone_push_storage_failing 1\n"))
    }

    @Test(arguments: [ExpositionFormat.openMetrics, .prometheus], [true, false])
    func `an independent reader takes every line`(format: ExpositionFormat, isFull: Bool) async throws {
        let metrics = PushMetricsText(
            Self.status(isFull ? Self.server : nil), isFull ? Self.registrations : [])
        try await Collectors.read(metrics.text(format), format)
    }
}
