"""The tables of the acted-log."""

from __future__ import annotations

# `path` holds the ids of the routed calls around the recording, so that an act recorded inside another's
# call is found as its child. `undo_touched.act` is a seq: half the size of an id. `stands` gives the order:
# the seq of the act, or of what redid it last. `taken_in` is the undo that took back this resource but
# not all of its act, `given_in` the redo that brought it again.
MIGRATIONS = (
    """
    CREATE TABLE undo_acted (
        seq INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        at TEXT NOT NULL,
        actor TEXT NOT NULL,
        via TEXT NOT NULL,
        recorded_by TEXT NOT NULL,
        actor_kind TEXT NOT NULL,
        agent TEXT,
        session TEXT,
        turn TEXT,
        parent TEXT,
        path TEXT NOT NULL,
        role TEXT NOT NULL,
        subject TEXT,
        tool TEXT NOT NULL,
        input TEXT NOT NULL,
        summary TEXT NOT NULL,
        inverse_tool TEXT,
        inverse_input TEXT,
        why TEXT NOT NULL,
        state TEXT NOT NULL,
        reason TEXT,
        error TEXT,
        tries INTEGER NOT NULL DEFAULT 0,
        undone_at TEXT,
        undone_by TEXT,
        undone_in TEXT,
        redone_in TEXT,
        run_key TEXT,
        lease_owner TEXT,
        lease_until TEXT,
        pinned INTEGER NOT NULL DEFAULT 0
    ) STRICT;
    CREATE INDEX undo_acted_session ON undo_acted (session, seq) WHERE session IS NOT NULL;
    CREATE INDEX undo_acted_agent ON undo_acted (agent, seq) WHERE agent IS NOT NULL;
    CREATE INDEX undo_acted_parent ON undo_acted (parent, seq) WHERE parent IS NOT NULL;
    CREATE INDEX undo_acted_path ON undo_acted (path);
    CREATE INDEX undo_acted_open ON undo_acted (state, seq) WHERE state <> 'done';
    CREATE INDEX undo_acted_undone_in ON undo_acted (undone_in) WHERE undone_in IS NOT NULL;
    CREATE INDEX undo_acted_redone_in ON undo_acted (redone_in) WHERE redone_in IS NOT NULL;
    CREATE INDEX undo_acted_at ON undo_acted (at);
    CREATE UNIQUE INDEX undo_acted_run_key ON undo_acted (actor, run_key) WHERE run_key IS NOT NULL;
    CREATE TABLE undo_touched (
        act INTEGER NOT NULL REFERENCES undo_acted (seq) ON DELETE CASCADE,
        resource TEXT NOT NULL,
        before TEXT NOT NULL,
        after TEXT NOT NULL,
        stands INTEGER NOT NULL,
        PRIMARY KEY (act, resource)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX undo_touched_resource ON undo_touched (resource, stands);
    CREATE TABLE undo_blob (
        act INTEGER NOT NULL REFERENCES undo_acted (seq) ON DELETE CASCADE,
        digest TEXT NOT NULL,
        PRIMARY KEY (act, digest)
    ) STRICT, WITHOUT ROWID;
    """,
    """
    ALTER TABLE undo_touched ADD COLUMN taken_in TEXT;
    ALTER TABLE undo_touched ADD COLUMN given_in TEXT;
    CREATE INDEX undo_touched_taken_in ON undo_touched (taken_in) WHERE taken_in IS NOT NULL;
    CREATE INDEX undo_touched_given_in ON undo_touched (given_in) WHERE given_in IS NOT NULL;
    """,
)
