"""Changing: from what a caller asked for to the plan that does it."""

from __future__ import annotations

import binascii
import os
import stat
from base64 import b64decode
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack

from anyio import to_thread

from takeback.context import Context
from takeback.errors import ConflictError, RefusedError, TakebackError, UsageError
from takeback_acts.files import beneath, failures, paths, roots, trees
from takeback_acts.files.acting import Actor, Plan, foreseen
from takeback_acts.files.beneath import Spot
from takeback_acts.files.blobs import Intake
from takeback_acts.files.locks import Locks
from takeback_acts.files.merge import is_text
from takeback_acts.files.models import Delete, Done, Edit, MakeDir, Move, Write
from takeback_acts.files.reading import Digester, Reader, digest, read_all, steady
from takeback_acts.files.script import Item
from takeback_acts.files.settings import FilesSettings
from takeback_acts.files.states import State
from takeback_acts.files.trees import NOTHING, Entry, Seen

_Prepare = Callable[[ExitStack, Intake], Awaitable[tuple[Plan, str]]]


class Changer:
    """The acts. Each captures, then foresees, then does; a dry run ends before the last."""

    def __init__(self, actor: Actor, locks: Locks, settings: FilesSettings, umask: int) -> None:
        self._actor = actor
        self._locks = locks
        self._settings = settings
        self._umask = umask

    async def write(self, ctx: Context, args: Write) -> Done:
        """Gives a file its whole content."""
        path = _target(ctx, args.path)
        data = _data(args)

        async def prepare(stack: ExitStack, intake: Intake) -> tuple[Plan, str]:
            spot = self._enter(stack, path)
            now = await self._file_now(ctx, spot, intake)
            return self._content(ctx, "files.write", spot, now, data, intake, args.executable)

        return await self._do(ctx, [path], prepare)

    async def edit(self, ctx: Context, args: Edit) -> Done:
        """Replaces text in a file."""
        path = _target(ctx, args.path)

        async def prepare(stack: ExitStack, intake: Intake) -> tuple[Plan, str]:
            spot = self._enter(stack, path)
            now = await self._file_now(ctx, spot, intake)
            old = intake.small.get(now.state.sha256)
            if old is None:
                old = await to_thread.run_sync(self._bytes, spot, now)
            data = _replaced(old, args, path)
            return self._content(ctx, "files.edit", spot, now, data, intake, None)

        return await self._do(ctx, [path], prepare)

    async def delete(self, ctx: Context, args: Delete) -> Done:
        """Removes a file, a link or a folder."""
        path = _target(ctx, args.path)
        self._actor.home.check_around(path)

        async def prepare(stack: ExitStack, intake: Intake) -> tuple[Plan, str]:
            spot = self._enter(stack, path)
            self._require_removable(spot, recursive=args.recursive)
            now = await self._now(ctx, spot, intake)
            many = f" with {len(now.entries)} entries" if now.entries else ""
            summary = f"Deleted {paths.shown(path):.800}{many}"
            return Plan(
                "files.delete", _input(path), summary, [Item(spot, now, NOTHING)], _root(ctx, path)
            ), "delete"

        return await self._do(ctx, [path], prepare)

    async def move(self, ctx: Context, args: Move) -> Done:
        """Gives a file, a link or a folder another path."""
        path, to = _target(ctx, args.path), _target(ctx, args.to)
        if paths.beneath(to, path) or paths.beneath(path, to):
            raise UsageError(
                "files.into_itself",
                f"{paths.shown(path)} can't be moved to {paths.shown(to)}, which is within it or around it",
                "Choose a path beside it.",
            )
        for end in (path, to):
            self._actor.home.check_around(end)

        async def prepare(stack: ExitStack, intake: Intake) -> tuple[Plan, str]:
            source, target = self._enter(stack, path), self._enter(stack, to)
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
                "files.move", {**_input(path), "to": paths.shown(to)}, summary, items, _root(ctx, path, to)
            ), "move"

        return await self._do(ctx, [path, to], prepare, at=1)

    async def make_dir(self, ctx: Context, args: MakeDir) -> Done:
        """Makes a folder."""
        path = _target(ctx, args.path)
        while True:
            top = await to_thread.run_sync(self._topmost_missing, path, args.parents)
            try:
                done = await self._make(ctx, path, top)
            except ConflictError as error:
                # Somebody made the first missing folder meanwhile; what is missing now lies deeper.
                if top == path or error.code != "files.exists":
                    raise
            else:
                return done.model_copy(update={"path": paths.shown(path), "resource": paths.resource(path)})

    async def _make(self, ctx: Context, path: bytes, top: bytes) -> Done:
        async def prepare(stack: ExitStack, intake: Intake) -> tuple[Plan, str]:
            spot = self._enter(stack, top)
            if spot.look() is not None:
                raise ConflictError(
                    "files.exists", f"{paths.shown(top)} is there already", "Go on with what is there."
                )
            want = self._nested(path[len(top) :], intake)
            summary = f"Made the folder {paths.shown(path):.800}"
            plan = Plan(
                "files.make_dir", _input(path), summary, [Item(spot, NOTHING, want)], _root(ctx, path)
            )
            return plan, "create"

        return await self._do(ctx, [top], prepare)

    async def _do(self, ctx: Context, targets: Sequence[bytes], prepare: _Prepare, at: int = 0) -> Done:
        async with self._locks.hold(targets):
            with failures.reported(targets[0]), ExitStack() as stack:
                intake = self._actor.intake()
                plan, action = await prepare(stack, intake)
                item = plan.items[at]
                done = Done(
                    path=paths.shown(item.spot.path),
                    resource=paths.resource(item.spot.path),
                    version=item.want.state.version,
                    effects=foreseen(plan.items, action),
                )
                if not ctx.dry_run and not all(item.now.state.same(item.want.state) for item in plan.items):
                    done.act = await self._actor.carry_out(ctx, plan, intake)
                return done

    def _enter(self, stack: ExitStack, path: bytes) -> Spot:
        return stack.enter_context(beneath.spot(path, self._actor.home))

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
            {**_input(spot.path), "sha256": sha256, "size": len(data)},
            f"{words} {paths.shown(spot.path):.800}",
            [Item(spot, now, Seen(want))],
            _root(ctx, spot.path),
            {sha256: data},
        )
        return plan, "create" if new else "write"

    def _file(self, now: State, sha256: str, size: int, executable: bool | None) -> State:
        """The state of a file with new content: mode and owner stay."""
        mode = now.mode if now.kind == "file" else 0o666 & ~self._umask
        if executable is not None:
            mode = mode | (mode & 0o444) >> 2 if executable else mode & ~0o111
        return State(
            kind="file", mode=mode, size=size, sha256=sha256, owner=now.owner, group=now.group, mtime_ns=0
        )

    def _bytes(self, spot: Spot, now: Seen) -> bytes:
        """The bytes of a file that was just looked at."""
        handle = beneath.open_file(spot.folder, spot.name, spot.path)
        try:
            size = os.fstat(handle).st_size
            if size > self._settings.most_edit:
                raise UsageError(
                    "files.too_large",
                    f"{paths.shown(spot.path)} has {size} bytes, which is more than an edit takes",
                    "Write the file anew.",
                )
            held: list[bytes] = []

            def take(handle: int, size: int) -> tuple[str, int]:
                held[:] = [read_all(handle, size)]
                return digest(held[0]), len(held[0])

            _, sha256, _ = steady(handle, spot.path, take)
        finally:
            os.close(handle)
        if sha256 != now.state.sha256:
            raise failures.changed(spot.path)
        return held[0]

    def _require_removable(self, spot: Spot, *, recursive: bool) -> None:
        found = spot.look()
        if found is None:
            raise failures.absent(spot.path)
        if not stat.S_ISDIR(found.st_mode) or recursive:
            return
        handle = beneath.open_within(spot.folder, spot.name, spot.path, self._actor.home)
        try:
            with os.scandir(handle) as entries:
                filled = next(entries, None) is not None
        finally:
            os.close(handle)
        if filled:
            raise ConflictError(
                "files.not_empty",
                f"{paths.shown(spot.path)} is not empty",
                "Set recursive to delete what it holds.",
            )

    def _topmost_missing(self, path: bytes, parents: bool) -> bytes:
        """The first folder on a path that isn't there."""
        top = path
        while parents:
            parent = paths.split(top)[0]
            try:
                os.close(beneath.open_folder(parent, self._actor.home))
            except TakebackError as error:
                if error.code != "files.absent":
                    raise
                top = parent
            else:
                break
        return top

    def _nested(self, inner: bytes, intake: Intake) -> Seen:
        """A new folder, with the folders in it down to `inner`."""
        state = State(kind="dir", mode=0o777 & ~self._umask)
        parts = [part for part in inner.split(b"/") if part]
        entries = tuple(Entry(b"/".join(parts[: depth + 1]), state) for depth in range(len(parts)))
        manifest = intake.data(trees.dump(entries))
        return Seen(
            state.model_copy(update={"manifest": manifest, "content": trees.version(entries)}), entries
        )


def _target(ctx: Context, written: str) -> bytes:
    path = roots.resolve(ctx.scope, written)
    if roots.is_root(ctx.scope, path):
        raise RefusedError("files.root", f"{paths.shown(path)} is a root itself", "Act on what lies in it.")
    return path


def _root(ctx: Context, *targets: bytes) -> bytes:
    """The root within which an inverse has to stay."""
    for root in ctx.scope.roots if ctx.scope is not None else ():
        top = paths.canonical(os.fsencode(root))
        if all(paths.beneath(path, top) for path in targets):
            return top
    return b"/"


def _input(path: bytes) -> dict[str, object]:
    return {"path": paths.shown(path)}


def _data(args: Write) -> bytes:
    if (args.content is None) == (args.content_base64 is None):
        raise UsageError(
            "files.content",
            "Exactly one of content and content_base64 is needed",
            "Text as content, bytes as base64.",
        )
    if args.content is not None:
        return args.content.encode()
    try:
        return b64decode(args.content_base64 or "", validate=True)
    except binascii.Error:
        raise UsageError("files.content", "content_base64 is not base64", "Encode the bytes again.") from None


def _replaced(old: bytes, args: Edit, path: bytes) -> bytes:
    count = old.count(args.old.encode())
    if count == 1 or (count and args.all):
        return old.replace(args.old.encode(), args.new.encode())
    name = paths.shown(path)
    if not count:
        raise ConflictError(
            "files.no_match", f"The old text occurs 0 times in {name}", "Read the file again."
        )
    raise ConflictError(
        "files.many_matches",
        f"The old text occurs {count} times in {name}",
        "Take more of its surroundings along, or set all.",
        data={"count": count},
    )


def _unkept(seen: Seen) -> Seen:
    """What was looked at without being kept, so that no manifest is named that the store does not hold."""
    return Seen(seen.state.model_copy(update={"manifest": ""}), seen.entries)
