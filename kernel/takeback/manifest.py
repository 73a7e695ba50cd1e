"""What a module says about itself in module.toml, read before any of its code runs."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from takeback.callers import NAME, is_name
from takeback.errors import TakebackError

API = 1
FILE = "module.toml"

_NAME = re.compile(NAME)
_CALL = re.compile(rf"\*|{NAME}\.(\*|{NAME})")
_REQUIRED = ("api", "name", "summary")


@dataclass(frozen=True, slots=True)
class Manifest:
    """One module's manifest.

    `needs` must run before it and while it runs, `after` only orders the start, `calls` are the tools it
    may call (`module.verb`, `module.*` or `*`), `door` says that it lets callers in.
    """

    api: int
    name: str
    summary: str
    needs: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    door: bool = False

    def may_call(self, tool_name: str) -> bool:
        """Whether `calls` lets the module call the tool of this name (`module.verb`)."""
        return covers(self.calls, tool_name)


def covers(calls: Collection[str], tool_name: str) -> bool:
    """Whether one of these patterns, as `calls` of a manifest has them, stands for a tool."""
    owner, dot, verb = tool_name.partition(".")
    if not (owner and dot and verb):
        return False
    return not {"*", f"{owner}.*", tool_name}.isdisjoint(calls)


def read_manifest(folder: Path | Traversable) -> Manifest:
    """Read a module folder's `module.toml`; raises TakebackError `module.manifest`, naming file and key."""
    path = folder / FILE
    try:
        table = tomllib.loads(path.read_bytes().decode())
    except (OSError, KeyError):
        raise _bad(str(path), "can't be read", f"A module's folder holds a {FILE}.") from None
    except ValueError as exc:  # not UTF-8, or not TOML
        raise _bad(str(path), f"is not valid TOML: {exc}", "Correct the file.") from None
    return parse_manifest(table, str(path))


def parse_manifest(table: Mapping[str, Any], where: str) -> Manifest:
    """Make a manifest of a parsed table; `where` is the file that errors name. Raises `module.manifest`."""
    # A newer api may bring keys that we don't know, so its number is judged before its keys.
    _check_api(table.get("api", API), where)
    allowed = [field.name for field in fields(Manifest)]
    if unknown := sorted(set(table) - set(allowed)):
        raise _bad(where, f"has the unknown key {unknown[0]!r}", f"Allowed keys: {', '.join(allowed)}.")
    if missing := [key for key in _REQUIRED if key not in table]:
        raise _bad(where, f"lacks the key {missing[0]!r}", f"Required keys: {', '.join(_REQUIRED)}.")
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in table.items()
    }
    return check_manifest(Manifest(**values), where)


def check_manifest(manifest: Manifest, where: str) -> Manifest:
    """Answer the manifest when it is in order; raises `module.manifest`, which names `where` and the key."""
    _check_api(manifest.api, where)
    if not is_module_name(manifest.name):
        hint = "1 to 63 of a-z, 0-9, _ and -, the first a letter or digit."
        raise _bad(where, f"has {manifest.name!r} as its key 'name'", hint)
    _check_summary(manifest.summary, where)
    for key in ("needs", "after"):
        _check_list(where, key, getattr(manifest, key), _NAME, "names of other modules")
        if manifest.name in getattr(manifest, key):
            raise _bad(where, f"names itself in its key {key!r}", "Name other modules only.")
    _check_list(where, "calls", manifest.calls, _CALL, "'module.verb', 'module.*' or '*'")
    if not isinstance(manifest.door, bool):
        raise _bad(where, f"has {manifest.door!r} as its key 'door'", "true or false.")
    return manifest


def is_module_name(name: object) -> bool:
    """Whether a module may have this name: 1 to 63 of a-z, 0-9, _ and -, the first a letter or digit."""
    return isinstance(name, str) and is_name(name)


def _check_api(api: object, where: str) -> None:
    if type(api) is int and api > API:
        hint = f"This takeback speaks api {API}; a newer one is needed."
        raise _bad(where, f"asks for api {api} in its key 'api'", hint)
    if type(api) is not int or api != API:
        raise _bad(where, f"has {api!r} as its key 'api'", f"The only api so far is {API}.")


def _check_summary(summary: object, where: str) -> None:
    if not isinstance(summary, str) or not summary.strip() or "\n" in summary:
        raise _bad(where, "has no summary in its key 'summary'", "One line that says what the module does.")


def _check_list(where: str, key: str, value: object, pattern: re.Pattern[str], allowed: str) -> None:
    if not isinstance(value, tuple):
        raise _bad(where, f"has {value!r} as its key {key!r}", f"A list of {allowed}.")
    for item in value:
        if not isinstance(item, str) or not pattern.fullmatch(item):
            raise _bad(where, f"has {item!r} in its key {key!r}", f"A list of {allowed}.")


def _bad(where: str, what: str, hint: str) -> TakebackError:
    return TakebackError("module.manifest", f"{where} {what}", hint)
