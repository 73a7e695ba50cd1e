"""Choices: what more than one may have changed, an act for each path, that the person may take back."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Mapping

from anyio import to_thread

from takeback.context import Context
from takeback.store import Store, Transaction
from takeback_acts.files import accounts, grouping, manifests
from takeback_acts.files.blobs import Blobs, Intake
from takeback_acts.files.grouping import Back, Grouped
from takeback_acts.files.origins import Origins
from takeback_acts.files.paths import resource, shown
from takeback_acts.files.rooted import Found
from takeback_acts.files.states import told
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

    async def offer(self, window: Window, found: Mapping[bytes, Found], origins: Origins) -> None:
        """Records an act for each path, as far as it can be put back; raises what `undo.record` raises."""
        with self._blobs.intake(accounts.captured(window.origin)) as intake:
            grouped = await to_thread.run_sync(grouping.group, found, (), intake, origins)
            await self._keep(intake, grouped.manifests)
            await self._record_all(window, grouped)

    async def _keep(self, intake: Intake, lists: Collection[str]) -> None:
        def keep(tx: Transaction) -> None:
            intake.land(tx)
            manifests.note(tx, lists)

        if lists:
            await intake.durable()
            kept = self._store.submit(keep)
            intake.rides(kept)
            await kept.wait()

    async def _record_all(self, window: Window, grouped: Grouped) -> None:
        for item in grouped.items[:_MOST]:
            key = (item.path, *told(item.before, item.after))
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
