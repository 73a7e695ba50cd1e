"""The person's settings: one TOML file, and variables of the environment over it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from takeback.errors import UsageError
from takeback.home import Home

Model = TypeVar("Model", bound=BaseModel)

_PREFIX = "TAKEBACK_"
_PLACE = re.compile(r"at line (\d+)")


class Settings(dict[str, Any]):
    """Sections by name, and for each key that a variable set, the variable's name."""

    def __init__(self, sections: dict[str, Any], path: Path, variables: dict[tuple[str, ...], str]) -> None:
        super().__init__(sections)
        self.path = path
        self.variables = variables


def load_settings(home: Home, environ: Mapping[str, str]) -> Settings:
    """Reads `takeback.toml` of the home, which may be missing, and lays the environment over it.

    `TAKEBACK_UNDO__RETENTION_DAYS=7` is `retention_days = 7` of `[undo]`; a value is TOML where it can be and
    text where not. Raises `settings.malformed` with file and line, `settings.unreadable`, `settings.invalid`.
    """
    settings = Settings(_read(home.settings), home.settings, {})
    for variable in sorted(environ):
        # TAKEBACK_HOME, TAKEBACK_TOKEN and their like have no section.
        if variable.startswith(_PREFIX) and "__" in variable:
            _override(settings, variable, environ[variable])
    return settings


def section(settings: Mapping[str, Any], name: str, model: type[Model]) -> Model:
    """One section as its model, where every key must be a field. Raises `settings.invalid`."""
    try:
        return model.model_validate(settings.get(name, {}), extra="forbid")
    except ValidationError as error:
        # The first is enough to act on. Its input stays out of the words: it may be a secret.
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        key = (name, *(str(part) for part in first["loc"]))
        known = _fields(model, first["loc"][:-1]) if first["type"] == "extra_forbidden" else ()
        allowed = f"Known here: {', '.join(sorted(known))}" if known else first["msg"]
        raise _invalid(settings, key, allowed) from None


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except tomllib.TOMLDecodeError as error:
        found = _PLACE.search(str(error))
        line = int(found[1]) if found else _count_lines(path)
        raise _malformed(path, f"line {line}", {"file": str(path), "line": line}) from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise _malformed(path, f"line {line} (it is not UTF-8)", {"file": str(path), "line": line}) from None
    except OSError as error:
        raise UsageError(
            "settings.unreadable",
            f"The settings in {path} can't be read: {error.strerror}.",
            "Make it a file that you may read, or move it away.",
        ) from error


def _count_lines(path: Path) -> int:
    return max(1, len(path.read_text(encoding="utf-8").splitlines()))


def _override(settings: Settings, variable: str, value: str) -> None:
    *tables, key = parts = variable.removeprefix(_PREFIX).lower().split("__")
    if not tables or not all(parts):
        raise UsageError(
            "settings.malformed",
            f"The variable {variable} names no setting.",
            "Write it as TAKEBACK_SECTION__KEY.",
        )
    table: dict[str, Any] = settings
    for depth, name in enumerate(tables, start=1):
        below = table.setdefault(name, {})
        if not isinstance(below, dict):
            raise _invalid(settings, tuple(parts[:depth]), f"It must be a table for {variable}")
        table = below
    table[key] = _value(value)
    settings.variables[tuple(parts)] = variable


def _value(text: str) -> Any:
    try:
        parsed = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    # More keys than one: the text had a line end and something after it.
    return parsed["value"] if parsed.keys() == {"value"} else text


def _fields(model: type[BaseModel], path: Iterable[str | int]) -> set[str]:
    """The keys that the model knows at a place below it, as far as the place's own model can be told."""
    found: Any = model
    for part in path:
        field = found.model_fields.get(str(part)) if _is_model(found) else None
        found = field.annotation if field is not None else None
    return {field.alias or name for name, field in found.model_fields.items()} if _is_model(found) else set()


def _is_model(found: Any) -> bool:
    return isinstance(found, type) and issubclass(found, BaseModel)


def _malformed(path: Path, place: str, data: dict[str, Any]) -> UsageError:
    return UsageError(
        "settings.malformed",
        f"The settings in {path} can't be understood at {place}.",
        'Write TOML there: `[undo]` on one line, `retention_days = 30` on the next, text in "quotes".',
        data=data,
    )


def _invalid(settings: Mapping[str, Any], key: tuple[str, ...], allowed: str) -> UsageError:
    variable = settings.variables.get(key) if isinstance(settings, Settings) else None
    file = str(settings.path) if isinstance(settings, Settings) else None
    where = variable or file or "the settings given"
    return UsageError(
        "settings.invalid",
        f"{'.'.join(key)} in {where} is not valid.",
        f"{allowed}.",
        data={"key": ".".join(key), "where": where},
    )
