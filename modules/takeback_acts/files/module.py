"""The files module: agents' and the person's own acts on files, each with what takes it back."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from anyio import sleep, to_thread
from anyio.abc import TaskGroup

from takeback import Check, Context, Host, Module, TakebackError, tool
from takeback_acts.files import (
    edit_models,
    landing,
    landmarks,
    looking,
    models,
    open_edits,
    paths,
    recovery,
    roots,
    searching,
    sweeping,
    windows,
)
from takeback_acts.files.acting import Actor
from takeback_acts.files.beneath import Home
from takeback_acts.files.blobs import Blobs
from takeback_acts.files.changing import Changer
from takeback_acts.files.choices import Choices
from takeback_acts.files.commands import Commands
from takeback_acts.files.edits import Edits
from takeback_acts.files.hands import Hands
from takeback_acts.files.interrupted import Interrupted
from takeback_acts.files.landmarks import Landmarks
from takeback_acts.files.laying import Layer
from takeback_acts.files.ledger import Ledger
from takeback_acts.files.locks import Locks
from takeback_acts.files.overlay import Overlay
from takeback_acts.files.packs.adopting import adopt
from takeback_acts.files.packs.store import BlobStore
from takeback_acts.files.past import Archive
from takeback_acts.files.restoring import Restorer
from takeback_acts.files.settings import FilesSettings
from takeback_acts.files.shelves import Shelves

_DAY = 86_400
_MINUTE = 60
# What a check reads of the kept bytes, about.
_LOOKED_AT = 64 << 20
_ANYBODY = ("person", "agents", "modules")


class FilesModule(Module):
    """Files, folders and links beneath the folders that the person granted.

    An act's pre-image and its intent are durable before its effect. No link is followed; takeback's own home
    is out of reach for everybody.
    """

    Settings = FilesSettings
    migrations = (
        landing.TABLES + recovery.TABLE,
        windows.TABLES,
        landmarks.TABLE,
        landing.OWNERS,
        open_edits.TABLE,
    )

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._settings: FilesSettings = host.settings

    @asynccontextmanager
    async def life(self, tasks: TaskGroup) -> AsyncIterator[None]:
        """Settle what a crash left on disk before anybody looks at it."""
        async with BlobStore(self.host.home.data / "packs", self._settings.packs) as packs:
            await to_thread.run_sync(adopt, packs.vault, self.host.home.data / "blobs", self.host.ctx.caller)
            self._blobs = Blobs(self.host.store, packs)
            await self._blobs.landing.open()
            async with self._acting(tasks):
                yield

    @asynccontextmanager
    async def _acting(self, tasks: TaskGroup) -> AsyncIterator[None]:
        home = self.host.home
        self._home = Home([home.config, home.data, home.state, home.runtime])
        opened = windows.Windows(self.host.store)
        self._landmarks = Landmarks(self.host.store)
        await self._landmarks.load()
        hands = Hands(self._home)
        actor = Actor(self.host.store, self._blobs, self._home, opened, self._landmarks, hands)
        locks = Locks()
        self._interrupted = Interrupted(self.host.store, self._home, locks, lambda: actor.supply({}))
        self._changer = Changer(actor, locks, self._interrupted, self._settings, _umask())
        self._restorer = Restorer(actor, locks, self._interrupted, self._settings)
        self._archive = Archive(self._home, lambda: actor.supply({}), self._settings.most_edit)
        self._layer = Layer(actor, locks, self._archive)
        if await self._interrupted.look_back():
            self.host.log.warning("an act that a crash interrupted could not be cleared up yet; see doctor")
        self._commands = self._commanding(opened)
        self._edits = Edits(self.host, actor, opened, self._settings)
        try:
            async with self._edits.life(), self._commands.life(tasks):
                tasks.start_soon(self._sweep_daily)
                tasks.start_soon(self._move_often)
                yield
        finally:
            hands.rest()

    def _commanding(self, opened: windows.Windows) -> Commands:
        folder = self.host.home.data / "capture"
        self._shelves = Shelves(folder, self._blobs.packs, self._home, self._settings.left_out)
        choices = Choices(self.host.store, self._blobs, self.host.ctx)
        ledger = Ledger(self.host.store, self._blobs, opened, choices, self._landmarks)
        return Commands(self.host, opened, self._shelves, ledger, self._home)

    async def _sweep_daily(self) -> None:
        while True:
            try:
                await self._sweep(self.host.ctx, self._settings.grace_hours)
            except TakebackError as error:
                self.host.log.error("What no act names could not be swept away: %s", error.code)
            await sleep(_DAY)

    async def _move_often(self) -> None:
        while True:
            try:
                await self._blobs.landing.move()
            except TakebackError as error:
                self.host.log.error("Kept bytes could not be moved to the packs: %s", error.code)
            await sleep(_MINUTE)

    async def _sweep(self, ctx: Context, hours: float, share: float | None = None) -> models.Swept:
        pruned = await self._shelves.forget_unused(dry_run=ctx.dry_run)
        store, grace = self.host.store, hours * 3600
        swept = await sweeping.sweep(ctx, store, self._blobs, self._live, grace_seconds=grace, share=share)
        freed = swept.freed_bytes + pruned.freed
        return swept.model_copy(update={"git_files": pruned.files, "freed_bytes": freed})

    async def _live(self) -> set[str]:
        # Edits first: what passes from one to an act meanwhile is in the one or the other.
        return await self._edits.live() | await self._shelves.live()

    @tool(effect="read", reach=_ANYBODY)
    async def read(self, ctx: Context, args: models.Read) -> models.Content:
        """Read a file: text as `content`, other bytes as `content_base64`, with its size, mode and version.

        Long files come in parts: go on at `next`. Links are not followed.
        """
        path = roots.resolve(ctx.scope, args.path)
        return await to_thread.run_sync(looking.read, path, args, self._settings.most_read, self._home)

    @tool(effect="read", reach=_ANYBODY, name="list")
    async def list_folder(self, ctx: Context, args: models.List) -> models.Listing:
        """List a folder by name, a page at a time; pass `next` as `cursor` for the page after."""
        path = roots.resolve(ctx.scope, args.path)
        return await to_thread.run_sync(looking.list_folder, path, args, self._home)

    @tool(effect="read", reach=_ANYBODY)
    async def search(self, ctx: Context, args: models.Search) -> models.Matches:
        """Search a folder for files by name, and for lines that hold a text. Links are not followed."""
        path = roots.resolve(ctx.scope, args.path)
        return await to_thread.run_sync(searching.search, path, args, self._home)

    @tool(effect="read", reach=_ANYBODY)
    async def history(self, ctx: Context, args: models.History) -> models.Pasts:
        """List what was done to a file or folder through takeback, newest first."""
        return await self._archive.history(ctx, args)

    @tool(effect="read", reach=_ANYBODY)
    async def diff(self, ctx: Context, args: models.Diff) -> models.Differences:
        """Show what an act changed in a file; without one, what has changed since before the last act."""
        return await self._archive.diff(ctx, args)

    @tool(effect="write", reach=("person", "agents"), previews=True)
    async def lay_out(self, ctx: Context, args: models.LayOut) -> models.Laid:
        """Put the versions that a conflict is between beside the file: as the act left it, as it is now, and
        as it would go back to."""
        return await self._layer.lay_out(ctx, args)

    @tool(effect="write", reach=_ANYBODY, previews=True, idempotent=True, destructive=True)
    async def write(self, ctx: Context, args: models.Write) -> models.Done:
        """Write a file's whole content, making the file when there is none; its folder must be there.

        Give text as `content` or bytes as `content_base64`. Mode and owner of a file that is there stay.
        """
        return await self._changer.write(ctx, args)

    @tool(effect="write", reach=_ANYBODY, previews=True, destructive=True)
    async def edit(self, ctx: Context, args: models.Edit) -> models.Done:
        """Replace text in a file: `old` must occur exactly once, or set `all` to replace every occurrence."""
        return await self._changer.edit(ctx, args)

    @tool(effect="write", reach=_ANYBODY, previews=True, destructive=True)
    async def move(self, ctx: Context, args: models.Move) -> models.Done:
        """Move or rename a file, a link or a folder; what is at `to` is replaced only with `overwrite`."""
        return await self._changer.move(ctx, args)

    @tool(effect="write", reach=_ANYBODY, previews=True, destructive=True)
    async def delete(self, ctx: Context, args: models.Delete) -> models.Done:
        """Delete a file, a link or a folder; a folder that holds anything needs `recursive`."""
        return await self._changer.delete(ctx, args)

    @tool(effect="write", reach=_ANYBODY, previews=True)
    async def make_dir(self, ctx: Context, args: models.MakeDir) -> models.Done:
        """Make a folder; with `parents` also the missing folders on the way to it."""
        return await self._changer.make_dir(ctx, args)

    @tool(effect="write", reach=("modules",), previews=True, destructive=True)
    async def restore(self, ctx: Context, args: models.Restore) -> models.Restored:
        """Put paths back as an act found them, all or none; the inverse of every act on files."""
        return await self._restorer.restore(ctx, args)

    @tool(effect="write", reach=("person", "agents"))
    async def begin_command(self, ctx: Context, args: models.BeginCommand) -> models.Begun:
        """Open a window on what a command is about to change in some folders; then run it."""
        return await self._commands.begin(ctx, args)

    @tool(effect="write", reach=("person", "agents"), idempotent=True)
    async def end_command(self, ctx: Context, args: models.EndCommand) -> models.Ended:
        """Close a command's window, and record what changed in it as one act that can be taken back."""
        return await self._commands.end(ctx, args)

    @tool(effect="write", reach=("modules",), idempotent=True)
    async def begin_edit(self, ctx: Context, args: edit_models.BeginEdit) -> edit_models.BegunEdit:
        """Keep what lies at some paths, which a tool that is not takeback's own is about to change."""
        return await self._edits.begin(ctx, args)

    @tool(effect="write", reach=("modules",))
    async def end_edit(self, ctx: Context, args: edit_models.EndEdit) -> edit_models.EndedEdit:
        """Record what has changed at an edit's paths since it began, as one act that can be taken back."""
        return await self._edits.end(ctx, args)

    @tool(effect="read", reach=("modules",))
    async def versions(self, ctx: Context, args: models.Resources) -> models.Versions:
        """Tell the version that each resource has now, or would have in a rehearsal."""
        overlay = Overlay.of(ctx.rehearsal)
        await self._interrupted.require_none(paths.parse(uri)[0] for uri in args.resources)
        look = partial(looking.versions, args.resources, ctx.scope, self._home, overlay, self._landmarks)
        return models.Versions(versions=await to_thread.run_sync(look))

    @tool(effect="write", reach=("person",), previews=True)
    async def gc(self, ctx: Context, args: models.Sweep) -> models.Swept:
        """Forget kept bytes that no act in the log names any more; a dry run only counts them."""
        hours = self._settings.grace_hours if args.grace_hours is None else args.grace_hours
        return await self._sweep(ctx, hours, share=1.0)

    async def checks(self) -> list[Check]:
        """Whether a crash left anything to be cleared up, and whether kept bytes are what they were."""
        return [await self._check_interrupted(), await self._check_kept()]

    async def _check_kept(self) -> Check:
        found = await self._blobs.packs.check(_LOOKED_AT)
        bad = len(found.damaged) + len(found.missing) + await self._blobs.landing.damaged()
        kept = self._blobs.packs.stats()
        detail = f"{bad} blobs are damaged or gone" if bad else f"{kept.bytes} bytes kept, as far as was read"
        hint = "Acts that need them can't be taken back. Check the disk; a backup may hold them whole."
        return Check("kept bytes", not bad, detail, hint if bad else "")

    async def _check_interrupted(self) -> Check:
        waiting = await recovery.left(self.host.store)
        detail = f"{len(waiting)} interrupted acts wait" if waiting else "nothing waits from a crash"
        hint = "Make their folders reachable and start takeback again." if waiting else ""
        return Check("interrupted file acts", not waiting, detail, hint)


def _umask() -> int:
    """The process's umask; there is no way to ask without setting it for a moment."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
