"""The watchers module: it acts on its own, by the person's rules, and is taken back like anybody else."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, ClassVar

from anyio.abc import TaskGroup

from takeback import Check, Host, Module
from takeback_acts.watchers import rules
from takeback_acts.watchers.settings import WatchersSettings

if TYPE_CHECKING:
    from takeback_acts.watchers.watch import Watch
    from takeback_acts.watchers.watched import Watched


class WatchersModule(Module):
    """Moves and renames files that appear in folders.

    What it does goes through the tools of files, so that its acts are kept, logged and undone like an
    agent's. A rule that can't be followed is off and says why; the others go on.
    """

    Settings = WatchersSettings
    clock: ClassVar[Callable[[], float]] = time.monotonic

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self._settings: WatchersSettings = host.settings
        self._rules, self._wrong = rules.read(self._settings.rules, host.home)
        self._roots: list[Watched] = []
        self._watch: Watch | None = None

    @asynccontextmanager
    async def life(self, tasks: TaskGroup) -> AsyncIterator[None]:
        """Watch, if there is a rule to follow; what appears after the start is noticed."""
        for name, error in self._wrong.items():
            self.host.log.warning("Rule %s is off (%s): %s", name, error.code, error.message)
        if self._rules:
            self._watch = self._watching()
            await tasks.start(self._watch.run)
        yield

    async def checks(self) -> list[Check]:
        """Each rule, and whether it can be followed."""
        wrong = [
            Check(f"watcher {name}", False, error.message, error.hint) for name, error in self._wrong.items()
        ]
        deaf = self._watch.deaf if self._watch is not None else ""
        if deaf:
            detail = f"The system does not tell of changes: {deaf}"
            hint = "On Linux, raise fs.inotify.max_user_watches and fs.inotify.max_user_instances."
            wrong.append(Check("watchers", False, detail, hint))
        return [*wrong, *(check for root in self._roots for check in root.checks())]

    def _watching(self) -> Watch:
        # Not at the top: whoever has no rules does not pay for what watches.
        from takeback_acts.watchers.mover import Mover
        from takeback_acts.watchers.watch import Watch
        from takeback_acts.watchers.watched import Watched

        log, settings = self.host.log, self._settings
        paths = dict.fromkeys(rule.root for rule in self._rules)
        self._roots = [
            Watched(path, [rule for rule in self._rules if rule.root == path], settings.settle_seconds, log)
            for path in paths
        ]
        mover = Mover(self.host.ctx, self._rules)
        return Watch(self._roots, mover, log, every=settings.look_seconds, clock=type(self).clock)
