"""Recovery: what a crash left between two renames is finished or taken back at the next start.

Each running script has a row. Its paths are either all as wanted, and then only leftovers go, or the steps
that were taken are taken back. Bytes that nobody knows are never removed.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from takeback.errors import NotFoundError, TakebackError
from takeback_acts.files import ancestry, entries, leavings, paths, renames, script, staging, trees
from takeback_acts.files.beneath import Folders, Home, Spot
from takeback_acts.files.passages import Passages
from takeback_acts.files.reading import Digester
from takeback_acts.files.states import State
from takeback_acts.files.supply import Supply
from takeback_acts.files.trees import Seen

if TYPE_CHECKING:
    from takeback.store import Store, Transaction

TABLE = """
CREATE TABLE files_running (
    id TEXT NOT NULL PRIMARY KEY,
    script TEXT NOT NULL
) WITHOUT ROWID;
"""


class _Temp(NamedTuple):
    spot: Spot
    owner: Spot
    known: list[Seen]


def begin(tx: Transaction, id: str, running: script.Script, above: Mapping[str, str]) -> None:
    """The row that lets a crash of this script be recovered; `above` are the folders that lead there."""
    dumped = json.dumps({**running.dump(), "above": above}, separators=(",", ":"))
    tx.execute("INSERT INTO files_running VALUES (?, ?)", (id, dumped))


def end(tx: Transaction, id: str) -> None:
    """Removes a script's row."""
    tx.execute("DELETE FROM files_running WHERE id = ?", (id,))


async def left(store: Store) -> list[tuple[str, dict[str, Any]]]:
    """The scripts that were running when the process ended."""
    rows = await store.read(lambda db: db.execute("SELECT id, script FROM files_running").fetchall())
    return [(row["id"], json.loads(row["script"])) for row in rows]


def targets(dumped: dict[str, Any]) -> list[bytes]:
    """The paths that a script is about."""
    return [paths.parse(uri)[0] for uri, *_ in (*dumped["wants"], *dumped.get("entries", ()))]


def recover(dumped: dict[str, Any], supply: Supply, home: Home) -> bool:
    """Finishes or takes back one script; answers whether nothing of it is left. Blocks."""
    with Folders(home, Passages()) as folders:
        try:
            return _Recovery(dumped, supply, home, folders).run()
        except (OSError, TakebackError):
            return False


class _Recovery:
    def __init__(self, dumped: dict[str, Any], supply: Supply, home: Home, folders: Folders) -> None:
        self._home = home
        self._folders = folders
        self._above: dict[str, str] = dumped.get("above", {})
        busy = entries.around(targets(dumped))
        # What lies in a folder that is shut can't be reached before that is open.
        self._entries, self._dressed = entries.of_dump(
            dumped.get("entries", []), busy.__contains__, self._spot
        )
        self._wants = [(self._spot(uri), State.model_validate(state)) for uri, state in dumped["wants"]]
        self._steps = [(self._spot(a), self._spot(b), swap) for a, b, swap in dumped["steps"]]
        self._temps = self._known_temps(dumped["temps"], supply)

    def run(self) -> bool:
        finished = self._dressed and self._finished()
        if not finished:
            for source, target, swap in reversed(self._steps):
                if source is not None and target is not None:
                    self._reverse(source, target, swap=swap)
        for temp in self._temps.values():
            leavings.discard(temp.spot, temp.known, temp.owner, self._home)
        if finished:
            self._entries.shut_again()
        else:
            self._entries.take_back()
        return True

    def _spot(self, uri: str) -> Spot | None:
        """The place of a path; None when its folder is gone, and with it all that was left there.

        Raises what keeps from telling: the disk is away, or something else stands in the folder's place.
        """
        path = paths.parse(uri)[0]
        ancestry.require_there(path, self._above)
        try:
            return self._folders.spot(path)
        except NotFoundError:
            return None

    def _known_temps(self, dumped: list[list[Any]], supply: Supply) -> dict[bytes, _Temp]:
        found: dict[bytes, _Temp] = {}
        for uri, owner, states in dumped:
            spot, beside = self._spot(uri), self._spot(owner)
            if spot is None or beside is None:
                continue
            temp = found.setdefault(spot.path, _Temp(spot, beside, []))
            temp.known.extend(_seen(State.model_validate(state), supply) for state in states)
        return found

    def _finished(self) -> bool:
        """Whether every path is as wanted, and nothing that was displaced is a stranger's."""
        for spot, want in self._wants:
            if spot is None or not self._look(spot).state.same(want):
                return False
        return all(self._is_known(temp) for temp in self._temps.values())

    def _is_known(self, temp: _Temp) -> bool:
        found = self._look(temp.spot)
        return found.state.kind == "absent" or any(leavings.within(found, known) for known in temp.known)

    def _reverse(self, source: Spot, target: Spot, *, swap: bool) -> None:
        if swap:
            self._swap_back(source, target)
        elif source.look() is None and target.look() is not None and not self._foreign(source, target):
            renames.take_free(target, source)

    def _foreign(self, source: Spot, target: Spot) -> bool:
        """Whether what lies at a target is not what a step from a temporary name put there."""
        temp = self._temps.get(source.path)
        return temp is not None and not self._look(target).state.same(temp.known[0].state)

    def _swap_back(self, temp: Spot, target: Spot) -> None:
        """Undoes an exchange, unless somebody has changed since what it put in place."""
        staged = self._temps[temp.path].known[0].state
        aside = temp.beside(temp.name + staging.ASIDE)
        with contextlib.suppress(FileExistsError):
            if aside.look() is not None:
                if self._look(target).state.same(staged):
                    renames.take_free(target, temp)
                renames.take_free(aside, target)
                return
        if aside.look() is not None:
            leavings.keep(aside, target)
        in_temp = self._look(temp).state
        if in_temp.kind != "absent" and not in_temp.same(staged) and self._look(target).state.same(staged):
            renames.exchange(temp, target)

    def _look(self, spot: Spot) -> Seen:
        return trees.observe(spot, Digester(), self._home)


def _seen(state: State, supply: Supply) -> Seen:
    return Seen(state, trees.load(supply.read(state.manifest)) if state.manifest else ())
