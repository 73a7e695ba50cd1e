"""Witnesses: what became of a begun act, by its owner's own word or by the look of its resources."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from pydantic import BaseModel, StringConstraints, ValidationError
from pydantic_core import from_json

from takeback.context import Context
from takeback.errors import TakebackError
from takeback_core.undo.looking import runs, verdict, versions
from takeback_core.undo.models import State, Touched
from takeback_core.undo.resources import owner
from takeback_core.undo.rows import Row


class Told(NamedTuple):
    """What became of a begun act; its owner may also have told what it really touched, and in words."""

    state: State
    touched: list[Touched] | None = None
    summary: str | None = None


class _Happened(BaseModel):
    touched: list[Touched]
    summary: Annotated[str, StringConstraints(min_length=1, max_length=1000)]


class _Answers(BaseModel):
    answers: list[_Happened | None]


async def tell(ctx: Context, row: Row) -> Told | None:
    """What became of a begun act; None while its owner is away.

    Raises what the owner raises, TakebackError `undo.not_told` for an answer that is none.
    """
    if can_tell(ctx, row.recorded_by) and row.inverse_tool is not None:
        return await _by_word(ctx, row)
    if not row.touched and not runs(ctx, _name(row.recorded_by)):
        return None
    now = await versions(ctx, [item.resource for item in row.touched])
    return None if now is None else Told(verdict(row.touched, now))


def can_tell(ctx: Context, recorder: str) -> bool:
    """Whether the module of this label tells by itself which of its begun acts have happened."""
    return ctx.router.get(f"{_name(recorder)}.happened") is not None


async def _by_word(ctx: Context, row: Row) -> Told:
    tool = f"{_name(row.recorded_by)}.happened"
    answer = await ctx.call(tool, {"inputs": [from_json(row.inverse_input or "{}")]})
    try:
        (found,) = _Answers.model_validate(answer, from_attributes=True).answers
    except (ValidationError, ValueError):
        raise _no_word(tool, row) from None
    if found is None:
        return Told("abandoned")
    names = {item.resource for item in found.touched}
    if len(names) < len(found.touched) or {owner(name) for name in names} - {_name(row.recorded_by)}:
        raise _no_word(tool, row)
    return Told("done", found.touched, found.summary)


def _no_word(tool: str, row: Row) -> TakebackError:
    return TakebackError(
        "undo.not_told",
        f"{tool} did not say what became of act {row.id}",
        "It answers one entry for each input, with resources of its own. Report it to the module's author.",
    )


def _name(label: str) -> str:
    return label.removeprefix("module:")
