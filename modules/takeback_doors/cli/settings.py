"""The section `[cli]` of takeback.toml."""

from __future__ import annotations

from pydantic import BaseModel, Field


class CliSettings(BaseModel):
    """Every `watch_seconds` the daemon looks whether its home is still there."""

    watch_seconds: float = Field(default=60, gt=0)
