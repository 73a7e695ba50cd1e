"""Settings: section `[watchers]` of takeback.toml."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9_-]{0,62}$")]
Text = Annotated[str, StringConstraints(min_length=1, max_length=4096)]


class RuleSettings(BaseModel):
    """A rule: a file whose name matches `pattern` appears in `root`, and is moved or renamed to `target`."""

    model_config = ConfigDict(extra="forbid")
    name: Name
    root: Text
    pattern: Text
    action: Literal["move", "rename"]
    target: Text


class WatchersSettings(BaseModel):
    """Without `rules` nothing is watched.

    A file is complete when it has not changed for `settle_seconds`. Every `look_seconds` the folders are
    looked at even when no change was heard of.
    """

    model_config = ConfigDict(extra="forbid")
    rules: list[RuleSettings] = Field(default_factory=list, max_length=1000)
    settle_seconds: float = Field(default=2.0, ge=0, le=86_400)
    look_seconds: float = Field(default=60.0, ge=1, le=86_400)
