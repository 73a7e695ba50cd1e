"""Connector: puts the gate into an agent's settings, and takes exactly that out again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from takeback.errors import RefusedError, UsageError
from takeback_doors.hooks.connecting import settings_files
from takeback_doors.hooks.connecting.agents import WIRINGS, Wiring
from takeback_doors.hooks.connecting.editing import ShapeError, items_of, with_item, without_items
from takeback_doors.hooks.connecting.jsonc import MalformedError
from takeback_doors.hooks.models import Connected

_HOOKS = ("hooks",)
# What tells our entries from all others, wherever the package lies.
_OURS = "takeback_doors/hooks/gate/gate.py"
_PLUGIN = Path(__file__).with_name("plugin.js")
_MARK = "// takeback:"


class Connector:
    """Connects one agent at one place; `command` is the gate's command line. All of it blocks."""

    def __init__(
        self, agent: str, folder: str | None, environ: Mapping[str, str], command: Sequence[str]
    ) -> None:
        if agent not in WIRINGS:
            raise UsageError(
                "connect.agent",
                f"takeback does not know how to connect {agent!r:.80}",
                f"It knows {', '.join(sorted(WIRINGS))}; others come in by MCP: `takeback agents add`.",
            )
        self._agent = agent
        self._wiring: Wiring = WIRINGS[agent]
        self._command = list(command)
        try:
            self._path = self._wiring.project(Path(folder)) if folder else self._wiring.user(environ)
        except KeyError:
            raise UsageError(
                "connect.no_home", "Nobody said where your home folder is", "Set HOME."
            ) from None

    def connect(self, *, dry_run: bool) -> Connected:
        """Adds our entries; raises RefusedError `connect.not_json`, `connect.shape`, `connect.not_ours`."""
        found = settings_files.read(self._path)
        text = self._with(found.text or "")
        return self._put(found, text, dry_run=dry_run)

    def disconnect(self, *, dry_run: bool) -> Connected:
        """Takes our entries out; raises what `connect` raises."""
        found = settings_files.read(self._path)
        if found.text is None:
            return self._answer(found, changed=False, backup=None)
        text = self._as_before(found) or self._without(found.text)
        changed = text != found.text
        if changed and not dry_run:
            was_made_by_us = not settings_files.backup_of(found.path).exists()
            if was_made_by_us and text.strip() in ("", "{}", self._wiring.base.strip()):
                settings_files.remove(found.path)
            else:
                settings_files.replace(found._replace(text=None), text)
                settings_files.forget_backup(found, text)
        return self._answer(found, changed=changed, backup=None)

    def _as_before(self, found: settings_files.Found) -> str:
        """What was there before, where nothing has been changed since but by us."""
        kept = settings_files.kept(found)
        try:
            return kept if kept and self._with(kept) == found.text else ""
        except RefusedError:
            return ""

    def _put(self, found: settings_files.Found, text: str, *, dry_run: bool) -> Connected:
        changed = text != found.text
        backup = settings_files.replace(found, text) if changed and not dry_run else None
        return self._answer(found, changed=changed, backup=backup)

    def _answer(self, found: settings_files.Found, *, changed: bool, backup: Path | None) -> Connected:
        return Connected(
            agent=self._agent,
            path=str(found.path),
            changed=changed,
            events=list(self._wiring.events),
            backup=str(backup) if backup else None,
            note=self._wiring.note,
        )

    def _with(self, text: str) -> str:
        if not self._wiring.events:
            return self._plugin(text)
        try:
            wanted = self._entries()
            if [one for one in items_of(text or "{}", _HOOKS) if _is_ours(one[1])] == wanted:
                return text
            text = without_items(text, _HOOKS, _is_ours) if text.strip() else self._wiring.base
            for event, entry in wanted:
                text = with_item(text, (*_HOOKS, event), entry)
            return text
        except MalformedError as error:
            raise self._not_json(error) from None
        except ShapeError as error:
            raise self._shape(error) from None

    def _without(self, text: str) -> str:
        if not self._wiring.events:
            return "" if text.startswith(_MARK) else text
        try:
            return without_items(text, _HOOKS, _is_ours) if text.strip() else text
        except MalformedError as error:
            raise self._not_json(error) from None
        except ShapeError as error:
            raise self._shape(error) from None

    def _entries(self) -> list[tuple[str, dict[str, Any]]]:
        words = shlex.join(self._command)
        return [(event, self._wiring.entry(event, words)) for event in self._wiring.events]

    def _plugin(self, text: str) -> str:
        if text and not text.startswith(_MARK):
            raise RefusedError(
                "connect.shape",
                f"{self._path} is there and not takeback's",
                "Nothing was changed. Move the file away, then connect again.",
            )
        return _PLUGIN.read_text().replace("GATE_COMMAND", json.dumps(self._command))

    def _not_json(self, error: MalformedError) -> RefusedError:
        why, at = error.args
        return RefusedError(
            "connect.not_json",
            f"{self._path} is not JSON: {why}, at character {at}",
            "Nothing was changed. Repair the file, then connect again.",
        )

    def _shape(self, error: ShapeError) -> RefusedError:
        return RefusedError(
            "connect.shape",
            f"{self._path} has something unexpected at {error.args[0]}",
            f"Nothing was changed. Look at what {self._agent} says of its settings.",
        )


def _is_ours(item: Any) -> bool:
    return _OURS in json.dumps(item)
