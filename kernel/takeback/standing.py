"""How modules stand to each other right now: who may start, who must leave, who is still to come."""

from __future__ import annotations

from collections.abc import Mapping

from takeback.lives import Life
from takeback.order import Order


class Standing:
    """Answers from the states of all lives; changes none of them."""

    def __init__(self, lives: Mapping[str, Life]) -> None:
        self.closing = False
        self.order = Order({})
        self._lives = lives

    def stands(self, name: str) -> bool:
        """Whether others may rely on the module."""
        life = self._lives.get(name)
        return life is not None and life.up and life.wanted and not self.closing

    def must_leave(self, life: Life) -> bool:
        """Whether the module may not run, or not any longer."""
        return self.closing or not life.wanted or bool(self.lacking(life))

    def lacking(self, life: Life) -> list[str]:
        """What the module needs and can't rely on."""
        return [name for name in self.order.needs[life.name] if not self.stands(name)]

    def waits_for(self, life: Life) -> str:
        """What the module needs and won't get as things are, as its `why`, or ""."""
        gone = [name for name in self.lacking(life) if not self.coming(name)]
        return f"needs {', '.join(gone)}" if gone else ""

    def hopeless(self, life: Life) -> str:
        """Why the module can never start, or ""."""
        return life.source.broken or self.order.cycles.get(life.name, "")

    def coming(self, name: str, known: dict[str, bool] | None = None) -> bool:
        """Whether the module is not up, but will be unless something fails."""
        known = {} if known is None else known
        if name not in known:
            known[name] = False
            life = self._lives.get(name)
            idle = life is None or not life.wanted or life.held or life.pausing
            if not (idle or self.closing or self.stands(name)):
                needs = self.order.needs[name]
                known[name] = all(self.stands(need) or self.coming(need, known) for need in needs)
        return known[name]

    def may_start(self, life: Life) -> bool:
        """Whether the module's turn has come."""
        if life.held or self.must_leave(life) or self.leaned_on(life):
            return False
        return not any(map(self.coming, self.order.after[life.name]))

    def leaned_on(self, life: Life) -> bool:
        """Whether others must stop before this one stops, or starts again."""
        if any(self._lives[name].live for name in self.order.dependents(life.name)):
            return True
        followers = [self._lives[name] for name in self.order.followers(life.name)]
        return any(other.live and self.must_leave(other) for other in followers)

    def settled(self, life: Life) -> bool:
        """Whether the module has come where it stays until something happens."""
        if not life.wanted:
            return life.state == "off" or life.abandoned
        if life.state == "waiting":
            return life.why == self.waits_for(life)
        return self.stands(life.name) or life.held or life.pausing
