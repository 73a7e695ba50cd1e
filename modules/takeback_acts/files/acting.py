"""Acting: one act on some paths, from what was captured to the confirmed row in the log."""

from __future__ import annotations

import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from anyio import from_thread, to_thread
from anyio.lowlevel import current_token

from takeback import faults
from takeback.context import Context
from takeback.store import Job, Store, Transaction
from takeback_acts.files import ancestry, failures, itemlist, manifests, mounts, recovery, staging, trees
from takeback_acts.files.accounts import Account
from takeback_acts.files.beneath import Folders, Home, Spot
from takeback_acts.files.blobs import Blobs, Intake
from takeback_acts.files.hands import Hands
from takeback_acts.files.landmarks import Landmarks
from takeback_acts.files.models import Effect
from takeback_acts.files.paths import content, own, resource
from takeback_acts.files.reading import Reader
from takeback_acts.files.script import Script
from takeback_acts.files.steps import Item
from takeback_acts.files.supply import Supply
from takeback_acts.files.trees import Seen
from takeback_acts.files.windows import Windows
from takeback_core.undo import BegunAct, act

_INLINE = 64 * 1024


@dataclass
class Plan:
    """What one act is going to do: its words for the log, its items, and what they need.

    `at_hand` holds bytes to write that the store may not have, by digest.
    """

    tool: str
    input: Mapping[str, Any]
    summary: str
    items: Sequence[Item]
    root: bytes
    at_hand: dict[str, bytes] = field(default_factory=dict)


class Carried(NamedTuple):
    """What became of a plan: the act's id in the log, and what else there is to say."""

    act: str
    notes: list[str]


class Actor:
    """Captures paths and carries plans out."""

    def __init__(
        self,
        store: Store,
        blobs: Blobs,
        home: Home,
        windows: Windows,
        landmarks: Landmarks,
        hands: Hands,
    ) -> None:
        self.blobs = blobs
        self.home = home
        self._hands = hands
        self.landmarks = landmarks
        self._store = store
        self._windows = windows
        self._ending: dict[str, Job[None]] = {}

    def intake(self, account: Account) -> Intake:
        """A reader that keeps what it reads, for `carry_out`; to be closed after that."""
        return self.blobs.intake(account)

    async def observe(self, spot: Spot, reader: Reader) -> Seen:
        """What lies at a place; small files are read at once, all else in a worker thread."""
        found = spot.look()
        if found is None:
            return trees.NOTHING
        if stat.S_ISREG(found.st_mode) and found.st_size <= _INLINE:
            return trees.observe(spot, reader, self.home)
        if stat.S_ISDIR(found.st_mode):
            mounts.require_none(spot.path)
        return await to_thread.run_sync(trees.observe, spot, reader, self.home)

    def supply(self, at_hand: Mapping[str, bytes]) -> Supply:
        """Bytes for a worker thread."""
        landing, token = self.blobs.landing, current_token()
        return Supply(
            self.blobs.packs.vault.reader,
            at_hand,
            lambda digests: from_thread.run(landing.fetch, digests, token=token),
        )

    async def carry_out(self, ctx: Context, plan: Plan, intake: Intake, places: Folders) -> Carried:
        """Does it: what was captured and the intent are durable before the effect.

        `places` are the open folders of the plan's items. Raises what `undo.begin` and `Script.run` raise;
        everything is then as it was.
        """
        listed = _listed(plan, intake)
        await intake.durable()
        faults.point("files.kept")
        script, key = Script(plan.items), staging.fresh()
        supply = self.supply({**intake.small, **plan.at_hand})
        above = ancestry.identities(places.leading)
        self._end_again()
        try:
            async with self._hands.on(script, supply) as run:
                # Queued before `undo.begin`, so that it is in the same commit.
                kept = self._store.submit(self._capture(plan, intake, script, key, above, listed), ride=True)
                intake.rides(kept)
                async with self._act(ctx, plan, listed) as opened:
                    faults.point("files.begun")
                    try:
                        # In the same commit, and yet it can have failed alone.
                        await kept.wait()
                        await run()
                    except BaseException:
                        if script.undone:
                            opened.nothing_is_left()
                        raise
                    self._end(script, key)
                    faults.point("files.done")
                    return _carried(opened, plan, script)
        except BaseException:
            self._end(script, key)
            self._store.submit(lambda tx: self._windows.unnote(tx, key), ride=True)
            raise

    def _capture(
        self,
        plan: Plan,
        intake: Intake,
        script: Script,
        key: str,
        above: Mapping[str, str],
        listed: str | None,
    ) -> Callable[[Transaction], None]:
        """The transaction that keeps what an act will destroy, and how to recover it."""
        lists = {seen.state.manifest for item in plan.items for seen in (item.now, item.want)} - {""}
        lists |= {listed} if listed is not None else set()
        anew = [item.spot.path for item in plan.items if item.is_tree]
        write = self.landmarks.note(above, anew)

        def capture(tx: Transaction) -> None:
            intake.land(tx)
            manifests.note(tx, lists)
            recovery.begin(tx, key, script, above)
            write(tx)
            self._windows.note(tx, key, plan.items)

        return capture

    def _end(self, script: Script, key: str) -> None:
        """Forgets the script, unless something of it lies about that the next start must see to."""
        if not script.left():
            # What confirms or abandons the act follows at once.
            self._ending[key] = self._store.submit(lambda tx: recovery.end(tx, key), ride=True)

    def _end_again(self) -> None:
        """Forgets what could not be forgotten, lest the next start takes the script for interrupted."""
        settled = {key: job for key, job in self._ending.items() if job.settled}
        for key, job in settled.items():
            del self._ending[key]
            if job.error is not None:
                self._ending[key] = self._store.submit(partial(recovery.end, id=key), ride=True)

    def _act(self, ctx: Context, plan: Plan, listed: str | None) -> AbstractAsyncContextManager[BegunAct]:
        back = inverse(plan) if listed is None else {"root": resource(plan.root), "listed": listed}
        return act(
            ctx,
            tool=plan.tool,
            input=plan.input,
            summary=plan.summary,
            inverse=("files.restore", back),
            touched=touched(plan.items),
            blobs=_named(plan.items) if listed is None else [listed],
        )


def _carried(opened: BegunAct, plan: Plan, script: Script) -> Carried:
    """What was done; the log tells as well where something was kept that is not takeback's to remove."""
    if not script.kept:
        return Carried(opened.id, [])
    where = failures.names([spot.path for spot in script.kept])
    note = f"what was saved there meanwhile, or could not be removed, is kept as {where}"
    opened.confirm_with(summary=f"{plan.summary:.250}; {note}")
    return Carried(opened.id, [note])


def touched(items: Sequence[Item]) -> list[tuple[str, str, str]]:
    """Every resource of an act with its versions before and after: each entry, and of folders the content."""
    found = []
    for item in items:
        now, want, path = item.now.state, item.want.state, item.spot.path
        if item.own:
            found.append((own(path), now.own_version, want.own_version))
            continue
        found.append((resource(path), now.version, want.version))
        if "dir" in (now.kind, want.kind):
            found.append((content(path), now.content_version, want.content_version))
    return found


def inverse(plan: Plan) -> dict[str, Any]:
    """The input of `files.restore` that takes a plan back."""
    came_from = {item.source.path: item.spot.path for item in plan.items if item.source is not None}
    items = []
    for item in plan.items:
        back: dict[str, Any] = {
            "resource": (own if item.own else resource)(item.spot.path),
            "before": item.now.state.dump(),
            "after": item.want.state.dump(),
        }
        if item.spot.path in came_from:
            back["source"] = resource(came_from[item.spot.path])
        items.append(back)
    return {"root": resource(plan.root), "items": items}


def foreseen(items: Sequence[Item], action: str) -> list[Effect]:
    """The effects that items will have."""
    return [
        Effect(resource=name, action="delete" if after == "absent" else action, version=after)
        for name, _, after in touched(items)
    ]


def _listed(plan: Plan, intake: Intake) -> str | None:
    """The blob that lists what takes a plan back, where that is too much for a row."""
    if len(plan.items) <= itemlist.MOST_IN_ROW or any(item.source is not None for item in plan.items):
        return None
    items = ((item.spot.path, item.now.state, item.want.state, item.own) for item in plan.items)
    return intake.data(itemlist.dump(items))


def _named(items: Sequence[Item]) -> list[str]:
    """The blobs that an act names; what a folder holds is named by its manifest."""
    states = [seen.state for item in items for seen in (item.now, item.want)]
    return sorted({name for state in states for name in (state.sha256, state.manifest) if name})
