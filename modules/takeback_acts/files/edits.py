"""Edits: what a tool that is not takeback's own changed at paths it named, as one act after the fact."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any

import anyio
from anyio import to_thread

from takeback import faults
from takeback.callers import Caller
from takeback.context import Context
from takeback.errors import NotFoundError, TakebackError
from takeback.module import Host
from takeback.store import Job, Transaction
from takeback_acts.files import (
    accounts,
    ancestry,
    failures,
    folders,
    grounds,
    images,
    manifests,
    paths,
    roots,
)
from takeback_acts.files.acting import Actor
from takeback_acts.files.beneath import Folders, Spot
from takeback_acts.files.blobs import Intake
from takeback_acts.files.edit_models import BeginEdit, BegunEdit, EndedEdit, EndEdit
from takeback_acts.files.edit_rows import edit_row
from takeback_acts.files.grouping import Back
from takeback_acts.files.open_edits import Before, OpenEdit, OpenEdits
from takeback_acts.files.reading import Digester
from takeback_acts.files.settings import FilesSettings
from takeback_acts.files.states import State
from takeback_acts.files.steps import Item
from takeback_acts.files.trees import NOTHING, Seen
from takeback_acts.files.windows import Windows
from takeback_core.undo import act

_HOUR_NS = 3600 * 10**9
_SMALL = 64 * 1024
# What no path can be like: the edit is under way, and what it leaves there is not known.
_UNDER_WAY = Seen(State(kind="file"))


class Edits:
    """Captures paths before somebody else's tool runs, and records after it what it did to them."""

    def __init__(self, host: Host, actor: Actor, windows: Windows, settings: FilesSettings) -> None:
        self._host = host
        self._actor = actor
        self._windows = windows
        self._longest = int(settings.window_hours * _HOUR_NS)
        self._off = settings.not_captured
        self._open = OpenEdits(host.store)
        self._turn = anyio.Lock()

    @asynccontextmanager
    async def life(self) -> AsyncIterator[None]:
        """Knows again what earlier processes left open."""
        await self._open.load()
        yield

    async def live(self) -> set[str]:
        """The digests that an open edit names; a sweep must spare them."""
        return {name for edit in self._open for name in edit.digests()}

    async def begin(self, ctx: Context, args: BeginEdit) -> BegunEdit:
        """Keeps what lies at the paths now; again with the same id it does nothing.

        A path that can't be captured is named in the notes and left out; one in a folder for which capture is
        switched off is left out. Raises what keeping bytes raises.
        """
        await self._end_lost()
        async with self._turn:
            if (known := self._open.get(args.id)) is not None:
                return BegunEdit(id=known.id, paths=[paths.shown(one.asked) for one in known.befores])
            with self._actor.intake(accounts.captured(ctx.origin)) as intake:
                befores, notes = await self._befores(ctx, args, intake)
                if befores:
                    await self._save(ctx, args, befores, intake)
        return BegunEdit(id=args.id, paths=[paths.shown(one.asked) for one in befores], notes=notes)

    async def end(self, ctx: Context, args: EndEdit) -> EndedEdit:
        """Records what has changed since; raises NotFoundError `files.edit_unknown`."""
        async with self._turn:
            edit = self._open.get(args.id)
            if edit is None or not _may(ctx, edit):
                raise NotFoundError(
                    "files.edit_unknown",
                    f"There is no open edit {args.id:.64} of yours",
                    "It is opened by files.begin_edit, and ends once.",
                )
            return await self._end(self._as_of(ctx, edit), edit, args)

    async def _end_lost(self) -> None:
        for edit in self._open.older_than(self._longest):
            with suppress(TakebackError):
                await self.end(self._host.ctx, EndEdit(id=edit.id, interrupted=True))

    def _as_of(self, ctx: Context, edit: OpenEdit) -> Context:
        """The turn is the one in which it began; what nobody ends is still its own actor's."""
        if Caller.parse(ctx.origin).kind == "module":
            ctx = ctx._replace(origin=edit.origin, chain=(edit.origin, *ctx.chain[1:]), scope=None)
        return ctx._replace(session=edit.session, turn=edit.turn)

    async def _befores(self, ctx: Context, args: BeginEdit, intake: Intake) -> tuple[list[Before], list[str]]:
        given = None if args.images is None else images.by_path(args.images)
        found: dict[bytes, Before] = {}
        notes: list[str] = []
        with Folders(self._actor.home) as places:
            for written in args.paths:
                try:
                    path = roots.target(ctx.scope, written)
                    if grounds.switched_off(path, self._off):
                        continue
                    if given is None:
                        before = await self._before(path, places, intake)
                    else:
                        before = await images.before(path, given, args.at or time.time_ns(), intake)
                except TakebackError as error:
                    notes.append(f"not captured: {written:.600} ({error.message:.300})")
                else:
                    found.setdefault(before.path, before)
        return list(found.values()), notes

    async def _before(self, path: bytes, places: Folders, intake: Intake) -> Before:
        try:
            with failures.reported(path):
                seen = await self._actor.observe(places.spot(path), intake)
        except NotFoundError:
            missing = partial(folders.topmost_missing, path, self._actor.home, parents=True)
            return Before(path, await to_thread.run_sync(missing), NOTHING.state)
        return Before(path, path, seen.state)

    async def _save(self, ctx: Context, args: BeginEdit, befores: list[Before], intake: Intake) -> None:
        at = time.time_ns() if args.images is None else args.at or time.time_ns()
        edit = OpenEdit(
            args.id,
            at,
            ctx.origin,
            ctx.session,
            ctx.turn,
            args.tool,
            tuple(befores),
            given=args.images is not None,
        )
        edit = self._open.add(edit)
        lists = {one.state.manifest for one in befores} - {""}

        def save(tx: Transaction) -> None:
            intake.land(tx)
            manifests.note(tx, lists)
            self._open.save(tx, edit)
            self._note_under_way(tx, edit)

        try:
            await intake.durable()
            saved = self._host.store.submit(save)
            intake.rides(saved)
            await saved.wait()
        except BaseException:
            self._open.remove(edit)
            raise
        faults.point("files.edit_begun")

    def _note_under_way(self, tx: Transaction, edit: OpenEdit) -> None:
        # A command that ends before this edit does must not take its change for its own.
        if self._windows.open:
            items = [Item(_spot(one.path), Seen(one.state), _UNDER_WAY) for one in edit.befores]
            self._windows.note(tx, edit.id, items)

    async def _end(self, ctx: Context, edit: OpenEdit, args: EndEdit) -> EndedEdit:
        with self._actor.intake(accounts.captured(edit.origin)) as intake:
            changes, notes, above = await self._changes(edit, args, intake)
            if not changes:
                self._open.remove(edit)
                self._host.store.submit(lambda tx: self._windows.unnote(tx, edit.id), ride=True)
                return EndedEdit(notes=notes)
            between = await images.touched_meanwhile(edit.befores, args.found, self._actor.blobs)
            edit = replace(edit, shared=edit.shared | between)
            await intake.durable()
            kept = self._keep(edit, changes, intake, above)
            act = await self._record(ctx, edit, [back for back, _ in changes], notes, args, kept)
        if any(self._open):
            for back, seen in changes:
                self._open.moved_on(edit, back.path, back.before, seen)
            self._host.store.submit(self._open.save_all, ride=True)
        return EndedEdit(act=act, changed=len(changes), notes=notes)

    async def _changes(
        self, edit: OpenEdit, args: EndEdit, intake: Intake
    ) -> tuple[list[tuple[Back, Seen]], list[str], dict[str, str]]:
        """Each path that is not as it was, with what lies there; what can't be told; what leads there."""
        found, notes = [], []
        given = None if args.images is None else images.by_path(args.images)
        with Folders(self._actor.home) as places:
            for one in edit.befores:
                try:
                    seen = await self._now(one, places, intake)
                    if given is not None or edit.given:
                        seen = await images.after(one, given or {}, edit, seen, intake)
                except TakebackError as error:
                    notes.append(f"not captured: {paths.shown(one.path):.600} ({error.message:.300})")
                    continue
                if not seen.state.same(one.state):
                    found.append((Back(one.path, one.state, seen.state), seen))
            return found, notes, ancestry.identities(places.leading)

    async def _now(self, one: Before, places: Folders, intake: Intake) -> Seen:
        try:
            with failures.reported(one.path):
                spot = places.spot(one.path)
                if one.state.size > _SMALL:
                    seen = await self._actor.observe(spot, Digester())
                    if seen.state.same(one.state):
                        # What did not change need not be kept once more.
                        return seen
                return await self._actor.observe(spot, intake)
        except NotFoundError:
            self._actor.landmarks.require_there(one.path)
            return NOTHING

    def _keep(
        self, edit: OpenEdit, changes: Sequence[tuple[Back, Seen]], intake: Intake, above: Mapping[str, str]
    ) -> Job[None]:
        """Queues what keeps all that the act will name, for the commit of its row."""
        backs = [back for back, _ in changes]
        lists = {state.manifest for back in backs for state in (back.before, back.after)} - {""}
        anew = [back.path for back in backs if "dir" in (back.before.kind, back.after.kind)]
        mark = self._actor.landmarks.note(above, anew)
        items = [Item(_spot(back.path), Seen(back.before), seen) for back, seen in changes]

        def keep(tx: Transaction) -> None:
            intake.land(tx)
            manifests.note(tx, lists)
            mark(tx)
            self._windows.unnote(tx, edit.id)
            self._windows.note(tx, edit.id, items)

        kept = self._host.store.submit(keep, ride=True)
        intake.rides(kept)
        return kept

    async def _record(
        self,
        ctx: Context,
        edit: OpenEdit,
        backs: Sequence[Back],
        notes: list[str],
        args: EndEdit,
        kept: Job[None],
    ) -> str:
        own = [back for back in backs if back.path not in edit.shared]
        self._open.remove(edit)
        recorded = ""
        try:
            for back in backs:
                if back.path in edit.shared:
                    row = edit_row(edit, [back], notes, args, b"/")
                    recorded = await _act(self._host.ctx, row, kept)
            if own:
                root = roots.around(ctx.scope, [back.path for back in own])
                recorded = await _act(ctx, edit_row(edit, own, notes, args, root), kept)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self._open.put_back(edit)
            raise
        faults.point("files.edit_recorded")
        return recorded


async def _act(ctx: Context, row: Mapping[str, Any], kept: Job[None]) -> str:
    """Records an act that has happened; in the commit of its row is what it names, or it does not stand."""
    async with act(ctx, **row) as opened:
        try:
            await kept.wait()
        except BaseException:
            opened.nothing_is_left()
            raise
        return opened.id


def _spot(path: bytes) -> Spot:
    return Spot(-1, paths.split(path)[1], path)


def _may(ctx: Context, edit: OpenEdit) -> bool:
    caller = Caller.parse(ctx.origin)
    return caller.kind in ("person", "module") or caller.same_actor(Caller.parse(edit.origin))
