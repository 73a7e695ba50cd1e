"""Settings: section `[hook]` of takeback.toml."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class HookSettings(BaseModel):
    """Within `answer_seconds` an event is answered, or what it announces counts as not captured.

    Every `watch_seconds` it is looked whether the agents still run that have a tool at work.
    """

    model_config = ConfigDict(extra="forbid")
    answer_seconds: float = Field(default=15.0, gt=0)
    watch_seconds: float = Field(default=10.0, gt=0)
