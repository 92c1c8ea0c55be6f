// SPDX-License-Identifier: Apache-2.0

internal import DialtoneDistributor

/// How each kept value is written as a row, in the order of its table's columns, and read back from one. What is read
/// may be anything: `nil` for a row that cannot be of this program's making.
extension Registration {
    var columns: [SQLValue] {
        [
            .integer(number), .text(request.app.name), .text(request.app.sandbox), .text(request.token),
            .count(request.version.rawValue), .text(request.kind.rawValue), .text(request.summary),
            .text(request.vapid), .text(server.text), .text(id.text), .text(endpoint), .time(registered),
            .time(expires), .flag(isTold), .time(lastMessage), .count(misses), .flag(isDemoted), .time(unknownSince),
            .count(unknownAnswers),
        ]
    }

    init?(_ row: Row) {
        guard let number = row.number(0), let request = RegistrationRequest(row), let server = row.server(8),
            let id = row.registration(9), let endpoint = row.optionalText(10, DistributorLimits.endpoint),
            let registered = row.optionalTime(11), let expires = row.optionalTime(12), let isTold = row.flag(13),
            let lastMessage = row.optionalTime(14), let misses = row.count(15), let isDemoted = row.flag(16),
            let unknownSince = row.optionalTime(17), let unknownAnswers = row.count(18)
        else { return nil }
        self.init(number: number, request: request, server: server, id: id)
        self.endpoint = endpoint
        self.registered = registered
        self.expires = expires
        self.isTold = isTold
        self.lastMessage = lastMessage
        self.misses = misses
        self.isDemoted = isDemoted
        self.unknownSince = unknownSince
        self.unknownAnswers = unknownAnswers
    }
}

extension RegistrationRequest {
    fileprivate init?(_ row: Row) {
        guard let name = row.text(1, DistributorLimits.name),
            let sandbox = row.optionalText(2, DistributorLimits.name), let token = row.text(3, DistributorLimits.token),
            let version = row.count(4).flatMap(ConnectorVersion.init), let kind = row.choice(5, PushKind.self),
            let summary = row.text(6, DistributorLimits.summary),
            let vapid = row.optionalText(7, DistributorLimits.vapid)
        else { return nil }
        self.init(
            app: AppIdentity(name: name, sandbox: sandbox), token: token, version: version, kind: kind,
            summary: summary, vapid: vapid)
    }
}

extension StoredMessage {
    var columns: [SQLValue] {
        [
            .integer(number), .integer(registration), .text(server.text), .text(origin.registration.text),
            .text(origin.id.text), .blob(body), .text(urgency.rawValue), .time(arrived), .time(expires),
            .count(failures),
        ]
    }

    init?(_ row: Row) {
        guard let number = row.number(0), let registration = row.number(1), let server = row.server(2),
            let origin = row.origin(3), let body = row.blob(5, DistributorLimits.body),
            let urgency = row.choice(6, Urgency.self), let arrived = row.time(7), let expires = row.time(8),
            let failures = row.count(9)
        else { return nil }
        self.init(
            number: number, registration: registration, server: server, origin: origin, body: body, urgency: urgency,
            arrived: arrived, expires: expires)
        self.failures = failures
    }
}

extension SettledMessage {
    var columns: [SQLValue] {
        [
            .integer(number), .text(server.text), .text(origin.registration.text), .text(origin.id.text), .time(time),
            .text(givenUp),
        ]
    }

    init?(_ row: Row) {
        guard let number = row.number(0), let server = row.server(1), let origin = row.origin(2),
            let time = row.time(4), let givenUp = row.optionalText(5, 0...1000)
        else { return nil }
        self.init(number: number, server: server, origin: origin, time: time, givenUp: givenUp)
    }
}

extension Ending {
    var columns: [SQLValue] {
        [.text(server.text), .text(id.text), .text(endpoint), .integer(registration), .time(due)]
    }

    init?(_ row: Row) {
        guard let server = row.server(0), let id = row.registration(1),
            let endpoint = row.optionalText(2, DistributorLimits.endpoint), let due = row.time(4),
            row.isNull(3) || row.number(3) != nil
        else { return nil }
        self.init(server: server, id: id, endpoint: endpoint, registration: row.number(3), due: due)
    }
}

extension Row {
    /// The number of a row: what is counted up from 1.
    fileprivate func number(_ column: CInt) -> Int64? {
        integer(column).flatMap { (1...(1 << 62)).contains($0) ? $0 : nil }
    }

    fileprivate func count(_ column: CInt) -> Int? {
        integer(column).flatMap { (0...1_000_000).contains($0) ? Int($0) : nil }
    }

    fileprivate func flag(_ column: CInt) -> Bool? {
        integer(column).flatMap { $0 == 0 ? false : $0 == 1 ? true : nil }
    }

    fileprivate func time(_ column: CInt) -> WallTime? { integer(column).map { WallTime(milliseconds: $0) } }

    fileprivate func choice<Choice: RawRepresentable<String>>(_ column: CInt, _: Choice.Type) -> Choice? {
        text(column, 1...32).flatMap(Choice.init)
    }

    func server(_ column: CInt) -> ServerName? { text(column, 1...256).flatMap { ServerName($0) } }

    fileprivate func registration(_ column: CInt) -> RegistrationID? {
        text(column, 32...32).flatMap { RegistrationID($0) }
    }

    fileprivate func origin(_ column: CInt) -> MessageOrigin? {
        guard let registration = registration(column),
            let id = text(column + 1, 1...256).flatMap({ ServerMessageID($0) })
        else { return nil }
        return MessageOrigin(registration: registration, id: id)
    }

    /// A text or nothing; `nil` for what is neither.
    fileprivate func optionalText(_ column: CInt, _ bounds: ClosedRange<Int>) -> String?? {
        isNull(column) ? .some(nil) : text(column, bounds).map { .some($0) }
    }

    /// A time or nothing; `nil` for what is neither.
    fileprivate func optionalTime(_ column: CInt) -> WallTime?? {
        isNull(column) ? .some(nil) : time(column).map { .some($0) }
    }
}
