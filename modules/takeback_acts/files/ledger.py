"""Ledger: from what a window has seen to the act in the log that takes it back."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import Any

from anyio import to_thread

from takeback.context import Context
from takeback.errors import TakebackError
from takeback.store import Store, Transaction
from takeback_acts.files import accounts, ancestry, gitfiles, grouping, itemlist, manifests, refbacks
from takeback_acts.files.blobs import Blobs, Intake
from takeback_acts.files.capture.changes import RefMove
from takeback_acts.files.choices import Choices
from takeback_acts.files.grouping import Grouped
from takeback_acts.files.landmarks import Landmarks
from takeback_acts.files.models import Ended
from takeback_acts.files.origins import Origins
from takeback_acts.files.paths import beneath, resource, shown
from takeback_acts.files.rooted import Found, Seen
from takeback_acts.files.states import told
from takeback_acts.files.windows import Window, Windows

_TOOL = "files.end_command"
_LEFT_OUT = "left_out"
_TOLD = 50
_MOVED = "the folder was moved here, and stays; what comes back is made of what was captured of it"
_LISTED = 200


class Ledger:
    """Records what commands changed."""

    def __init__(
        self, store: Store, blobs: Blobs, windows: Windows, choices: Choices, landmarks: Landmarks
    ) -> None:
        self._store = store
        self._landmarks = landmarks
        self._choices = choices
        self._blobs = blobs
        self._windows = windows

    async def record(
        self,
        ctx: Context,
        window: Window,
        seen: Sequence[Seen],
        *,
        exit_code: int | None,
        interrupted: bool,
    ) -> Ended:
        """Records a window's act, or nothing when nothing changed; raises what `undo.record` raises."""
        with self._blobs.intake(accounts.captured(window.origin)) as intake:
            return await self._record(ctx, window, seen, intake, exit_code, interrupted)

    async def _record(
        self,
        ctx: Context,
        window: Window,
        seen: Sequence[Seen],
        intake: Intake,
        exit_code: int | None,
        interrupted: bool,
    ) -> Ended:
        found = {path: one for each in seen for path, one in each.paths.items()}
        sorting = await self._sort(window, found, again=any(each.again for each in seen))
        origins = Origins(found, window.birth)
        twins = {path: twin for each in seen for path, twin in each.twins.items()}
        grouped = await to_thread.run_sync(
            grouping.group, sorting.own, sorting.others, intake, origins, twins
        )
        grouped.lost += [
            (path, _MOVED) for each in seen if (path := each.moved_to) and not window.covers(path)
        ]
        moves = await to_thread.run_sync(refbacks.of, window.roots, [each.refs for each in seen])
        grouped.lost += moves.outside
        failed = [each.failed for each in seen if each.failed]
        ended = Ended(
            changed=sum(not one.stays for one in sorting.own.values()),
            left_out=sorted({shown(path) for each in seen for path in each.left_out})[:_LISTED],
            notes=[*_notes(seen), *(f"not captured: {why}" for why in failed)],
            coincident=[shown(path) for path in sorting.coincident][:_LISTED],
        )
        ended.notes += grouping.told(grouped.lost, _TOLD)
        if sorting.coincident:
            await self._choices.offer(window, {path: found[path] for path in sorting.coincident}, origins)
        if not ended.changed and not failed and not moves.outside:
            return ended
        row = self._row(window, grouped, ended, exit_code=exit_code, interrupted=interrupted)
        if "inverse_input" in row:
            row["inverse_input"]["refs"] = [move.model_dump() for move in moves.inside]
        row["input"]["refs"] = [_moved(move) for each in seen for move in each.refs][:_LISTED]
        ended.act = await self._write(ctx, window, row, grouped, intake)
        return ended

    async def _sort(self, window: Window, found: dict[bytes, Found], *, again: bool) -> _Sorting:
        """Tells what is the command's own from what others did, or may have done, at the same time."""
        noted = await self._windows.noted(window)
        others = {root for other in await self._windows.overlapping(window) for root in other.roots}
        # A root that both have is looked at for both at once, and so told apart, within one process.
        apart = others if again else others - set(window.roots)
        sorting = _Sorting()
        for path, one in found.items():
            by_tools = _by_tools(one, noted.get(path, []))
            if by_tools == "all" or (one.before.kind == "absent" and one.after.reason == _LEFT_OUT):
                sorting.others.append(path)
            elif await self._is_looked_at(path, one):
                continue
            elif by_tools == "some" or one.shared or any(beneath(path, root) for root in apart):
                sorting.others.append(path)
                sorting.coincident.append(path)
            else:
                sorting.own[path] = one
        return sorting

    async def _is_looked_at(self, path: bytes, one: Found) -> bool:
        """Whether it is an index of git that says nothing new, as after `git status`."""
        if not gitfiles.is_index(path) or (one.before.kind, one.after.kind) != ("file", "file"):
            return False
        names = [one.before.sha256, one.after.sha256]
        try:
            before, after = [await self._blobs.read(name) for name in names]
        except TakebackError:
            return False
        return gitfiles.same_index(before, after)

    def _row(
        self, window: Window, grouped: Grouped, ended: Ended, *, exit_code: int | None, interrupted: bool
    ) -> dict[str, Any]:
        words = shlex.join(window.command)
        many = "1 path" if ended.changed == 1 else f"{ended.changed} paths"
        tail = ", interrupted" if interrupted else ""
        why = [*ended.notes, *(f"coincident: {path:.600}" for path in ended.coincident[:_TOLD])]
        row: dict[str, Any] = {
            "tool": _TOOL,
            "input": {
                "command": words[:4000],
                "cwd": window.cwd,
                "exit_code": exit_code,
                "interrupted": interrupted,
                "coincident": ended.coincident,
                "left_out": ended.left_out,
            },
            "summary": f"Ran {words:.800}: {many} changed{tail}",
            "why": [line[:1000] for line in why][:100],
        }
        if grouped.items:
            row["inverse_tool"] = "files.restore"
            row["inverse_input"] = {
                "root": resource(_around(window, grouped)),
                "stays": [
                    {"resource": resource(path), "reason": reason} for path, reason in grouped.lost[:_TOLD]
                ],
            }
            row["touched"] = [
                {"resource": name, "before": before, "after": after}
                for item in grouped.items
                for name, before, after in item.touched
            ]
        else:
            row["final_reason"] = (ended.notes[-1] if ended.notes else "nothing is left to undo")[:200]
        return row

    async def _write(
        self, ctx: Context, window: Window, row: dict[str, Any], grouped: Grouped, intake: Intake
    ) -> str:
        lists, names = grouped.manifests, grouped.digests
        if len(grouped.items) > itemlist.MOST_IN_ROW:
            listed = await to_thread.run_sync(lambda: intake.data(itemlist.dump(grouped.items)))
            row["inverse_input"]["listed"] = listed
            lists, names = lists | {listed}, {listed}
        elif grouped.items:
            row["inverse_input"]["items"] = [item.dump() for item in grouped.items]
        row["blobs"] = sorted(names)
        note = await self._note(grouped)

        def keep(tx: Transaction) -> None:
            intake.land(tx)
            manifests.note(tx, lists)
            note(tx)

        # Not left to `undo.record`'s commit: a row would stand for bytes that could not be kept.
        await intake.durable()
        kept = self._store.submit(keep)
        intake.rides(kept)
        await kept.wait()
        self._windows.ending(window)
        try:
            recorded = await ctx.call("undo.record", row)
        except BaseException:
            await self._windows.reopen(window)
            raise
        return str(recorded.id)

    async def _note(self, grouped: Grouped) -> Callable[[Transaction], None]:
        """Writes down what leads to the paths, so that an undo can tell when their disk is away."""
        targets = [item.path for item in grouped.items]
        anew = [item.path for item in grouped.items if item.is_tree]
        return self._landmarks.note(await to_thread.run_sync(ancestry.above, targets), anew)


class _Sorting:
    """Paths of the command's own; of others; and of these the ones that may be anybody's."""

    def __init__(self) -> None:
        self.own: dict[bytes, Found] = {}
        self.others: list[bytes] = []
        self.coincident: list[bytes] = []


def _moved(move: RefMove) -> dict[str, str]:
    """Where a command moved a reference of git's."""
    return {"repository": shown(move.repository), "ref": move.ref, "old": move.old, "new": move.new}


def _by_tools(one: Found, acts: Sequence[tuple[str, str]]) -> str:
    """Whether takeback's own tools made `all` of a change, `some` of it, or nothing: empty."""
    before, after = _versions(one)
    # What was done just before the window's first look is no part of what it has seen.
    while acts and acts[0][0] != before:
        acts = acts[1:]
    if not acts:
        return ""
    unbroken = all(acts[at][1] == acts[at + 1][0] for at in range(len(acts) - 1))
    return "all" if unbroken and acts[-1][1] == after else "some"


def _versions(one: Found) -> tuple[str, str]:
    states = (one.before.own(), one.after.own()) if one.only_own else (one.before.state(), one.after.left())
    before, after = states
    if before is not None and after is not None:
        return told(before, after)
    return "unknown" if before is None else before.version, "unknown" if after is None else after.version


def _around(window: Window, grouped: Grouped) -> bytes:
    for root in window.roots:
        if all(beneath(item.path, root) for item in grouped.items):
            return root
    return b"/"


def _notes(seen: Sequence[Seen]) -> list[str]:
    return list(dict.fromkeys(note[:500] for each in seen for note in each.notes))[:_TOLD]
