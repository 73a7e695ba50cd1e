"""Gates: where a database's thread waits, its transaction ready, until the intent is in the log."""

from __future__ import annotations

import queue

from takeback.errors import TakebackError


class Gate:
    """Opened by the thread that wrote the log, or shut by the loop; passed once, by the worker's thread."""

    __slots__ = ("_said", "_shut")

    def __init__(self) -> None:
        self._said: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._shut = False

    def open(self) -> None:
        """The intent is durable: what was made ready may come true."""
        self._said.put(None)

    def shut(self) -> None:
        """The log would not have it, or nobody wants it any more; too late for who has passed."""
        self._shut = True
        self._said.put(None)

    def passing(self, seconds: float) -> None:
        """Wait for the word; raises TakebackError `rows.not_begun` when it is no, or does not come."""
        try:
            self._said.get(timeout=seconds)
        except queue.Empty:
            self._shut = True
        if self._shut:
            raise TakebackError(
                "rows.not_begun",
                "The log did not take the act, so it was rolled back",
                "Try again; `takeback doctor` says whether the log is well.",
                retryable=True,
            )
