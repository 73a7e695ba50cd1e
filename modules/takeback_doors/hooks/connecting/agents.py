"""Agents: where each coding agent keeps its settings, and what an entry for our gate looks like there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_SECONDS = 30


@dataclass(frozen=True, slots=True)
class Wiring:
    """How one agent is connected.

    `user` and `project` tell the file, from the environment or a project's folder. `entry` makes the item for
    an event from the gate's command line. `base` is what a new file holds besides. Without events the file
    is a plugin of ours.
    """

    user: Callable[[Mapping[str, str]], Path]
    project: Callable[[Path], Path]
    events: tuple[str, ...] = ()
    entry: Callable[[str, str], dict[str, Any]] = lambda event, command: {"command": command}
    base: str = ""
    note: str = ""


def _in_home(variable: str, usual: str, name: str) -> Callable[[Mapping[str, str]], Path]:
    def find(environ: Mapping[str, str]) -> Path:
        folder = environ.get(variable) if variable else None
        return Path(folder or Path(environ["HOME"]) / usual) / name

    return find


def _nested(event: str, command: str) -> dict[str, Any]:
    return {"hooks": [{"type": "command", "command": command, "timeout": _SECONDS}]}


def _in_milliseconds(event: str, command: str) -> dict[str, Any]:
    hook = {"name": "takeback", "type": "command", "command": command, "timeout": _SECONDS * 1000}
    return {"matcher": "*", "hooks": [hook]} if event.endswith("Tool") else {"hooks": [hook]}


_TOOLS = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse")
WIRINGS: Mapping[str, Wiring] = {
    "claude": Wiring(
        _in_home("CLAUDE_CONFIG_DIR", ".claude", "settings.json"),
        # What is for this machine alone; the other file is shared with everybody who has the project.
        lambda folder: folder / ".claude" / "settings.local.json",
        (*_TOOLS, "PostToolUseFailure", "SubagentStop", "Stop", "SessionEnd"),
        _nested,
    ),
    "codex": Wiring(
        _in_home("CODEX_HOME", ".codex", "hooks.json"),
        lambda folder: folder / ".codex" / "hooks.json",
        (*_TOOLS, "Stop"),
        _nested,
        note="Codex runs new hooks only when you have trusted them: open it and look at /hooks.",
    ),
    "gemini": Wiring(
        _in_home("", ".gemini", "settings.json"),
        lambda folder: folder / ".gemini" / "settings.json",
        ("SessionStart", "BeforeAgent", "BeforeTool", "AfterTool", "AfterAgent", "SessionEnd"),
        _in_milliseconds,
    ),
    "cursor": Wiring(
        _in_home("", ".cursor", "hooks.json"),
        lambda folder: folder / ".cursor" / "hooks.json",
        (
            "sessionStart",
            "beforeSubmitPrompt",
            "preToolUse",
            "postToolUse",
            "postToolUseFailure",
            "stop",
            "sessionEnd",
        ),
        base='{\n  "version": 1\n}\n',
    ),
    "opencode": Wiring(
        lambda environ: (
            Path(environ.get("XDG_CONFIG_HOME") or Path(environ["HOME"]) / ".config")
            / "opencode"
            / "plugin"
            / "takeback.js"
        ),
        lambda folder: folder / ".opencode" / "plugin" / "takeback.js",
    ),
}
