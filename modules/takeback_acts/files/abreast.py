"""Abreast: the same done to many things by a few threads, where most of it is the system's own work."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")

_THREADS = 4
# Fewer are done before the threads are there.
_WORTH = 64


def abreast(work: Callable[[T], R], things: Sequence[T]) -> list[R]:
    """What `work` answers for each thing, in order.

    When it fails for one no more are begun, and the failure is raised once all that were begun have ended.
    """
    if len(things) < _WORTH:
        return [work(thing) for thing in things]
    failed = Event()

    def lot(start: int) -> list[R]:
        done = []
        try:
            for thing in things[start : start + share]:
                if failed.is_set():
                    break
                done.append(work(thing))
        except BaseException:
            failed.set()
            raise
        return done

    share = -(-len(things) // _THREADS)
    with ThreadPoolExecutor(_THREADS, "files-abreast") as pool:
        lots = [pool.submit(lot, start) for start in range(0, len(things), share)]
    return [each for done in lots for each in done.result()]
