"""The tables of conversations."""

from __future__ import annotations

# `place` gives the order of messages. `running` is the turn that is under way. An edit waits in its table
# from before the rewind until the transaction that ends it.
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
    CREATE TABLE sessions_edit (
        id TEXT PRIMARY KEY,
        agent TEXT NOT NULL,
        session TEXT NOT NULL,
        turn TEXT NOT NULL,
        text TEXT NOT NULL,
        at TEXT NOT NULL
    ) STRICT;
    """,
)
