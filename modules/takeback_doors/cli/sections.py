"""The settings, section by section, as the modules that read them would take them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from takeback.discovery import Found, find
from takeback.errors import TakebackError
from takeback.home import Home
from takeback.kernel_settings import KernelSettings
from takeback.module import Module
from takeback.settings import Settings, load_settings, section
from takeback.sources import Source
from takeback_doors.cli.findings import Finding

_KERNEL = "kernel"


class Modules:
    """The modules that a start would find, and the classes of those that are built in."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.found = _discover(settings)
        self.broken: list[Finding] = []
        self.classes: dict[str, type[Module]] = {}
        # An added module's code runs in the daemon alone, and only if it is enabled.
        for source in self.found.sources:
            if source.builtin:
                self._load(source)

    def _load(self, source: Source) -> None:
        try:
            self.classes[source.name] = source.load()
        except TakebackError as error:
            self.broken.append(Finding.of(f"module {source.name}", error))


def settings_findings(home: Home) -> tuple[list[Finding], Modules]:
    """What is wrong with the settings, or that nothing is; and the modules that they were held against."""
    try:
        settings = load_settings(home, os.environ)
    except TakebackError as error:
        return [Finding.of("settings", error)], Modules({})
    modules = Modules(settings)
    wrong = [*modules.broken, *_wrong_sections(settings, modules), *_named_in_vain(modules.found)]
    return wrong or [_well(home)], modules


def _well(home: Home) -> Finding:
    if not home.settings.exists():
        return Finding("settings", True, f"{home.settings} is not there; the defaults hold")
    return Finding("settings", True, f"{home.settings} has nothing but known keys")


def _wrong_sections(settings: Settings, modules: Modules) -> Iterator[Finding]:
    known = sorted({_KERNEL, *(source.name for source in modules.found.sources)})
    models = {name: made.Settings for name, made in modules.classes.items()} | {_KERNEL: KernelSettings}
    for name, given in settings.items():
        if name not in known:
            yield _unknown(settings, name, given, known)
        elif name in models:
            yield from _wrong_keys(settings, name, models[name])


def _unknown(settings: Settings, name: str, given: Any, known: Iterable[str]) -> Finding:
    where = next((word for key, word in settings.variables.items() if key[0] == name), settings.path)
    what = "is the section of no module" if isinstance(given, dict) else "stands in no section"
    hint = f"Sections are: {', '.join(known)}."
    return Finding(f"settings {name}", False, f"{name} in {where} {what}", hint)


def _wrong_keys(settings: Settings, name: str, model: Any) -> Iterator[Finding]:
    if model is None:
        if settings[name]:
            detail = f"The module {name} has no settings, but [{name}] gives some"
            yield Finding(f"settings {name}", False, detail, f"Remove [{name}] from {settings.path}.")
        return
    try:
        section(settings, name, model)
    except TakebackError as error:
        yield Finding.of(f"settings {name}", error)


def _named_in_vain(found: Found) -> Iterator[Finding]:
    for problem in found.problems:
        yield Finding(f"module {problem.name}", False, problem.reason)


def _discover(settings: Mapping[str, Any]) -> Found:
    try:
        own = section(settings, _KERNEL, KernelSettings)
    except TakebackError:
        own = KernelSettings()
    return find(own.enabled, own.disabled)
