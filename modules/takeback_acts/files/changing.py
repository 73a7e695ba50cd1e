"""Changing: from what a caller asked for to the plan that does it."""

from __future__ import annotations

import stat
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from anyio import to_thread

from takeback.context import Context
from takeback.errors import ConflictError, UsageError
from takeback_acts.files import accounts, failures, folders, paths, roots, texts
from takeback_acts.files.acting import Actor, Plan, foreseen
from takeback_acts.files.beneath import Folders, Spot
from takeback_acts.files.blobs import Intake
from takeback_acts.files.interrupted import Interrupted
from takeback_acts.files.locks import Locks
from takeback_acts.files.merge import is_text
from takeback_acts.files.models import Delete, Done, Edit, MakeDir, Move, Write
from takeback_acts.files.reading import Digester, Reader, digest
from takeback_acts.files.settings import FilesSettings
from takeback_acts.files.states import State
from takeback_acts.files.steps import Item
from takeback_acts.files.trees import NOTHING, Seen

_Prepare = Callable[[Folders, Intake], Awaitable[tuple[Plan, str]]]


class Changer:
    """The acts. Each captures, then foresees, then does; a dry run ends before the last."""

    def __init__(
        self, actor: Actor, locks: Locks, interrupted: Interrupted, settings: FilesSettings, umask: int
    ) -> None:
        self._actor = actor
        self._interrupted = interrupted
        self._locks = locks
        self._settings = settings
        self._umask = umask

    async def write(self, ctx: Context, args: Write) -> Done:
        """Gives a file its whole content."""
        path = roots.target(ctx.scope, args.path)
        data = texts.given(args)

        async def prepare(places: Folders, intake: Intake) -> tuple[Plan, str]:
            spot = places.spot(path)
            now = await self._file_now(ctx, spot, intake)
            return self._content(ctx, "files.write", spot, now, data, intake, args.executable)

        return await self._do(ctx, [path], prepare)

    async def edit(self, ctx: Context, args: Edit) -> Done:
        """Replaces text in a file."""
        path = roots.target(ctx.scope, args.path)

        async def prepare(places: Folders, intake: Intake) -> tuple[Plan, str]:
            spot = places.spot(path)
            now = await self._file_now(ctx, spot, intake)
            old = intake.small.get(now.state.sha256)
            if old is None:
                old = await to_thread.run_sync(texts.current, spot, now, self._settings.most_edit)
            data = texts.replaced(old, args, path)
            return self._content(ctx, "files.edit", spot, now, data, intake, None)

        return await self._do(ctx, [path], prepare)

    async def delete(self, ctx: Context, args: Delete) -> Done:
        """Removes a file, a link or a folder."""
        path = roots.target(ctx.scope, args.path)
        self._actor.home.check_around(path)

        async def prepare(places: Folders, intake: Intake) -> tuple[Plan, str]:
            spot = places.spot(path)
            folders.require_removable(spot, self._actor.home, recursive=args.recursive)
            now = await self._now(ctx, spot, intake)
            many = f" with {len(now.entries)} entries" if now.entries else ""
            summary = f"Deleted {paths.shown(path):.800}{many}"
            return Plan(
                "files.delete",
                {"path": paths.shown(path)},
                summary,
                [Item(spot, now, NOTHING)],
                roots.around(ctx.scope, [path]),
            ), "delete"

        return await self._do(ctx, [path], prepare)

    async def move(self, ctx: Context, args: Move) -> Done:
        """Gives a file, a link or a folder another path."""
        path, to = roots.target(ctx.scope, args.path), roots.target(ctx.scope, args.to)
        if paths.beneath(to, path) or paths.beneath(path, to):
            raise UsageError(
                "files.into_itself",
                f"{paths.shown(path)} can't be moved to {paths.shown(to)}, which is within it or around it",
                "Choose a path beside it.",
            )
        for end in (path, to):
            self._actor.home.check_around(end)

        async def prepare(places: Folders, intake: Intake) -> tuple[Plan, str]:
            source, target = places.spot(path), places.spot(to)
            if source.look() is None:
                raise failures.absent(path)
            there = await self._now(ctx, target, intake)
            if there.state.kind != "absent" and not args.overwrite:
                raise ConflictError(
                    "files.exists",
                    f"{paths.shown(to)} is there already",
                    "Choose another name, or overwrite it.",
                )
            # Nothing of it is lost by a rename, so its bytes need not be kept.
            moved = _unkept(await self._actor.observe(source, Digester()))
            items = [Item(source, moved, NOTHING), Item(target, there, moved, source)]
            summary = f"Moved {paths.shown(path):.400} to {paths.shown(to):.400}"
            return Plan(
                "files.move",
                {"path": paths.shown(path), "to": paths.shown(to)},
                summary,
                items,
                roots.around(ctx.scope, [path, to]),
            ), "move"

        return await self._do(ctx, [path, to], prepare, at=1)

    async def make_dir(self, ctx: Context, args: MakeDir) -> Done:
        """Makes a folder."""
        path = roots.target(ctx.scope, args.path)
        while True:
            top = await to_thread.run_sync(
                partial(folders.topmost_missing, path, self._actor.home, parents=args.parents)
            )
            if roots.is_root(ctx.scope, top) or not roots.holds(ctx.scope, top):
                raise failures.absent(top)  # the granted folder itself, which is perhaps a disk that is away
            try:
                done = await self._make(ctx, path, top)
            except ConflictError as error:
                # Somebody made the first missing folder meanwhile; what is missing now lies deeper.
                if top == path or error.code != "files.exists":
                    raise
            else:
                return done.model_copy(update={"path": paths.shown(path), "resource": paths.resource(path)})

    async def _make(self, ctx: Context, path: bytes, top: bytes) -> Done:
        async def prepare(places: Folders, intake: Intake) -> tuple[Plan, str]:
            spot = places.spot(top)
            if spot.look() is not None:
                raise ConflictError(
                    "files.exists", f"{paths.shown(top)} is there already", "Go on with what is there."
                )
            want = folders.nested(path[len(top) :], 0o777 & ~self._umask, intake)
            summary = f"Made the folder {paths.shown(path):.800}"
            plan = Plan(
                "files.make_dir",
                {"path": paths.shown(path)},
                summary,
                [Item(spot, NOTHING, want)],
                roots.around(ctx.scope, [path]),
            )
            return plan, "create"

        return await self._do(ctx, [top], prepare)

    async def _do(self, ctx: Context, targets: Sequence[bytes], prepare: _Prepare, at: int = 0) -> Done:
        await self._interrupted.require_none(targets)
        async with self._locks.hold(targets):
            intake = self._actor.intake(accounts.acting(ctx.origin))
            with failures.reported(targets[0]), Folders(self._actor.home) as places, intake:
                plan, action = await prepare(places, intake)
                item = plan.items[at]
                done = Done(
                    path=paths.shown(item.spot.path),
                    resource=paths.resource(item.spot.path),
                    version=item.want.state.version,
                    effects=foreseen(plan.items, action),
                )
                if not ctx.dry_run and not all(item.now.state.same(item.want.state) for item in plan.items):
                    done.act, done.notes = await self._actor.carry_out(ctx, plan, intake, places)
                return done

    async def _now(self, ctx: Context, spot: Spot, intake: Intake) -> Seen:
        """What lies there, kept for the undo; in a dry run nothing is kept."""
        reader: Reader = Digester() if ctx.dry_run else intake
        seen = await self._actor.observe(spot, reader)
        return _unkept(seen) if ctx.dry_run else seen

    async def _file_now(self, ctx: Context, spot: Spot, intake: Intake) -> Seen:
        """Like `_now`, where only a file will do; nothing else is even read."""
        found = spot.look()
        if found is not None and stat.S_ISDIR(found.st_mode):
            raise failures.is_folder(spot.path)
        if found is not None and stat.S_ISLNK(found.st_mode):
            raise failures.linked(spot.path)
        return await self._now(ctx, spot, intake)

    def _content(
        self,
        ctx: Context,
        tool: str,
        spot: Spot,
        now: Seen,
        data: bytes,
        intake: Intake,
        executable: bool | None,
    ) -> tuple[Plan, str]:
        sha256 = digest(data)
        if not ctx.dry_run and is_text(data, self._settings.merge_most):
            intake.data(data)  # the base of a later merge
        want = self._file(now.state, sha256, len(data), executable)
        new = now.state.kind == "absent"
        words = "Created" if new else ("Edited" if tool == "files.edit" else "Wrote")
        plan = Plan(
            tool,
            {"path": paths.shown(spot.path), "sha256": sha256, "size": len(data)},
            f"{words} {paths.shown(spot.path):.800}",
            [Item(spot, now, Seen(want))],
            roots.around(ctx.scope, [spot.path]),
            {sha256: data},
        )
        return plan, "create" if new else "write"

    def _file(self, now: State, sha256: str, size: int, executable: bool | None) -> State:
        """The state of a file with new content: mode and owner stay, but for rights of the old bytes."""
        mode = now.mode if now.kind == "file" else 0o666 & ~self._umask
        if sha256 != now.sha256:
            mode = _without_privileges(mode)
        if executable is not None:
            mode = mode | (mode & 0o444) >> 2 if executable else mode & ~0o111
        return State(
            kind="file", mode=mode, size=size, sha256=sha256, owner=now.owner, group=now.group, mtime_ns=0
        )


def _without_privileges(mode: int) -> int:
    """As the system does when a file is written to: it no longer runs as somebody else."""
    mode &= ~stat.S_ISUID
    # Without the group's right to execute this bit has another meaning.
    return mode & ~stat.S_ISGID if mode & stat.S_IXGRP else mode


def _unkept(seen: Seen) -> Seen:
    """What was looked at without being kept, so that no manifest is named that the store does not hold."""
    return Seen(seen.state.model_copy(update={"manifest": ""}), seen.entries)
