"""Settings: section `[files]` of takeback.toml."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from takeback_acts.files.packs.settings import PackSettings

AbsoluteFolder = Annotated[str, StringConstraints(pattern=r"^/")]


class FilesSettings(BaseModel):
    """Sizes are in bytes.

    Blobs up to `small_blob` share files. All of them take up to `most_kept` on disk, and those of one agent
    up to `most_kept_agent`; 0 is no limit. `compress` has them take less. Text up to `merge_most` bytes and
    `merge_most_lines` lines can be merged. One read answers at most `most_read`; `most_edit` is the largest
    file that can be edited.
    What no act names is forgotten `grace_hours` after it was last kept. `left_out` are folders in which a
    command's changes are not captured, as NAME or NAME:MARKER, a file in it; None for the usual ones.
    `not_captured` are folders by their full path: of a command that runs in one nothing is captured. A
    command's window whose end nobody tells is ended after `window_hours`. A folder in which no command has
    run for `idle_seconds` is held open no more.
    """

    model_config = ConfigDict(extra="forbid")
    small_blob: int = Field(default=64 * 1024, ge=0, le=1 << 20)
    most_kept: int = Field(default=0, ge=0)
    most_kept_agent: int = Field(default=0, ge=0)
    compress: bool = False
    merge_most: int = Field(default=1 << 20, ge=0)
    merge_most_lines: int = Field(default=20_000, ge=0)
    most_read: int = Field(default=1 << 20, ge=1024)
    most_edit: int = Field(default=32 << 20, ge=1024)
    left_out: list[str] | None = None
    not_captured: list[AbsoluteFolder] = Field(default_factory=list)
    window_hours: float = Field(default=24.0, gt=0)
    idle_seconds: float = Field(default=60.0, ge=0)
    grace_hours: float = Field(default=24.0, ge=1, allow_inf_nan=False)

    @property
    def packs(self) -> PackSettings:
        """The settings of the store of blobs."""
        return PackSettings(
            small=self.small_blob,
            compress=self.compress,
            limit=self.most_kept,
            owner_limit=self.most_kept_agent,
        )
