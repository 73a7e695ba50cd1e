"""What a conversation and the things it touches ought to be like, reckoned without takeback."""

from __future__ import annotations

from dataclasses import dataclass, field

FOREIGN = -1


@dataclass
class Change:
    """One change of a key; by an act of the conversation, or FOREIGN, which a rewind never touches."""

    act: int
    before: str | None
    after: str | None


@dataclass
class Turn:
    """A message, its state, and the acts that were done for it and are not closed."""

    name: str
    text: str
    state: str = "done"
    acts: list[int] = field(default_factory=list)


@dataclass
class Verdict:
    """What a rewind will come to: the keys that are in its way, and those of which only looking can tell."""

    against: set[str] = field(default_factory=set)
    unsure: set[str] = field(default_factory=set)


class Shadow:
    """The timeline of every key, and the turns that are left."""

    def __init__(self) -> None:
        self.timeline: dict[str, list[Change]] = {}
        self.now: dict[str, str] = {}
        self.turns: list[Turn] = []
        self.live: set[int] = set()
        self.acts = 0

    def change(self, key: str, value: str | None, turn: Turn | None) -> None:
        """Note a change of a key, in a turn or by a foreign hand."""
        act = FOREIGN
        if turn is not None:
            act = self.acts = self.acts + 1
            self.live.add(act)
            turn.acts.append(act)
        self.timeline.setdefault(key, []).append(Change(act, self.now.get(key), value))
        self._set(key, value)

    def reached(self, index: int) -> set[int]:
        """The live acts that going back to a message takes: those of its turn and all that came after."""
        found = [act for turn in self.turns[index:] for act in turn.acts]
        return {act for act in self.live if found and act >= min(found)}

    def judge(self, taken: set[int]) -> Verdict:
        """What stands in the way of taking these acts back."""
        verdict = Verdict()
        for key, changes in self.timeline.items():
            mine = [place for place, change in enumerate(changes) if change.act in taken]
            if not mine or all(change.act in taken for change in changes[mine[0] :]):
                continue
            # Without the file or the note there is nothing to lose, and it may be as it was by chance.
            verdict.against.add(key)
            values = [change.before for change in changes[mine[0] :]] + [changes[-1].after]
            if None in values:
                verdict.unsure.add(key)
        return verdict

    def take_back(self, taken: set[int]) -> dict[str, set[str | None]]:
        """Take acts back, newest first, up to a foreign change; the values that each key may have then."""
        allowed: dict[str, set[str | None]] = {}
        for key, changes in self.timeline.items():
            if not any(change.act in taken for change in changes):
                continue
            allowed[key] = {self.now.get(key)}
            while changes and changes[-1].act in taken:
                gone = changes.pop()
                self.live.discard(gone.act)
                allowed[key] = {gone.before}
            if any(change.act in taken for change in changes):
                allowed[key] |= {change.before for change in changes if change.before is None}
        return allowed

    def settle(self, key: str, value: str | None) -> None:
        """Take for granted what a key turned out to be."""
        self._set(key, value)

    def close(self, taken: set[int]) -> None:
        """What is left of these acts counts as a foreign hand's from now on."""
        for changes in self.timeline.values():
            for change in changes:
                if change.act in taken:
                    change.act = FOREIGN
        self.live -= taken

    def edit(self, index: int, text: str) -> None:
        """End the conversation with a message that says something else."""
        name = self.turns[index].name
        self.turns[index:] = [Turn(name, text, "due")]

    def _set(self, key: str, value: str | None) -> None:
        if value is None:
            self.now.pop(key, None)
        else:
            self.now[key] = value
