"""The tables of conversations."""

from __future__ import annotations

# `place` gives the order of messages. `running` is the turn that is under way. An edit waits in its table
# from before the roll-back until the transaction that ends it; one that was asked for with a key stays for a
# while, without its text, and is `made`. What was noted of a prompt is of a conversation that nobody keeps.
MIGRATIONS = (
    """
    CREATE TABLE sessions_conversation (
        agent TEXT NOT NULL,
        session TEXT NOT NULL,
        owner TEXT NOT NULL,
        title TEXT NOT NULL,
        at TEXT NOT NULL,
        running TEXT,
        PRIMARY KEY (agent, session)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE sessions_message (
        agent TEXT NOT NULL,
        session TEXT NOT NULL,
        place INTEGER NOT NULL,
        turn TEXT NOT NULL,
        text TEXT NOT NULL,
        at TEXT NOT NULL,
        state TEXT NOT NULL,
        PRIMARY KEY (agent, session, place),
        UNIQUE (agent, session, turn),
        FOREIGN KEY (agent, session) REFERENCES sessions_conversation (agent, session) ON DELETE CASCADE
    ) STRICT;
    CREATE INDEX sessions_message_running ON sessions_message (state) WHERE state = 'running';
    CREATE TABLE sessions_edit (
        id TEXT PRIMARY KEY,
        agent TEXT NOT NULL,
        session TEXT NOT NULL,
        turn TEXT NOT NULL,
        text TEXT NOT NULL,
        at TEXT NOT NULL,
        asked TEXT,
        note TEXT NOT NULL DEFAULT '',
        made INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE TABLE sessions_noted (
        agent TEXT NOT NULL,
        session TEXT NOT NULL,
        turn TEXT NOT NULL,
        text TEXT NOT NULL,
        at TEXT NOT NULL,
        PRIMARY KEY (agent, session, turn)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX sessions_noted_at ON sessions_noted (at);
    """,
)
