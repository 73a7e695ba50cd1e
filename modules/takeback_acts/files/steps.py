"""Steps: the renames that bring paths from what they are to what is wanted, and what is staged for them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from takeback_acts.files import staging
from takeback_acts.files.beneath import Spot
from takeback_acts.files.states import State
from takeback_acts.files.trees import NOTHING, Seen


@dataclass(frozen=True, slots=True)
class Item:
    """A path on its way from `now`, as captured, to `want`; `source` is the path that it is moved from.

    With `own` it is the entry by itself: its owner, and of a folder the mode.
    """

    spot: Spot
    now: Seen
    want: Seen
    source: Spot | None = None
    own: bool = False

    @property
    def is_tree(self) -> bool:
        """Whether it is, or will be, a folder with all that it holds."""
        return not self.own and "dir" in (self.now.state.kind, self.want.state.kind)


@dataclass(frozen=True, slots=True)
class Step:
    """One rename. What lies at `check` afterwards must be `expect`. `swap` exchanges both names."""

    source: Spot
    target: Spot
    swap: bool = False
    check: Spot | None = None
    expect: State | None = None


class Drawn(NamedTuple):
    """What is staged at temporary names, the steps in their order, and what they leave at such names."""

    staged: list[tuple[Spot, Seen]]
    steps: list[Step]
    leftovers: list[tuple[Spot, Seen]]


def drawn_up(items: Sequence[Item]) -> Drawn:
    """The steps of these items: each path for itself first, then those that are moved."""
    drawn = Drawn([], [], [])
    moved_from = {item.source.path for item in items if item.source is not None}
    for item in items:
        if item.source is None and item.spot.path not in moved_from:
            _put(drawn, item)
    by_path = {item.spot.path: item for item in items}
    for item in items:
        if item.source is not None:
            _move(drawn, by_path[item.source.path], item)
    return drawn


def _put(drawn: Drawn, item: Item) -> None:
    """One path for itself: staged and swapped in, or moved out of the way."""
    now, want = item.now.state, item.want.state
    if now.same(want) and now.kind == "absent":
        return
    temp = staging.temporary(item.spot)
    if want.kind != "absent":
        drawn.staged.append((temp, item.want))
    if now.kind == "absent":
        drawn.steps.append(Step(temp, item.spot))
        return
    drawn.leftovers.append((temp, item.now))
    if want.kind == "absent":
        drawn.steps.append(Step(item.spot, temp, check=temp, expect=now))
    else:
        drawn.steps.append(Step(temp, item.spot, swap=True, check=temp, expect=now))


def _move(drawn: Drawn, source: Item, target: Item) -> None:
    """A path moved to another: what is there steps aside first, what the source gets comes last."""
    if target.now.state.kind != "absent":
        _put(drawn, Item(target.spot, target.now, NOTHING))
    drawn.steps.append(Step(source.spot, target.spot, check=target.spot, expect=source.now.state))
    if source.want.state.kind != "absent":
        _put(drawn, Item(source.spot, NOTHING, source.want))
