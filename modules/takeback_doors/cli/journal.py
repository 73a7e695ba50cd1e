"""The journal of one session: what taking it back means for each path, in the words of `journal undo`."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from takeback.errors import NotFoundError, UsageError
from takeback_doors.cli.paths import of_resource
from takeback_doors.cli.shell import Shell

_PAGE = 500
_PERSON = "person"
_DOING = {"restore", "delete", "merge"}


class Journal:
    """A session's acts. `agent_id` is `<agent>:<session>`; of the person's own, `person:<session>`."""

    def __init__(self, shell: Shell, named: str) -> None:
        self._shell = shell
        self.agent, self.session = self._find(named)
        self.agent_id = f"{self.agent or _PERSON}:{self.session}"

    def items(self, outcome: dict[str, Any], root: str, since: str | None) -> list[dict[str, Any]]:
        """What became of each path, or would: `{path, action, pre, reason?}`, in the order of paths."""
        plan, done = outcome["plan"], outcome.get("results")
        taken = {one["id"] for one in done} if done is not None else None
        acts = {act["id"]: act for act in self._acts(self.agent, self.session, since)}
        found: dict[str, list[tuple[dict[str, Any], dict[str, Any], bool]]] = {}
        for step in plan["steps"]:
            runs = step["act"] in taken if taken is not None else _runs(step)
            stays = {each["resource"] for each in step["stays"]}
            act = acts.get(step["act"]) or self._inner(step["act"])
            for one in act["touched"]:
                uri = one["resource"]
                if not uri.endswith("/"):
                    comes_back = uri in act["taken_back"] or (runs and uri not in stays)
                    found.setdefault(_entry(uri), []).append((step, one, comes_back))
        return [_item(uri, steps, root) for uri, steps in sorted(found.items())]

    def _find(self, named: str) -> tuple[str | None, str]:
        """The agent and session meant: by the session's id alone, or by both."""
        agents = {act["agent"] for act in self._acts(None, named, None)}
        if len(agents) == 1:
            return agents.pop(), named
        if agents:
            raise UsageError(
                "ERR_INVALID_PLAN",
                f"{len(agents)} agents have a session {named:.100}",
                "Name it AGENT:SESSION.",
            )
        agent, _, session = named.partition(":")
        for act in self._acts(None if agent == _PERSON else agent, session, None) if session else ():
            if (act["agent"] or _PERSON) == agent:
                return act["agent"], session
        raise NotFoundError(
            "ERR_NOT_FOUND", f"No act is known of {named:.100}", "`takeback log` shows agents and sessions."
        )

    def _acts(self, agent: str | None, session: str, since: str | None) -> Iterator[dict[str, Any]]:
        asked = {"agent": agent, "session": session, "since": since, "limit": _PAGE}
        while True:
            page = self._shell.call("undo.list", asked)
            yield from page["acts"]
            if page["next"] is None:
                return
            asked["cursor"] = page["next"]

    def _inner(self, act: str) -> dict[str, Any]:
        """An act that was recorded inside another, so that no list has it."""
        found = self._shell.call("undo.list", {"id_prefix": act})["acts"]
        return found[0] if found else {"touched": [], "taken_back": {}}


def _runs(step: dict[str, Any]) -> bool:
    return step["status"] in ("clean", "merge") or bool(step["forced"])


def _item(uri: str, steps: list[tuple[dict[str, Any], dict[str, Any], bool]], root: str) -> dict[str, Any]:
    path = of_resource(uri) or uri
    inside = f"{path}/".startswith(root.rstrip("/") + "/")
    item = {"path": os.path.relpath(path, root) if inside else path}
    # Steps come newest first, and what the first of the acts found there is the state to go back to, or the
    # first that can be taken back where another's work lies between.
    reached = [each for each in steps if each[2]] or steps
    reached = [each for each in reached if each[1]["resource"] == uri] or reached
    item |= _action(uri, steps) | {"pre": _pre(reached[-1][1]["before"])}
    return {key: item[key] for key in ("path", "action", "pre", "reason") if key in item}


def _action(uri: str, steps: list[tuple[dict[str, Any], dict[str, Any], bool]]) -> dict[str, str]:
    told = [one for step, _, runs in steps if runs for one in step["effects"]]
    doing = [one["action"] for one in told if _entry(one["resource"]) == uri and one["action"] in _DOING]
    action = ("merge" if "merge" in doing else doing[-1]) if doing else "skip"
    if held := [step for step, _, runs in steps if not runs]:
        return {"action": action, "reason": _against(uri, held)}
    return {"action": action} if doing else {"action": action, "reason": "unchanged"}


def _against(uri: str, held: list[dict[str, Any]]) -> str:
    """Why a path is left as these steps have it."""
    whys = [each["why"] for step in held for each in step["stays"] if _entry(each["resource"]) == uri]
    acts = [each["action"] for step in held for each in step["effects"] if _entry(each["resource"]) == uri]
    return "missing-blob" if "gone" in (*whys, *acts) else "conflict"


def _entry(uri: str) -> str:
    """The resource of an entry, also of one by itself (`/.`): a path is one item, whatever changed of it."""
    return uri.removesuffix("/.")


def _pre(version: str) -> str:
    kind, _, rest = version.partition(":")
    return f"sha256:{rest.rpartition(':')[2]}" if kind == "file" else kind


def counted(items: list[dict[str, Any]]) -> dict[str, int]:
    """How many paths are put back, and how many are left because of a conflict."""
    return {
        "restored": sum(item["action"] in _DOING for item in items),
        "conflicts": sum(item.get("reason") == "conflict" for item in items),
    }
