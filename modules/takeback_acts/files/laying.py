"""Laying out: the versions that a conflict is between, as files beside the one in conflict."""

from __future__ import annotations

from takeback.context import Context
from takeback.errors import ConflictError, NotFoundError
from takeback_acts.files import accounts, failures, paths, roots
from takeback_acts.files.acting import Actor, Plan
from takeback_acts.files.beneath import Folders
from takeback_acts.files.locks import Locks
from takeback_acts.files.models import Laid, LayOut
from takeback_acts.files.past import Archive
from takeback_acts.files.reading import digest
from takeback_acts.files.states import State
from takeback_acts.files.steps import Item
from takeback_acts.files.trees import NOTHING, Seen


class Layer:
    """Puts `NAME.takeback-base` (what the act left), `-ours` (now) and `-theirs` (to go back to)."""

    def __init__(self, actor: Actor, locks: Locks, archive: Archive) -> None:
        self._actor = actor
        self._locks = locks
        self._archive = archive

    async def lay_out(self, ctx: Context, args: LayOut) -> Laid:
        """Writes them as one act, which can be taken back; a version that is no file, or not kept, is told.

        Raises ConflictError `files.exists`, and what `Archive.sides` raises.
        """
        path = roots.target(ctx.scope, args.path)
        contents, notes = await self._contents(ctx, path, args.act)
        names = {path + b".takeback-" + end.encode(): data for end, data in contents.items()}
        laid = Laid(paths=[paths.shown(name) for name in names], notes=notes)
        async with self._locks.hold(list(names)):
            intake = self._actor.intake(accounts.acting(ctx.origin))
            with failures.reported(path), Folders(self._actor.home) as places, intake:
                items = [_item(places, name, data) for name, data in names.items()]
                if items and not ctx.dry_run:
                    plan = Plan(
                        "files.lay_out",
                        {"path": paths.shown(path), "act": args.act},
                        f"Laid out the versions of {paths.shown(path):.800}",
                        items,
                        roots.around(ctx.scope, list(names)),
                        {digest(data): data for data in names.values()},
                    )
                    carried = await self._actor.carry_out(ctx, plan, intake, places)
                    laid.act = carried.act
        return laid

    async def _contents(self, ctx: Context, path: bytes, act: str) -> tuple[dict[str, bytes], list[str]]:
        sides = await self._archive.sides(ctx, path, act)
        now, _ = await self._archive.now(path)
        found, notes = {} if now is None else {"ours": now}, []
        for end, version in (("base", sides.after), ("theirs", sides.before)):
            try:
                data = await self._archive.content(path, version)
            except NotFoundError:
                notes.append(f"{end} is not kept")
            else:
                if data is None:
                    notes.append(f"{end} is no file: {version.partition(':')[0]}")
                else:
                    found[end] = data
        return dict(sorted(found.items())), notes


def _item(places: Folders, name: bytes, data: bytes) -> Item:
    spot = places.spot(name)
    if spot.look() is not None:
        raise ConflictError(
            "files.exists", f"{paths.shown(name)} is there already", "Move it away, or take its act back."
        )
    state = State(kind="file", mode=0o600, size=len(data), sha256=digest(data))
    return Item(spot, NOTHING, Seen(state))
