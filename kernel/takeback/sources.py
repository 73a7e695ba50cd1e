"""Where a module comes from, and how its class is loaded."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from takeback.errors import TakebackError
from takeback.manifest import FILE, Manifest, check_manifest, read_manifest
from takeback.module import Module
from takeback.reasons import describe

_HERE = "takeback"
_OURS = ("takeback_core.", "takeback_acts.", "takeback_doors.")


@dataclass(frozen=True, slots=True)
class Source:
    """One module that could be loaded.

    `load` imports it and answers its class; it raises TakebackError `module.import` or `module.broken`.
    `broken` is the reason why it can't be loaded at all, or "". `manifest` is None when it is broken, or when
    nothing can be known before an import. `where` is the class's path or the folder.
    """

    name: str
    where: str
    load: Callable[[], type[Module]]
    manifest: Manifest | None = None
    distribution: str = ""
    builtin: bool = False
    enabled: bool = True
    broken: str = ""

    @property
    def origin(self) -> str:
        """The distribution with its class, as errors name it."""
        return f"{self.where} of {self.distribution}" if self.distribution else self.where

    @classmethod
    def of(cls, made: type[Module], *, builtin: bool = True, distribution: str = "") -> Source:
        """A module given as its class; the manifest is a class attribute, else the module.toml beside it."""
        where = f"{made.__module__}:{made.__qualname__}"
        try:
            manifest = _manifest_of(made, where)
        except TakebackError as exc:
            return broken(made.__name__, where, exc, builtin=builtin, distribution=distribution)
        return cls(manifest.name, where, lambda: made, manifest, distribution, builtin)

    @classmethod
    def at(cls, folder: Path, *, builtin: bool = True) -> Source:
        """A module given as its folder: a module.toml, and a module.py with one Module class."""
        folder = folder.resolve()
        try:
            manifest = read_manifest(folder)
        except TakebackError as exc:
            return broken(folder.name, str(folder), exc, builtin=builtin)
        name = manifest.name
        return cls(name, str(folder), lambda: _load_folder(name, folder), manifest, builtin=builtin)

    @classmethod
    def path(cls, name: str, value: str, *, distribution: str, enabled: bool = True) -> Source:
        """A module given as `package.module:Class` of a distribution; nothing of it is imported yet."""
        # What a package says of itself decides nothing here: only who installed it, and as what.
        builtin = normal(distribution) == _HERE and value.startswith(_OURS)
        try:
            manifest = read_manifest(_folder_of(value.partition(":")[0]))
            if name and manifest.name != name:
                raise TakebackError(
                    "module.manifest",
                    f"{value} is installed as {name!r}, but its {FILE} says {manifest.name!r}",
                    "The entry point and the manifest must agree.",
                )
        except TakebackError as exc:
            return broken(
                name or value, value, exc, builtin=builtin, distribution=distribution, enabled=enabled
            )
        name = manifest.name
        return cls(name, value, lambda: _load_path(name, value), manifest, distribution, builtin, enabled)


def broken(name: str, where: str, why: TakebackError, **known: Any) -> Source:
    """A source that can't be loaded: `load` raises `why`, and `broken` says it."""

    def load() -> type[Module]:
        raise why

    return Source(name, where, load, broken=why.message, **known)


def normal(distribution: str) -> str:
    """A distribution's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


@contextmanager
def importing(what: str) -> Iterator[None]:
    """Turn whatever an import raises, SystemExit too, into TakebackError `module.import`."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except TakebackError:
        raise
    except BaseException as exc:  # boundary: a stranger's code runs here, and nobody else may fall with it
        raise TakebackError(
            "module.import",
            f"{what} can't be imported: {describe(exc)}",
            "Repair or remove the package that it comes from.",
        ) from exc


def _manifest_of(made: type[Module], where: str) -> Manifest:
    own = getattr(made, "manifest", None)
    if isinstance(own, Manifest):
        return check_manifest(own, where)
    file = getattr(sys.modules.get(made.__module__), "__file__", None)
    if file is None:
        raise TakebackError("module.manifest", f"{where} has no manifest", f"Put a {FILE} beside its file.")
    return read_manifest(Path(file).parent)


def _folder_of(module: str) -> Path:
    """The folder that holds the module's manifest; importing a parent package would run its code."""
    top, *rest = module.split(".")
    with importing(module):
        spec = find_spec(top)
        if spec is None:
            raise ModuleNotFoundError(f"No module named {top!r}")
        roots = [Path(root) for root in spec.submodule_search_locations or ()]
    folders = [root.joinpath(*parts) for root in roots for parts in (rest, rest[:-1])]
    if not folders:
        raise TakebackError(
            "module.manifest", f"{module} is a single file", f"A module is a package with a {FILE}."
        )
    return next((folder for folder in folders if (folder / FILE).is_file()), folders[-1])


def _load_path(name: str, value: str) -> type[Module]:
    module, _, attribute = value.partition(":")
    with importing(f"{name} ({value})"):
        found = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    return _a_module(found, value)


def _load_folder(name: str, folder: Path) -> type[Module]:
    with importing(f"{name} ({folder})"):
        loaded = importlib.import_module(f"{_package_of(name, folder)}.module")
    made = [
        found
        for found in vars(loaded).values()
        if isinstance(found, type) and issubclass(found, Module) and found.__module__ == loaded.__name__
    ]
    if len(made) != 1:
        raise TakebackError(
            "module.broken",
            f"{folder / 'module.py'} defines {len(made)} Module classes",
            "It must define exactly one.",
        )
    return made[0]


def _package_of(name: str, folder: Path) -> str:
    """The folder's dotted name: the one it is importable by, else one made for it."""
    for root in (Path(entry).resolve() for entry in sys.path):
        if folder.is_relative_to(root) and all(
            part.isidentifier() for part in folder.relative_to(root).parts
        ):
            dotted = ".".join(folder.relative_to(root).parts)
            if dotted and (folder / "__init__.py").is_file():
                return dotted
    package = f"takeback_folder_{name.replace('-', '_')}"
    if package not in sys.modules:
        _open_package(package, folder)
    return package


def _open_package(package: str, folder: Path) -> None:
    init = folder / "__init__.py"
    spec = spec_from_file_location(package, init, submodule_search_locations=[str(folder)])
    if spec is None or spec.loader is None:
        raise ImportError(f"{folder} is no package")
    sys.modules[package] = module_from_spec(spec)
    if init.is_file():
        try:
            spec.loader.exec_module(sys.modules[package])
        except BaseException:
            del sys.modules[package]  # as Python does: a second try must not find half a package
            raise


def _a_module(found: object, where: str) -> type[Module]:
    if isinstance(found, type) and issubclass(found, Module):
        return found
    raise TakebackError(
        "module.broken",
        f"{where} is {type(found).__name__}, not a Module class",
        "Derive it from takeback.Module.",
    )
