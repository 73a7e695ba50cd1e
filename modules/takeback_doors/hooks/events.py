"""Events: what an agent's hook tells, in one form whichever agent it is and whatever it calls its fields."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from takeback_doors.hooks.dialects import DIALECTS, Kind
from takeback_doors.hooks.gate.named import named

Work = Literal["none", "edit", "command"]

# Names that the field has, or has had, with one agent or another.
_NAME = ("hook_event_name", "hookEventName", "event", "type")
_SESSION = (
    "session_id",
    "sessionId",
    "sessionID",
    "conversation_id",
    "conversationId",
    "thread_id",
    "threadId",
)
_TURN = ("prompt_id", "promptId", "turn_id", "turnId", "generation_id", "generationId", "messageID")
_CALL = ("tool_use_id", "toolUseId", "tool_call_id", "toolCallId", "call_id", "callID", "callId")
_PART = ("agent_id", "agentId", "subagent_id", "subagentId")
_TOOL = ("tool_name", "toolName", "tool")
_GIVEN = ("tool_input", "toolInput", "args", "toolArgs", "arguments", "input")
_FOLDER = ("cwd", "workingDirectory", "working_directory", "directory", "workspace_roots", "workspaceRoots")
_COMMAND = ("command", "cmd", "script")
_PROMPT = ("prompt", "user_prompt", "userPrompt")
_LONGEST = 200
_ANSWER = ("tool_response", "toolResponse", "tool_result", "toolResult")
_FOUND = ("originalFile", "originalContent")
_BACKGROUND = ("run_in_background", "runInBackground", "is_background", "background")


class Event(NamedTuple):
    """One event. Texts are empty where the agent did not say; `given` is the tool's input.

    `part` is the helper of the agent that it is about. `call` is the agent's own number of a call of a tool,
    `likeness` is the same for all calls of one tool with one input. `found` is what the tool says it found
    at paths when it began. `said` is how a prompt begins.
    """

    agent: str
    kind: Kind
    name: str
    session: str
    turn: str
    part: str
    call: str
    likeness: str
    tool: str
    given: Any
    folder: str
    found: Mapping[str, str] = {}
    said: str = ""

    @property
    def work(self) -> Work:
        """What its tool is about to do: nothing to files, an edit of named paths, or anything at all."""
        return DIALECTS[self.agent].work(self.tool, names_paths=bool(self.paths), runs=bool(self.command))

    @property
    def paths(self) -> list[str]:
        """The paths that the tool names, as they are written."""
        return named(self.given)

    @property
    def command(self) -> str:
        """What a shell is given; empty where there is no such thing."""
        if not isinstance(self.given, dict):
            return ""
        found = next((self.given[key] for key in _COMMAND if self.given.get(key)), "")
        return " ".join(map(str, found)) if isinstance(found, list) else str(found)

    @property
    def stays(self) -> bool:
        """Whether what the tool starts goes on when the tool has ended."""
        return isinstance(self.given, dict) and any(self.given.get(key) is True for key in _BACKGROUND)


def event_of(agent: str, told: Mapping[str, Any]) -> Event:
    """The event that an agent tells; what is missing or of another type is empty."""
    name, tool = _text(told, _NAME), _text(told, _TOOL)
    given = next((told[key] for key in _GIVEN if key in told), None)
    kind = DIALECTS[agent].kind(name)
    if given is None and kind in ("before", "after"):
        # Events about a command alone carry it among their own fields.
        given = {key: told[key] for key in (*_COMMAND, "file_path", "edits") if key in told}
    given = _parsed(given)
    return Event(
        agent=agent,
        kind=kind,
        name=name,
        session=_text(told, _SESSION),
        turn=_text(told, _TURN),
        part=_text(told, _PART),
        call=_text(told, _CALL),
        likeness=_digest(tool, given),
        tool=tool,
        given=given,
        folder=_text(told, _FOLDER),
        found=_found(next((told[key] for key in _ANSWER if key in told), None)),
        said=_beginning(told) if kind == "prompt" else "",
    )


def _beginning(told: Mapping[str, Any]) -> str:
    """How a prompt begins, in characters that are any."""
    text = next((told[key] for key in _PROMPT if isinstance(told.get(key), str)), "")
    return text.strip()[:_LONGEST].encode("utf-8", "replace").decode()


def _found(answer: Any) -> dict[str, str]:
    """What a tool's answer says of a file as it was before, by its path."""
    if not isinstance(answer, dict):
        return {}
    shown = answer.get("returnDisplay")
    for one in (answer, shown if isinstance(shown, dict) else {}):
        path, text = one.get("filePath"), next((one[key] for key in _FOUND if key in one), None)
        if isinstance(path, str) and path.startswith("/") and isinstance(text, str):
            return {path: text}
    return {}


def _text(told: Mapping[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        value = told.get(name)
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            text = str(value)
            return text if len(text) <= _LONGEST or name in _FOLDER else _shortened(text)
    return ""


def _shortened(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _parsed(given: Any) -> Any:
    """A tool's input, also where it is told as a text of JSON."""
    if isinstance(given, str) and given.startswith("{"):
        try:
            return json.loads(given)
        except (ValueError, RecursionError):
            return given
    return given


def _digest(tool: str, given: Any) -> str:
    """What stands for a call that has no number: what is called with what."""
    words = json.dumps([tool, given], sort_keys=True, default=str)
    return hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()[:40]
