"""What a tool call answers over MCP: the output model, or an error that a model can act on."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from takeback import TakebackError

ERROR_KEY = "takeback/error"


def success(output: BaseModel) -> dict[str, Any]:
    """A tool's answer, as structure and as text for clients that read only that."""
    return {
        "resultType": "complete",
        "content": [{"type": "text", "text": output.model_dump_json(by_alias=True)}],
        "structuredContent": output.model_dump(mode="json", by_alias=True),
        "isError": False,
    }


def failure(tool: str, error: TakebackError) -> dict[str, Any]:
    """A typed error: words for the model, `code, kind, message, hint, retryable, data` for programs.

    The fields are in `_meta` and not in the structured content, since clients hold that against the tool's
    output schema.
    """
    message = error.message
    if error.code == "call.crashed":
        call = error.data.get("call")
        message = f"Error executing tool {tool}" + (f" (call {call})" if call else "")
    text = f"{message.rstrip('.')}. {error.hint}".strip()
    return {
        "resultType": "complete",
        "content": [{"type": "text", "text": text}],
        "isError": True,
        "_meta": {ERROR_KEY: error.as_dict()},
    }
