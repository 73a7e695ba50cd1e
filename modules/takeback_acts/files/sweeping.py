"""Sweeping: forgetting bytes that no act names any more."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from time import time as now

from takeback.context import Context
from takeback.store import Store
from takeback_acts.files import manifests
from takeback_acts.files.blobs import Blobs
from takeback_acts.files.models import Swept


async def sweep(
    ctx: Context,
    store: Store,
    blobs: Blobs,
    spared: Callable[[], Awaitable[set[str]]],
    *,
    grace_seconds: float,
    share: float | None = None,
) -> Swept:
    """Removes what neither an act nor `spared` names, and nobody is about to, and is older than the grace.

    A dry run only counts. Segments of which at most `share` is needed are rewritten.
    """
    at = now()
    landed = (0, 0)

    async def live() -> set[str]:
        nonlocal landed
        # Before the log is asked: what passes from a window to an act meanwhile is in the one or the other.
        found = await spared()
        found |= set((await ctx.call("undo.blobs", {})).digests)
        found |= await manifests.listed(store, blobs, found)
        landed = await blobs.landing.forget(found, at - grace_seconds, dry_run=ctx.dry_run)
        return found

    packed = await blobs.packs.gc(live, at, grace_seconds, dry_run=ctx.dry_run, share=share)
    if not ctx.dry_run:
        await manifests.forget_gone(store, blobs)
    kept = packed.kept + await blobs.landing.count() - (landed[0] if ctx.dry_run else 0)
    return Swept(deleted=packed.deleted + landed[0], freed_bytes=packed.freed + landed[1], kept=kept)
