"""What a tool call answers over MCP: the output model, or an error that a model can act on."""

from __future__ import annotations

import logging
from typing import Any

from pydantic import BaseModel
from pydantic_core import from_json

from takeback import TakebackError

ERROR_KEY = "takeback/error"
_log = logging.getLogger("takeback.mcp")


def success(tool: str, output: BaseModel) -> dict[str, Any]:
    """A tool's answer, as structure and as text for clients that read only that."""
    try:
        text = output.model_dump_json(by_alias=True)
    except ValueError as error:  # a lone surrogate, as in a file's name that is not UTF-8
        _log.error("the answer of %s has no form in JSON: %s", tool, type(error).__name__)
        return failure(tool, _unsayable(tool))
    return {
        "resultType": "complete",
        "content": [{"type": "text", "text": text}],
        # Read back from the text, so that both say the same: JSON has no NaN, the text then says null.
        "structuredContent": from_json(text),
        "isError": False,
    }


def failure(tool: str, error: TakebackError) -> dict[str, Any]:
    """A typed error: words for the model, `code, kind, message, hint, retryable, data` for programs.

    The fields are in `_meta` and not in the structured content, since clients hold that against the tool's
    output schema.
    """
    message, call = error.message, error.data.get("call")
    if error.code == "call.crashed" and call:
        message = f"Error executing tool {tool} (call {call})"
    text = f"{message.rstrip('.')}. {error.hint}".strip()
    return {
        "resultType": "complete",
        "content": [{"type": "text", "text": text}],
        "isError": True,
        "_meta": {ERROR_KEY: error.as_dict()},
    }


def _unsayable(tool: str) -> TakebackError:
    return TakebackError(
        "call.crashed",
        f"{tool} was done, but its answer has no form in JSON",
        "Don't repeat it. Look at its effect by another tool.",
    )
