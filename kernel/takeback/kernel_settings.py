"""The kernel's own section of the settings."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, Field, StringConstraints

# A pattern with any other character can match no label and no tool, and a rule in vain protects nobody.
Pattern = Annotated[str, StringConstraints(pattern=r"^[a-z0-9_:.*?!\[\]-]+$")]


class ReachRule(BaseModel):
    """A rule of the person's: glob patterns on caller label and tool name, and the reason to show."""

    effect: Literal["deny", "ask"]
    caller: Pattern
    tool: Pattern
    reason: str = Field(min_length=1)


class KernelSettings(BaseModel):
    """The section `[kernel]`."""

    enabled: list[str] = []
    disabled: list[str] = []
    rules: list[ReachRule] = []
    start_seconds: float = Field(default=10.0, gt=0)
    stop_seconds: float = Field(default=5.0, gt=0)
    events_days: float = Field(default=30.0, gt=0, le=36_500)
