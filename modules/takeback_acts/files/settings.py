"""Settings: section `[files]` of takeback.toml."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field


class FilesSettings(BaseModel):
    """Sizes are in bytes.

    Blobs up to `small_blob` lie in the database. Text up to `merge_most` bytes and `merge_most_lines` lines
    can be merged. One read answers at most `most_read`; `most_edit` is the largest file that can be edited.
    What no act names is forgotten `grace_hours` after it was last kept. `left_out` are folders in which a
    command's changes are not captured, as NAME or NAME:MARKER, a file in it; None for the usual ones. A
    command's window whose end nobody tells is ended after `window_hours`.
    """

    model_config = ConfigDict(extra="forbid")
    small_blob: int = Field(default=64 * 1024, ge=0, le=1 << 20)
    merge_most: int = Field(default=1 << 20, ge=0)
    merge_most_lines: int = Field(default=20_000, ge=0)
    most_read: int = Field(default=1 << 20, ge=1024)
    most_edit: int = Field(default=32 << 20, ge=1024)
    left_out: list[str] | None = None
    window_hours: float = Field(default=24.0, gt=0)
    grace_hours: float = Field(default=24.0, ge=1, allow_inf_nan=False)
