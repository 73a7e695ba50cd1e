"""Past: what the log and the store still know of a path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from anyio import to_thread

from takeback.context import Context
from takeback.errors import NotFoundError, TakebackError, UsageError
from takeback_acts.files import beneath, failures, paths, roots, texts, trees
from takeback_acts.files.beneath import Home
from takeback_acts.files.comparing import Side, compared
from takeback_acts.files.models import Diff, Differences, History, Past, Pasts
from takeback_acts.files.reading import Digester
from takeback_acts.files.states import ABSENT_VERSION, sha256_of
from takeback_acts.files.supply import Supply


class Sides(NamedTuple):
    """What an act found and left at a path: of a resource of it, the entry or the entry by itself."""

    act: str
    resource: str
    before: str
    after: str


class Archive:
    """Answers what was at a path before."""

    def __init__(self, home: Home, supply: Callable[[], Supply], most: int) -> None:
        self._home = home
        self._supply = supply
        self._most = most

    async def history(self, ctx: Context, args: History) -> Pasts:
        """What was done to a path through takeback, newest first; to an agent its own acts."""
        path = roots.resolve(ctx.scope, args.path)
        uri = paths.resource(path)
        found = await ctx.call("undo.recorded", resource=uri, limit=args.limit, cursor=args.cursor)
        acts = [_past(act, uri) for act in found.acts]
        return Pasts(path=paths.shown(path), acts=acts, next=found.next)

    async def diff(self, ctx: Context, args: Diff) -> Differences:
        """What an act changed in a file, or what has changed in it since before the last act on it.

        Raises what `sides` raises, NotFoundError `files.not_kept`.
        """
        path = roots.resolve(ctx.scope, args.path)
        sides = await self.sides(ctx, path, args.act)
        if paths.is_own(sides.resource):
            return _of_own(path, sides)
        old = await self.content(path, sides.before)
        if args.act is None:
            new, after = await self.now(path)
        else:
            new, after = await self.content(path, sides.after), sides.after
        text, note = compared(Side(old, sides.before), Side(new, after), paths.shown(path), self._most)
        return Differences(
            path=paths.shown(path), act=sides.act, before=sides.before, after=after, text=text, note=note
        )

    async def sides(self, ctx: Context, path: bytes, act: str | None) -> Sides:
        """What an act, else the last one, found and left at a path.

        Raises NotFoundError `files.no_past`, UsageError `files.folder_act` where only a folder around it is
        known.
        """
        uri = paths.resource(path)
        asked = {"resource": uri, "limit": 1} | ({"id": act} if act is not None else {})
        found = (await ctx.call("undo.recorded", asked)).acts
        if not found:
            raise NotFoundError(
                "files.no_past",
                f"No act{'' if act is None else f' {act:.64}'} on {paths.shown(path)} is in the log",
                "files.history lists the acts on a path.",
            )
        for item in found[0].touched:
            if item.resource in (uri, paths.own(path)):
                return Sides(found[0].id, item.resource, item.before, item.after)
        raise UsageError(
            "files.folder_act",
            f"That act was on a folder around {paths.shown(path)} as a whole",
            "Preview its undo to see what would come back.",
        )

    async def content(self, path: bytes, version: str) -> bytes | None:
        """The bytes of a version; None for what is no file. Raises NotFoundError `files.not_kept`."""
        sha256 = sha256_of(version)
        if sha256 is None:
            return None
        supply = self._supply()
        try:
            return await to_thread.run_sync(supply.read, sha256)
        except TakebackError as error:
            if error.code != "files.blob_missing":
                raise
        data, now = await self.now(path)  # what an act left is perhaps still there
        if data is not None and sha256_of(now) == sha256:
            return data
        raise NotFoundError(
            "files.not_kept",
            f"What {paths.shown(path)} held then is not kept",
            "Bytes that an act replaced are kept as long as the act; what it left only where it is text.",
        )

    async def now(self, path: bytes) -> tuple[bytes | None, str]:
        """The bytes of a file now with their version; None for what is no file."""
        return await to_thread.run_sync(self._now, path)

    def _now(self, path: bytes) -> tuple[bytes | None, str]:
        with failures.reported(path), beneath.spot(path, self._home) as spot:
            if spot.look() is None:
                return None, ABSENT_VERSION
            seen = trees.observe(spot, Digester(), self._home)
            if seen.state.kind != "file":
                return None, seen.state.version
            data = texts.current(spot, seen, self._most)
        return data, seen.state.version


def _past(act: Any, uri: str) -> Past:
    names = (uri, f"{uri}/.")
    before, after = next(
        ((item.before, item.after) for item in act.touched if item.resource in names), ("", "")
    )
    return Past(
        act=act.id,
        at=act.at,
        actor=act.actor,
        summary=act.summary,
        state=act.state,
        before=before,
        after=after,
    )


def _of_own(path: bytes, sides: Sides) -> Differences:
    return Differences(
        path=paths.shown(path),
        act=sides.act,
        before=sides.before,
        after=sides.after,
        text="",
        note="only the mode of the folder, or the owner, changed",
    )
