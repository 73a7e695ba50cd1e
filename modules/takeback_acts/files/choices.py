"""Choices: what more than one may have changed, an act for each path, that the person may take back."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from anyio import to_thread

from takeback.context import Context
from takeback.store import Store
from takeback_acts.files import grouping
from takeback_acts.files.blobs import Blobs, insert
from takeback_acts.files.grouping import Back
from takeback_acts.files.paths import resource, shown
from takeback_acts.files.rooted import Found
from takeback_acts.files.windows import Window

_TOOL = "files.end_command"
_MOST = 50


class Choices:
    """Records coincident changes as nobody's, so that no rewind of a session or an agent takes them along."""

    def __init__(self, store: Store, blobs: Blobs, own: Context) -> None:
        self._store = store
        self._blobs = blobs
        self._own = own
        # Each of two commands sees the same change when it ends.
        self._offered: set[tuple[bytes, str, str]] = set()

    async def offer(self, window: Window, found: Mapping[bytes, Found]) -> None:
        """Records an act for each path, as far as it can be put back; raises what `undo.record` raises."""
        intake = self._blobs.intake()
        grouped = await to_thread.run_sync(grouping.group, found, (), intake)
        manifests = {state.manifest for item in grouped.items for state in (item.before, item.after)} - {""}
        small = intake.small
        if small:
            await self._store.transaction(lambda tx: insert(tx, small, manifests))
        for item in grouped.items[:_MOST]:
            key = (item.path, item.before.version, item.after.version)
            if key not in self._offered:
                self._offered.add(key)
                await self._record(window, item)

    async def _record(self, window: Window, item: Back) -> None:
        words = shlex.join(window.command)
        names = {state.sha256 for state in (item.before, item.after)}
        names |= {state.manifest for state in (item.before, item.after)}
        row = {
            "tool": _TOOL,
            "input": {"command": words[:4000], "cwd": window.cwd, "coincident": [shown(item.path)]},
            "summary": f"Changed {shown(item.path):.500}, while {words:.300} ran or by somebody else",
            "why": ["coincident: it can't be told who changed it"],
            "inverse_tool": "files.restore",
            "inverse_input": {"root": resource(item.path), "items": [item.dump()]},
            "touched": [
                {"resource": name, "before": before, "after": after} for name, before, after in item.touched
            ],
            "blobs": sorted(names - {""}),
        }
        await self._own.call("undo.record", row)
