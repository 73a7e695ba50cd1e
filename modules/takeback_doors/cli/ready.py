"""Telling whoever started the daemon that it is ready, or why it is not."""

from __future__ import annotations

import os
from contextlib import suppress

from takeback.errors import TakebackError
from takeback_doors.cli.wire import encode


class Ready:
    """A descriptor that takes one line of JSON, once; without one nobody is told."""

    def __init__(self, descriptor: int | None) -> None:
        self._descriptor = descriptor

    def opened(self, socket: str, *, already: bool) -> None:
        """The doors answer; `already` says that they are those of a daemon that ran before."""
        self._tell({"ok": True, "pid": os.getpid(), "socket": socket, "already": already})

    def failed(self, error: TakebackError) -> None:
        """There will be no doors."""
        self._tell({"ok": False, "error": error.as_dict()})

    def _tell(self, shape: dict[str, object]) -> None:
        # Once closed, the number may be another file's.
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is None:
            return
        # Whoever wanted to know may have gone.
        with suppress(OSError), open(descriptor, "wb") as pipe:
            pipe.write(encode(shape))
