// SPDX-License-Identifier: Apache-2.0

/// The statements that are run again and again. What differs is bound to them, never written into them.
enum Statement: String {
    case check = "PRAGMA quick_check(1)"
    case version = "PRAGMA user_version"
    case checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)"
    case vacuum = "PRAGMA incremental_vacuum"

    case putSetting = "INSERT OR REPLACE INTO setting VALUES (?, ?)"
    case setting = "SELECT value FROM setting WHERE name = ?"

    case putMemory = "INSERT OR REPLACE INTO memory VALUES (?, ?)"
    case removeMemory = "DELETE FROM memory WHERE server = ?"
    case memories = "SELECT server, bytes, rowid FROM memory"
    case dropMemory = "DELETE FROM memory WHERE rowid = ?"

    case putRegistration = """
        INSERT OR REPLACE INTO registration
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """
    case removeRegistration = "DELETE FROM registration WHERE number = ?"
    case registrations = """
        SELECT number, app, sandbox, token, version, kind, summary, vapid, server, id, endpoint, registered, expires,
        told, last_message, misses, demoted, unknown_since, unknown_answers FROM registration ORDER BY number
        """

    case putMessage = "INSERT OR REPLACE INTO message VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
    case removeMessage = "DELETE FROM message WHERE number = ?"
    case messages = """
        SELECT number, registration, server, origin_registration, origin_id, body, urgency, arrived, expires, failures
        FROM message ORDER BY number
        """

    case putSettled = "INSERT OR REPLACE INTO settled VALUES (?, ?, ?, ?, ?, ?)"
    case removeSettled = "DELETE FROM settled WHERE number <= ?"
    case dropSettled = "DELETE FROM settled WHERE number = ?"
    case allSettled = """
        SELECT number, server, origin_registration, origin_id, time, given_up FROM settled ORDER BY number
        """

    case putEnding = "INSERT OR REPLACE INTO ending VALUES (?, ?, ?, ?, ?)"
    case removeEnding = "DELETE FROM ending WHERE server = ? AND id = ?"
    case endings = "SELECT server, id, endpoint, registration, due FROM ending ORDER BY due, server, id"
}
