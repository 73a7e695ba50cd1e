"""What the two tools around somebody else's edit take and give."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from takeback_acts.files.models import Path

EditId = Annotated[str, StringConstraints(min_length=1, max_length=64)]
_MOST_PATHS = 256


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Image(_In):
    """What lay at a path at an earlier moment, as somebody else kept it: a file's bytes, or nothing."""

    path: Path
    content_base64: str | None = None
    mode: int = Field(default=0o644, ge=0, le=0o7777)
    mtime_ns: int = 0


class BeginEdit(_In):
    """Paths that a tool of the caller's own is about to change, and what the caller calls the tool.

    `id` names the edit until its end; the caller chooses it, so that it is known also when a crash swallows
    the answer. With `images` the moment has passed: what lay there then is given, `at` says when, in
    nanoseconds since 1970, and each path without an image is one of which nothing is known.
    """

    id: EditId
    paths: list[Path] = Field(min_length=1, max_length=_MOST_PATHS)
    tool: Annotated[str, StringConstraints(min_length=1, max_length=200)]
    images: list[Image] | None = Field(default=None, max_length=_MOST_PATHS)
    at: int | None = Field(default=None, ge=0)


class BegunEdit(BaseModel):
    """An edit whose pre-images are durable; `notes` say what can't be captured, and why."""

    id: str
    paths: list[str]
    notes: list[str] = Field(default_factory=list)


class EndEdit(_In):
    """An edit that is over. `interrupted` says that nobody has told its end.

    With `images` it was over at an earlier moment: what lay there then. `found` is what the tool itself says
    it found at paths when it began, as text.
    """

    id: EditId
    interrupted: bool = False
    images: list[Image] | None = Field(default=None, max_length=_MOST_PATHS)
    found: dict[Path, str] = Field(default_factory=dict, max_length=_MOST_PATHS)


class EndedEdit(BaseModel):
    """What an edit changed: how many paths, and the act that takes it back, null when nothing changed."""

    act: str | None = None
    changed: int = 0
    notes: list[str] = Field(default_factory=list)
