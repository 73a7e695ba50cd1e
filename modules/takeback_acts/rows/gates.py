"""Gates: where a database's thread waits, its transaction ready, until the intent is in the log."""

from __future__ import annotations

import threading

from takeback.errors import TakebackError


class Gate:
    """Opened or shut once, by the loop; passed once, by the worker's thread."""

    def __init__(self) -> None:
        self._told = threading.Event()
        self._open = False

    def open(self) -> None:
        """The intent is durable: what was made ready may come true."""
        self._open = True
        self._told.set()

    def shut(self) -> None:
        """The log would not have it, or nobody wants it any more."""
        self._told.set()

    def passing(self, seconds: float) -> None:
        """Wait for the word; raises TakebackError `rows.not_begun` when it is no, or does not come."""
        self._told.wait(seconds)
        if not self._open:
            raise TakebackError(
                "rows.not_begun",
                "The log did not take the act, so it was rolled back",
                "Try again; `takeback doctor` says whether the log is well.",
                retryable=True,
            )
