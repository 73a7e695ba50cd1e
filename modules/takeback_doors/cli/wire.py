"""What client and daemon say to each other: one line of JSON each way, over a socket of the machine."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from takeback.errors import TakebackError, UsageError

# A request holds what a person types or pipes in; a tool's answer may be larger and has no limit.
REQUEST_LIMIT = 8 * 1024 * 1024

_KEYS = {"tool", "args", "dry_run", "present", "session", "follow"}
_LONGEST_SESSION = 200


def encode(shape: dict[str, Any]) -> bytes:
    """One line of ASCII JSON, its newline included."""
    return json.dumps(shape, separators=(",", ":")).encode("ascii") + b"\n"


def decode_request(line: bytes) -> dict[str, Any]:
    """A request's keys: `tool` and `args`, or `follow`; raises UsageError `request.malformed`."""
    try:
        request = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError("request.malformed", f"The request is not JSON: {type(error).__name__}") from None
    if not isinstance(request, dict):
        _malformed("the request is not an object")
    if unknown := sorted(set(request) - _KEYS):
        _malformed(f"unknown key {unknown[0]!r:.60}")
    if "follow" in request:
        _check_follow(request)
    else:
        _check_call(request)
    return request


def decode_answer(line: bytes) -> dict[str, Any]:
    """A daemon's answer; raises TakebackError `daemon.garbled` when it is no answer at all."""
    try:
        answer = json.loads(line)
    except ValueError:
        answer = None
    if not isinstance(answer, dict) or "ok" not in answer:
        raise TakebackError(
            "daemon.garbled",
            "What answers on the daemon's socket does not speak takeback's protocol",
            "Stop it and run `takeback status`.",
        )
    return answer


def too_large(size: str) -> TakebackError:
    """The error for a request over REQUEST_LIMIT bytes."""
    return UsageError(
        "request.too_large",
        f"The request has {size} bytes; the limit is {REQUEST_LIMIT}",
        "Pass large content in parts, or let the agent's own door carry it.",
    )


def _check_call(request: dict[str, Any]) -> None:
    if not isinstance(request.get("tool"), str):
        _malformed("`tool` must be a tool's name")
    if not isinstance(request.setdefault("args", {}), dict):
        _malformed("`args` must be an object")
    for flag in ("dry_run", "present"):
        if not isinstance(request.setdefault(flag, False), bool):
            _malformed(f"`{flag}` must be true or false")
    session = request.setdefault("session", None)
    if session is not None and not (isinstance(session, str) and 0 < len(session) <= _LONGEST_SESSION):
        _malformed(f"`session` must be a text of at most {_LONGEST_SESSION} characters, or null")


def _check_follow(request: dict[str, Any]) -> None:
    after = request["follow"]
    if len(request) > 1 or not (after is None or (type(after) is int and after >= 0)):
        _malformed("`follow` stands alone and is null or an event's number")


def _malformed(why: str) -> NoReturn:
    raise UsageError(
        "request.malformed",
        f"The request can't be used: {why}",
        'A request is one line: {"tool": "undo.list", "args": {}}.',
    )
