"""The daemon's process: a kernel with every door open, until a signal ends it."""

from __future__ import annotations

import fcntl
import gc
import os
import resource
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from importlib.util import find_spec

import anyio
from anyio.to_thread import run_sync

from takeback.errors import TakebackError
from takeback.home import Home, unusable
from takeback.kernel import Kernel
from takeback.lock import HomeLock
from takeback.settings import load_settings
from takeback_doors.cli.client import try_connect
from takeback_doors.cli.module import CliModule
from takeback_doors.cli.process import wait_for_exit

# How long an owner of the home that is about to end may take; one that stays is reported.
_PATIENCE = 5.0
_ENDINGS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def run(home: Home, ready: Callable[[bool, str], None]) -> None:
    """Serve a home until SIGTERM, SIGINT or SIGHUP, or until somebody deletes or replaces it.

    `ready(ours, address)` is told once when the doors answer, with False when they are another daemon's:
    then there is nothing to serve and this returns. The address is where agents come in, empty where they
    can't. Raises what kept the kernel from starting.
    """
    home.create()
    with _one_at_a_time(home) as let_others:
        if other := try_connect(home.socket):
            other.close()
            ready(False, "")
            return

        def opened(address: str) -> None:
            let_others()
            ready(True, address)

        _allow_many_files()
        anyio.run(_serve, home, opened, backend_options={"use_uvloop": _has_uvloop()})
    _clear_away(home)


def _clear_away(home: Home) -> None:
    """Remove the folder of the sockets where it is empty: a short one lies outside of the home."""
    # Whoever starts next makes the folder again once the home is theirs, so nobody has it now.
    with suppress(OSError, TakebackError), HomeLock.acquire(home):
        home.runtime.rmdir()


@contextmanager
def _one_at_a_time(home: Home) -> Iterator[Callable[[], None]]:
    """Hold a lock while starting: whoever comes second waits, and finds the first one's doors open."""
    path = home.state / "start.lock"
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise unusable(path, error) from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield lambda: fcntl.flock(handle, fcntl.LOCK_UN)
    finally:
        os.close(handle)


async def _serve(home: Home, opened: Callable[[str], None]) -> None:
    CliModule.homeless = ended = anyio.Event()
    with anyio.open_signal_receiver(*_ENDINGS) as signals:
        async with AsyncExitStack() as stack:
            kernel = await _enter(home, stack)
            await _require_door(kernel, home)
            address = await _address(kernel)
            # What is loaded stays; looking through it for garbage would hold calls up, 20 ms each time.
            gc.freeze()
            opened(address)
            await _end(signals, ended)


async def _end(signals: AsyncIterator[signal.Signals], ended: anyio.Event) -> None:
    async def hear() -> None:
        await anext(signals)
        ended.set()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hear)
        await ended.wait()
        tasks.cancel_scope.cancel()


async def _enter(home: Home, stack: AsyncExitStack) -> Kernel:
    settings = load_settings(home, os.environ)
    try:
        return await stack.enter_async_context(Kernel(home, settings=settings))
    except TakebackError as error:
        owner = error.data.get("pid")
        if error.code != "home.locked" or not isinstance(owner, int):
            raise
        # The last daemon's doors close before its home is given back; a client may come in between.
        if not await run_sync(wait_for_exit, owner, _PATIENCE):
            raise
    return await stack.enter_async_context(Kernel(home, settings=settings))


async def _require_door(kernel: Kernel, home: Home) -> None:
    if found := try_connect(home.socket):
        found.close()
        return
    modules = await kernel.enter("cli:person").call("kernel.modules")
    why = next((module.why for module in modules.modules if module.name == "cli"), "") or "it is not there"
    raise TakebackError(
        "daemon.no_door", f"The command line's door did not open: {why}", "Run `takeback doctor`."
    )


async def _address(kernel: Kernel) -> str:
    if kernel.tools.get("mcp.status") is None:
        return ""
    status = await kernel.enter("cli:person").call("mcp.status")
    return str(status.url)


def _allow_many_files() -> None:
    """Open as many files as the system lets this process: each folder of an undo stays open until its end."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    with suppress(OSError, ValueError):  # macOS names a limit here that it then refuses
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def _has_uvloop() -> bool:
    return find_spec("uvloop") is not None
