"""The registry: which tools run, and who reaches them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from pydantic import BaseModel

from takeback.callers import Caller
from takeback.gate import Gate
from takeback.reach import Decision, Rules, decide
from takeback.tools import ToolSpec

_MOST_VERDICTS = 1024


class Entry:
    """A registered tool with everything that can be worked out beforehand."""

    __slots__ = ("gate", "label", "output", "run", "rehearses", "spec", "validate", "verdicts", "writes")

    def __init__(self, spec: ToolSpec, run: Callable[..., Awaitable[BaseModel]], gate: Gate) -> None:
        self.spec = spec
        self.run = run
        self.gate = gate
        self.label = f"module:{spec.module}"
        self.output = spec.output
        self.validate = spec.input.__pydantic_validator__.validate_python
        self.writes = spec.effect == "write" and not spec.past
        self.rehearses = spec.previews or spec.effect == "read"
        self.verdicts: dict[tuple[str, ...], Decision] = {}


class Registry:
    """The tools of all modules by name, under the rules in force.

    `generation` grows whenever what somebody can reach may have changed.
    """

    def __init__(self, rules: Rules | None = None) -> None:
        self.generation = 0
        self._rules = rules or Rules()
        self._entries: dict[str, Entry] = {}
        self._watchers: list[Callable[[], object]] = []
        # Why a module that exists doesn't run, or None; the kernel knows.
        self.why_off: Callable[[str], str | None] = lambda module: None

    @property
    def rules(self) -> Rules:
        """The rules in force."""
        return self._rules

    def use_rules(self, rules: Rules) -> None:
        """Put other rules in force, from the next call on."""
        self._rules = rules
        for entry in self._entries.values():
            entry.verdicts.clear()
        self.touch()

    def touch(self) -> None:
        """Say that what somebody can reach may have changed."""
        self.generation += 1
        for watcher in tuple(self._watchers):
            watcher()

    def on_change(self, watcher: Callable[[], object]) -> Callable[[], None]:
        """Call `watcher` whenever what somebody can reach may have changed; answers how to stop it."""
        self._watchers.append(watcher)
        return lambda: self._watchers.remove(watcher)

    def offer(self, module: object, specs: tuple[ToolSpec, ...], gate: Gate) -> None:
        """Register a module's tools; calls pass while its gate is open."""
        for spec in specs:
            self._entries[spec.name] = Entry(spec, getattr(module, spec.method), gate)
        self.touch()

    def withdraw(self, module: str) -> None:
        """Forget a module's tools."""
        for name in [n for n, entry in self._entries.items() if entry.spec.module == module]:
            del self._entries[name]
        self.touch()

    def get(self, name: str) -> ToolSpec | None:
        """A running tool by name, whatever its reach; None where there is none."""
        entry = self._entries.get(name)
        return entry.spec if entry is not None and entry.gate.open else None

    def specs(self) -> list[ToolSpec]:
        """Every running tool, sorted by name."""
        return [entry.spec for _, entry in sorted(self._entries.items()) if entry.gate.open]

    def reachable(self, label: str) -> list[ToolSpec]:
        """The running tools that a label reaches by itself, sorted by name."""
        caller = Caller.parse(label)
        return [spec for spec in self.specs() if decide(caller, (), spec, self._rules).allowed]

    def explain(self, label: str, name: str) -> Decision:
        """The decision on a call, with its reason and rule; raises `caller.malformed`."""
        return decide(Caller.parse(label), (), self.get(name), self._rules)

    def _judge(self, entry: Entry, chain: tuple[str, ...]) -> Decision:
        if len(entry.verdicts) >= _MOST_VERDICTS:
            entry.verdicts.clear()
        decision = decide(Caller.parse(chain[-1]), chain[:-1], entry.spec, self._rules)
        entry.verdicts[chain] = decision
        return decision
