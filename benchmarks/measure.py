"""Measuring: variants of one thing take turns in rounds, and their medians are compared as a ratio."""

from __future__ import annotations

import statistics
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

Sample = Callable[[], Awaitable[float]]


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the report: seconds per operation of ours and of the floor or peer, and the limit.

    `limit` bounds ours / other from above, or with `at_least` from below (then rates are compared).
    """

    what: str
    ours: float
    other: float
    against: str
    limit: float
    at_least: bool = False

    @property
    def ratio(self) -> float:
        """Ours to the other: time to time, or rate to rate."""
        return self.other / self.ours if self.at_least else self.ours / self.other

    @property
    def kept(self) -> bool:
        """Whether the limit holds."""
        return self.ratio >= self.limit if self.at_least else self.ratio <= self.limit

    def line(self) -> str:
        """The figure as one line of text."""
        sign = ">=" if self.at_least else "<="
        verdict = "ok" if self.kept else "MISSED"
        ours, other = self.ours * 1e6, self.other * 1e6
        return (
            f"{verdict:6} {self.ratio:8.2f}x ({sign} {self.limit:g})  {self.what}:"
            f" {ours:,.1f} us; {self.against} {other:,.1f} us"
        )


async def compare(samples: Mapping[str, Sample], rounds: int = 7) -> dict[str, float]:
    """The median of each sample's seconds, taken in turns so that a slow moment hits all alike."""
    taken: dict[str, list[float]] = {name: [] for name in samples}
    for number in range(rounds):
        names = list(samples)
        for name in names[number % len(names) :] + names[: number % len(names)]:
            taken[name].append(await samples[name]())
    return {name: statistics.median(values) for name, values in taken.items()}


async def per_call(call: Callable[[], Awaitable[object]], times: int) -> float:
    """Seconds per call of so many calls one after another."""
    started = time.perf_counter()
    for _ in range(times):
        await call()
    return (time.perf_counter() - started) / times
