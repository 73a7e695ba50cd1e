"""The gate: what an agent's hook runs, as `python -I -S gate.py AGENT SOCKET SPOOL [HOME]`.

It hands the event on its standard input to the daemon and waits until that has seen to it. Whatever goes
wrong, it says nothing and ends well: an agent must never stumble over its hook. It is a script by itself and
imports nothing that would have to be looked for, as it is started for each call of a tool.
"""

import _signal  # type: ignore[import-not-found]  # `signal` takes as long to import as all else
import posix
import sys
from _socket import AF_UNIX, SHUT_WR, SOCK_STREAM, socket

# Past this the agent goes on, whatever the daemon is at.
_SECONDS = 20.0
_LARGEST = 32 << 20
_PORTION = 1 << 20


def _read() -> bytes:
    """The whole event, so that nobody who writes it gets stuck; one that is too large counts as empty."""
    parts, size = [], 0
    while part := posix.read(0, _PORTION):
        size += len(part)
        if size <= _LARGEST:
            parts.append(part)
    return b"".join(parts) if size <= _LARGEST else b""


def _hand_over(agent: str, path: str, event: bytes) -> bool:
    """Give the event to the daemon; False where none listens."""
    link = socket(AF_UNIX, SOCK_STREAM)
    try:
        link.connect(path)
        link.sendall(agent.encode() + b"\n" + event)
        link.shutdown(SHUT_WR)
        return link.recv(1) != b""
    except OSError:
        return False


def _main() -> None:
    agent, path, spool, *home = sys.argv[1:]
    event = _read()
    if not _hand_over(agent, path, event):
        # Everything that this needs is looked for only now.
        import runpy

        spare = runpy.run_path(__file__.removesuffix("gate.py") + "spare.py")
        spare["keep"](agent, path, spool, home[0] if home else "", event, _hand_over)


try:
    _signal.signal(_signal.SIGALRM, lambda number, frame: posix._exit(0))
    _signal.setitimer(_signal.ITIMER_REAL, _SECONDS)
    _main()
except BaseException:  # noqa: S110 - there is nobody to tell; what is missing shows in the log
    pass
posix._exit(0)
