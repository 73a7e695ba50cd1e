"""A row changed and given back by undolith, in a process of its own: run by the Python that has it.

It takes the folder of its state and the database as arguments. For each line on its standard input it does
both and prints the seconds that each took.
"""

from __future__ import annotations

import sys
import time

from undolith import Policy, Undolith
from undolith.adapters import SQLiteDB


def main(state: str, database: str) -> None:
    """Until standard input ends."""
    guard = Undolith(state, policy=Policy())
    guard.register(SQLiteDB(database, max_snapshot_bytes=1 << 30))
    with guard.session(agent="bench") as session:
        for number, _ in enumerate(sys.stdin):
            sql = "UPDATE skill SET title = ? WHERE id = ?"
            started = time.perf_counter()
            session.call("db.execute", sql=sql, params=[f"set {number}", number])
            acted = time.perf_counter() - started
            action = guard.actions()[-1]["action"]
            started = time.perf_counter()
            if not guard.undo(action):
                raise SystemExit("undolith did not undo it")
            print(acted, time.perf_counter() - started, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
