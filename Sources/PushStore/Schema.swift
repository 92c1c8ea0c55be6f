// SPDX-License-Identifier: Apache-2.0

/// What the database looks like.
enum Schema {
    /// Set before anything is read. Of each a line:
    /// - a process has the file for itself, and SQLite needs no shared memory for the log;
    /// - a commit is one write to the log and one `fdatasync`, where a rollback journal takes three and two changes of
    ///   the directory;
    /// - after a commit the data is on the disk, whatever becomes of the power;
    /// - what the log takes between two messages is returned; it is written back each MiB;
    /// - the file is not larger than 64 MiB, sixteen times what may wait;
    /// - a file that somebody else wrote runs nothing;
    /// - damage is found where it is read;
    /// - half a MiB of cache.
    static let settings = [
        "PRAGMA locking_mode = EXCLUSIVE",
        "PRAGMA auto_vacuum = INCREMENTAL",
        "PRAGMA journal_mode = WAL",
        "PRAGMA synchronous = FULL",
        "PRAGMA journal_size_limit = 1048576",
        "PRAGMA wal_autocheckpoint = 256",
        "PRAGMA max_page_count = 16384",
        "PRAGMA trusted_schema = OFF",
        "PRAGMA cell_size_check = ON",
        "PRAGMA temp_store = MEMORY",
        "PRAGMA cache_size = -512",
    ]

    /// What makes of a database of each version, from 0 on, one of the next. Each is one transaction and sets
    /// `user_version`. What was released is not changed any more: another step is added.
    static let migrations = [
        """
        CREATE TABLE setting (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
        CREATE TABLE memory (server TEXT PRIMARY KEY, bytes BLOB NOT NULL) STRICT;
        CREATE TABLE registration (
            number INTEGER PRIMARY KEY, app TEXT NOT NULL, sandbox TEXT, token TEXT NOT NULL,
            version INTEGER NOT NULL, kind TEXT NOT NULL, summary TEXT NOT NULL, vapid TEXT,
            server TEXT NOT NULL, id TEXT NOT NULL, endpoint TEXT, registered INTEGER, expires INTEGER,
            told INTEGER NOT NULL, last_message INTEGER, misses INTEGER NOT NULL, demoted INTEGER NOT NULL,
            unknown_since INTEGER, unknown_answers INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE message (
            number INTEGER PRIMARY KEY, registration INTEGER NOT NULL, server TEXT NOT NULL,
            origin_registration TEXT NOT NULL, origin_id TEXT NOT NULL, body BLOB NOT NULL, urgency TEXT NOT NULL,
            arrived INTEGER NOT NULL, expires INTEGER NOT NULL, failures INTEGER NOT NULL
        ) STRICT;
        CREATE TABLE settled (
            number INTEGER PRIMARY KEY, server TEXT NOT NULL, origin_registration TEXT NOT NULL,
            origin_id TEXT NOT NULL, time INTEGER NOT NULL, given_up TEXT
        ) STRICT;
        CREATE TABLE ending (
            server TEXT NOT NULL, id TEXT NOT NULL, endpoint TEXT, registration INTEGER, due INTEGER NOT NULL,
            PRIMARY KEY (server, id)
        ) STRICT, WITHOUT ROWID;
        PRAGMA user_version = 1;
        """
    ]
}
