"""Moving: one file to where its rule says, by the tools that everybody moves files with."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, date, datetime

from anyio import to_thread

from takeback import Context, Scope, TakebackError
from takeback_acts.watchers.arrivals import Mark
from takeback_acts.watchers.names import resource
from takeback_acts.watchers.rules import Rule, require_end

_ACTS = 50


class Mover:
    """Carries rules out; each move is an act whose `why` is the rule, in a session of the rule's own."""

    def __init__(self, ctx: Context, rules: Sequence[Rule]) -> None:
        self._ctx = ctx
        self._rules = rules

    async def take(self, rule: Rule, name: str, mark: Mark) -> bool:
        """Move a file; false when it is left alone, since an undo brought it back as it is.

        Raises RefusedError `watchers.target`, ConflictError `watchers.loop`, and what `files.move` raises.
        """
        path = os.path.join(rule.root, name)
        to = rule.leads_to(name, _day(mark))
        require_end(self._rules, to)
        # No more than the root is granted, so that files itself keeps the rule from leading out of it.
        ctx = self._ctx._replace(scope=Scope(roots=(rule.root,)), session=f"watchers:{rule.name}")
        if await _came_back(ctx, resource(path)):
            return False
        await _make_folders(ctx, rule, os.path.dirname(to))
        await ctx.call("files.move", {"path": resource(path), "to": resource(to)}, why_=rule.words)
        return True


def _day(mark: Mark) -> date:
    """The date that a person sees on the file, in the time zone of the machine."""
    try:
        return datetime.fromtimestamp(mark.mtime_ns // 1_000_000_000, tz=UTC).astimezone().date()
    except (OverflowError, ValueError, OSError):  # no calendar reaches that far
        return date.max if mark.mtime_ns > 0 else date.min


async def _came_back(ctx: Context, name: str) -> bool:
    """Whether an undo of ours brought this file here, and it is as it was then: the log alone knows."""
    listed = await ctx.call("undo.list", {"resource": name, "limit": _ACTS})
    back = {
        touched.before
        for act in listed.acts
        if act.state in ("undone", "undoing")
        for touched in act.touched
        if touched.resource == name
    }
    if not back:
        return False
    now = await ctx.call("files.versions", resources=[name])
    return now.versions[name] in back


async def _make_folders(ctx: Context, rule: Rule, folder: str) -> None:
    """Make what is missing on the way from the root to a folder, each by itself.

    With `parents` a root that has just gone, as of a disk that was taken out, would be made as well.
    """
    missing: list[str] = []
    while folder != rule.root and not await to_thread.run_sync(os.path.isdir, folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    for each in reversed(missing):
        try:
            await ctx.call("files.make_dir", {"path": resource(each)}, why_=rule.words)
        except TakebackError as error:
            if error.code != "files.exists":  # somebody was quicker
                raise
