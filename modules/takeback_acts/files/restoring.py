"""Restoring: the inverse of every act on files, and of itself. All its paths are put back, or none is."""

from __future__ import annotations

import os
from collections.abc import Sequence

from anyio import to_thread

from takeback.context import Context
from takeback.errors import ConflictError, TakebackError, UsageError
from takeback_acts.files import (
    accounts,
    attributes,
    beneath,
    failures,
    itemlist,
    parts,
    paths,
    requiring,
    staging,
)
from takeback_acts.files.acting import Actor, Carried, Plan
from takeback_acts.files.beneath import Folders
from takeback_acts.files.blobs import Intake
from takeback_acts.files.capture.gitpushed import Moved, Pushed
from takeback_acts.files.interrupted import Interrupted
from takeback_acts.files.judging import Case, Judge
from takeback_acts.files.locks import Locks
from takeback_acts.files.models import Back, Effect, Restore, Restored
from takeback_acts.files.overlay import Overlay
from takeback_acts.files.parts import Bonds
from takeback_acts.files.passages import Passages
from takeback_acts.files.reading import Digester, Reader
from takeback_acts.files.settings import FilesSettings
from takeback_acts.files.steps import Item
from takeback_acts.files.trees import NOTHING, Seen


class Restorer:
    """Puts paths back as acts found them, as far as nobody's later work is lost by it."""

    def __init__(self, actor: Actor, locks: Locks, interrupted: Interrupted, settings: FilesSettings) -> None:
        self._actor = actor
        self._interrupted = interrupted
        self._locks = locks
        self._settings = settings

    async def restore(self, ctx: Context, args: Restore) -> Restored:
        """Judges every path, then does all of it.

        Raises RefusedError `scope.confined`, `scope.outside`, ConflictError `undo.changed`, `files.conflict`,
        NotFoundError `files.blob_missing`, TakebackError `files.unreachable`.
        """
        args = await self._at_hand(args)
        bonds = Bonds(args.items if args.only is not None else ())
        if args.only is not None:
            args = args.model_copy(update={"items": parts.chosen(args.items, args.only)})
        targets = [requiring.target(ctx, args.root, item) for item in args.items]
        await self._interrupted.require_none(targets)
        async with self._locks.hold(targets):
            intake = self._actor.intake(accounts.UNDO)
            with failures.reported(targets[0]), Folders(self._actor.home, Passages()) as folders, intake:
                return await self._restore(ctx, args, bonds, targets, folders, intake)

    async def _at_hand(self, args: Restore) -> Restore:
        """The same with its items, also those that are listed elsewhere."""
        if args.listed is not None:
            items = itemlist.load(await self._actor.blobs.read(args.listed))
            return args.model_copy(update={"items": items})
        if not args.items:
            raise UsageError("files.path", "There is nothing to put back", "Name at least one path.")
        return args

    async def _restore(
        self,
        ctx: Context,
        args: Restore,
        bonds: Bonds,
        targets: Sequence[bytes],
        folders: Folders,
        intake: Intake,
    ) -> Restored:
        overlay = Overlay.of(ctx.rehearsal)
        cases = await self._cases(args, targets, folders, overlay, None if ctx.dry_run else intake)
        bonds.part(cases)
        if not ctx.dry_run:
            requiring.require_expected(ctx, cases)
            await intake.durable()
        supply = self._actor.supply({**intake.small, **overlay.data})
        pushed = Pushed([Moved(paths.parse(one.git)[0], one.ref, one.old, one.new) for one in args.refs])
        judge = Judge(supply, self._settings, ctx.force, made=dict(overlay.data), pushed=pushed)
        await to_thread.run_sync(_decide, judge, cases)
        effects = [effect for case in cases for effect in case.effects()]
        effects += [Effect(resource=one.resource, action="skip", reason=one.reason) for one in args.stays]
        if ctx.dry_run:
            _note(overlay, cases, judge)
            return Restored(effects=effects)
        requiring.require_possible(cases)
        carried = await self._carry_out(ctx, args, cases, judge, intake, folders)
        if carried is None:
            return Restored(effects=effects)
        return Restored(effects=effects, act=carried.act, notes=carried.notes)

    async def _cases(
        self,
        args: Restore,
        targets: Sequence[bytes],
        folders: Folders,
        overlay: Overlay,
        intake: Intake | None,
    ) -> list[Case]:
        """Every path with what lies there; kept by `intake`, except what is only moved back."""
        sources = {item.source for item in args.items}
        cases = []
        for item, path in zip(args.items, targets, strict=True):
            reader = intake if intake is not None and item.resource not in sources else Digester()
            case = await self._case(item, path, reader, folders, overlay)
            if case.now.state.kind == "absent" and not overlay.covers(path):
                self._actor.landmarks.require_there(path)
            cases.append(case)
        _pair(cases)
        return cases

    async def _case(
        self, item: Back, path: bytes, reader: Reader, folders: Folders, overlay: Overlay
    ) -> Case:
        try:
            spot = folders.spot(path)
        except TakebackError as error:
            if not overlay.hides(path, error):
                raise
            # Its folder is gone, or would be there by now in a rehearsal; nothing lies in it on disk.
            spot, now = beneath.Spot(-1, os.path.basename(path), path), NOTHING
        else:
            now = attributes.seen(spot) if item.own else await self._actor.observe(spot, reader)
        if isinstance(reader, Digester) and not item.own:
            now = Seen(now.state.model_copy(update={"manifest": ""}), now.entries)
        parent = paths.split(path)[0]
        homeless = spot.folder < 0 and overlay.over(parent, NOTHING).state.kind != "dir"
        return Case(spot, item, overlay.over(path, now), homeless=homeless)

    async def _carry_out(
        self,
        ctx: Context,
        args: Restore,
        cases: Sequence[Case],
        judge: Judge,
        intake: Intake,
        folders: Folders,
    ) -> Carried | None:
        """Does what was judged; None when there was nothing to do."""
        items = _items(cases)
        if not items:
            return None
        plan = Plan(
            tool="files.restore",
            input={"paths": [item.resource for item in args.items][:100]},
            summary=_summary(cases),
            items=items,
            root=paths.parse(args.root)[0],
            at_hand=judge.made,
        )
        for data in judge.made.values():
            intake.data(data)
        try:
            return await self._actor.carry_out(ctx, plan, intake, folders)
        except ConflictError as error:
            if error.code != "files.changed":
                raise
            raise requiring.changed(error.message) from error


def _pair(cases: Sequence[Case]) -> None:
    """Joins the two ends of each move; raises UsageError `files.source`."""
    by_resource = {case.back.resource: case for case in cases}
    for case in cases:
        if case.back.source is None:
            continue
        source = by_resource.get(case.back.source)
        if source is None or source is case or source.goes_to is not None:
            raise UsageError(
                "files.source", f"{case.back.source} is no other item of this restore", "List it once."
            )
        case.source, source.goes_to = source, case


def _decide(judge: Judge, cases: Sequence[Case]) -> None:
    for portion in staging.portions(sorted(cases, key=lambda case: case.source is not None)):
        judge.look_ahead(portion)
        for case in portion:
            judge.decide(case)


def _note(overlay: Overlay, cases: Sequence[Case], judge: Judge) -> None:
    """Remembers, for later steps of a rehearsed plan, what this one would have left; all or nothing."""
    if any(case.blocked for case in cases):
        return
    overlay.data.update(judge.made)
    for case in cases:
        if case.action == "skip":
            continue
        if case.back.own:
            overlay.dress(case.spot.path, case.want.state)
        else:
            overlay.put(case.spot.path, case.want)


def _items(cases: Sequence[Case]) -> list[Item]:
    acting = [case for case in cases if case.action != "skip"]
    return [
        Item(
            case.spot,
            case.now,
            case.want,
            case.source.spot if case.source is not None else None,
            own=case.back.own,
        )
        for case in acting
    ]


def _summary(cases: Sequence[Case]) -> str:
    acting = [case for case in cases if case.action != "skip"]
    first = paths.shown(acting[0].spot.path)
    more = f" and {len(acting) - 1} more" if len(acting) > 1 else ""
    return f"Put back {first:.800}{more}"
