"""Which modules there are: built in, installed by others, or given by hand. Installed is not enabled."""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from importlib.metadata import Distribution, EntryPoint, distributions

from pluggy import PluginManager, PluginValidationError

from takeback import hookspecs
from takeback.errors import TakebackError
from takeback.module import Module
from takeback.reasons import describe
from takeback.sources import Source, broken, importing, normal

__all__ = ["GROUP", "Found", "Problem", "Source", "find", "settle"]

GROUP = "takeback.modules"
RESERVED = frozenset({"kernel"})


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that was refused, or that the settings name in vain, and why."""

    name: str
    distribution: str
    reason: str


@dataclass(frozen=True, slots=True)
class Found:
    """What discovery answers: one source a name, sorted, and the problems besides."""

    sources: tuple[Source, ...]
    problems: tuple[Problem, ...] = ()


def find(enabled: Collection[str] = (), disabled: Collection[str] = ()) -> Found:
    """The installed modules, each with whether it is to be loaded; raises nothing.

    A built-in module loads unless `disabled` names it, an added one only if `enabled` does. A package that
    offers several modules by hook is imported only if `enabled` names its entry point as well.
    """
    problems: list[Problem] = []
    sources: list[Source] = []
    manager = PluginManager(hookspecs.PROJECT)
    manager.add_hookspecs(hookspecs)
    for entry, distribution in sorted(_entries(problems), key=lambda found: (found[0].name, found[1])):
        if entry.attr:
            sources.append(Source.path(entry.name, entry.value, distribution=distribution))
        elif entry.name in enabled and entry.name not in disabled:
            sources.extend(_offered(manager, entry, distribution))
        else:
            sources.append(_unopened(entry, distribution))
    found = settle(_marked(source, enabled, disabled) for source in sources)
    named = {source.name for source in found.sources} | {name for name, _ in manager.list_name_plugin()}
    vain = [
        Problem(name, "", f"The settings name module {name}, but no installed package offers it")
        for name in sorted({*enabled, *disabled} - named)
    ]
    return Found(found.sources, (*problems, *found.problems, *vain))


def settle(sources: Iterable[Source]) -> Found:
    """One source a name: a built-in one keeps its own name, and of two others with one name neither loads."""
    by_name: dict[str, list[Source]] = defaultdict(list)
    for source in sources:
        by_name[source.name].append(source)
    kept: list[Source] = []
    problems: list[Problem] = []
    for name, rivals in sorted(by_name.items()):
        winners = [source for source in rivals if source.builtin]
        if len(winners) == 1 or (name in RESERVED and not winners):
            owner = winners[0].origin if winners else "the kernel"
            kept.extend(winners)
            problems.extend(_refused(source, owner) for source in rivals if not source.builtin)
        else:
            kept.append(rivals[0] if len(rivals) == 1 else _disputed(rivals))
    return Found(tuple(kept), tuple(problems))


def _refused(source: Source, owner: str) -> Problem:
    reason = f"The name {source.name} belongs to {owner}, so {source.origin} may not have it"
    return Problem(source.name, source.distribution, reason)


def _disputed(rivals: list[Source]) -> Source:
    name = rivals[0].name
    both = " and ".join(sorted(source.origin for source in rivals))
    # Choosing one would let whoever is installed last, or sorts first, take over a name the person enabled.
    why = TakebackError("module.name", f"The name {name} is claimed by {both}", "Remove all of them but one.")
    return broken(name, both, why, enabled=any(source.enabled for source in rivals))


def _marked(source: Source, enabled: Collection[str], disabled: Collection[str]) -> Source:
    wanted = source.builtin or source.name in enabled
    return replace(source, enabled=wanted and source.name not in disabled)


def _entries(problems: list[Problem]) -> Iterator[tuple[EntryPoint, str]]:
    """Each entry point of our group with its distribution's name; a damaged package is a problem."""
    seen: set[str] = set()
    for distribution in distributions():
        try:
            entries = _ours(distribution)
            name = (distribution.name or "") if entries else ""
        except Exception as exc:  # boundary: one package's broken metadata must not hide the others
            where = str(getattr(distribution, "_path", "a package"))
            problems.append(Problem("", where, f"The metadata of {where} can't be read: {describe(exc)}"))
            continue
        # Python imports the first of two copies on its path, so only the first one's entries are true.
        if entries and normal(name) not in seen:
            seen.add(normal(name))
            yield from ((entry, name) for entry in entries)


def _ours(distribution: Distribution) -> list[EntryPoint]:
    text = distribution.read_text("entry_points.txt") or ""
    return list(distribution.entry_points.select(group=GROUP)) if GROUP in text else []


def _unopened(entry: EntryPoint, distribution: str) -> Source:
    def load() -> type[Module]:
        raise TakebackError(
            "module.package",
            f"{entry.name} is a package of modules that is not enabled",
            f"Name {entry.name} and its modules in [kernel] enabled, then start takeback again.",
        )

    return Source(entry.name, entry.value, load, distribution=distribution)


def _offered(manager: PluginManager, entry: EntryPoint, distribution: str) -> list[Source]:
    """The modules that one package's hook offers; when any part of that fails, the package as broken."""
    offers: list[type[Module] | str] = []
    try:
        with importing(f"{entry.name} ({entry.value})"):
            plugin = entry.load()
            _register(manager, plugin, entry.name)
            others = [other for other in manager.get_plugins() if other is not plugin]
            for answer in manager.subset_hook_caller("register_modules", others)(register=offers.append):
                if inspect.iscoroutine(answer):
                    answer.close()
                    raise TypeError("register_modules must be a plain function, not async")
        return [_offer(offer, distribution) for offer in offers]
    except TakebackError as exc:
        return [broken(entry.name, entry.value, exc, distribution=distribution)]


def _register(manager: PluginManager, plugin: object, name: str) -> None:
    try:
        manager.register(plugin, name=name)
        manager.check_pending()
    except PluginValidationError:
        manager.unregister(name=name)  # or its hooks would be called, and reported, for every plugin after it
        raise


def _offer(offer: object, distribution: str) -> Source:
    if isinstance(offer, str):
        return Source.path("", offer, distribution=distribution)
    if isinstance(offer, type) and issubclass(offer, Module):
        return Source.of(offer, builtin=False, distribution=distribution)
    raise TakebackError(
        "module.broken",
        f"{distribution} offers {type(offer).__name__} as a module",
        "register_modules takes Module classes, or 'package.module:Class'.",
    )
