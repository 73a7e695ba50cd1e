"""What the tools of files take and give."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from takeback_acts.files.paths import is_own
from takeback_acts.files.states import State

Path = Annotated[str, StringConstraints(min_length=1, max_length=12_500)]
Resource = Annotated[str, StringConstraints(pattern=r"^files:/", max_length=16_384)]


ActId = Annotated[str, StringConstraints(pattern=r"^[0-9a-f-]{36}$")]

# No file is larger anywhere.
_LARGEST = (1 << 63) - 1


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid")


class At(_In):
    """A path: absolute, relative to the caller's only root, or a resource (`files:/…`) if it is no text."""

    path: Path


class Read(At):
    """Which bytes of a file: `limit` of them from `offset` on."""

    offset: int = Field(default=0, ge=0, le=_LARGEST)
    limit: int | None = Field(default=None, ge=1)


class List(At):
    """A page of a folder: at most `limit` entries after `cursor`."""

    limit: int = Field(default=500, ge=1, le=5000)
    cursor: str | None = None


class Write(At):
    """A file's whole new content: text, or bytes in base64. `executable` sets or clears that bit."""

    content: str | None = None
    content_base64: str | None = None
    executable: bool | None = None


class Edit(At):
    """Text to replace: `old` must occur exactly once, unless `all` replaces every occurrence."""

    old: Annotated[str, StringConstraints(min_length=1)]
    new: str
    all: bool = False


class Move(At):
    """Where a file or folder goes; what is there is replaced only with `overwrite`."""

    to: Path
    overwrite: bool = False


class Delete(At):
    """What to delete; a folder that holds anything needs `recursive`."""

    recursive: bool = False


class MakeDir(At):
    """A folder to make; missing folders on the way are made only with `parents`."""

    parents: bool = False


class Back(_In):
    """One path to put back: it should be as `after`, gets as `before`, and comes from `source` if given."""

    resource: Resource
    before: State
    after: State
    source: Resource | None = None

    @property
    def own(self) -> bool:
        """Whether it is the entry by itself: its owner, and of a folder the mode."""
        return is_own(self.resource)


class Stay(_In):
    """A path that its act changed and that is left as it is, and why."""

    resource: Resource
    reason: Annotated[str, StringConstraints(min_length=1, max_length=1000)]


class RefBack(_In):
    """A reference that the act moved, of the repository with this git folder; empty is absent."""

    git: Resource
    ref: Annotated[str, StringConstraints(min_length=1, max_length=4096)]
    old: Annotated[str, StringConstraints(max_length=4096)]
    new: Annotated[str, StringConstraints(max_length=4096)]


class Restore(_In):
    """Paths to put back, all or none, every one of them beneath `root`; `stays` are told, and left alone.

    `listed` is the blob that lists them, where they are too many to be `items`. `refs` are the references of
    git that the paths would put back, which stay where they are once pushed. With `only` just these of the
    paths are put back.
    """

    root: Resource
    items: list[Back] = Field(default_factory=list, max_length=100_000)
    listed: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = None
    refs: list[RefBack] = Field(default_factory=list, max_length=100_000)
    only: list[Resource] | None = Field(default=None, max_length=20_000_000)
    stays: list[Stay] = Field(default_factory=list, max_length=100)


class Resources(_In):
    """Resources of files."""

    resources: list[Resource] = Field(max_length=40_000_000)


class Sweep(_In):
    """What the store may forget: bytes that no act names and that were kept longer than this ago."""

    grace_hours: float | None = Field(default=None, ge=0, allow_inf_nan=False)


class BeginCommand(_In):
    """A command that is about to run in `cwd`, and the folders in which it may change something.

    `process` is the one that will call `files.end_command`; when it is gone, the window is ended without.
    """

    roots: list[Path] = Field(default_factory=list, max_length=64)
    cwd: Path
    command: list[str] = Field(min_length=1)
    process: int | None = Field(default=None, ge=1)


class Begun(BaseModel):
    """An open window on what the command changes; `notes` say what can't be captured."""

    window: str
    roots: list[str]
    notes: list[str] = Field(default_factory=list)


class EndCommand(_In):
    """A command that has ended: its window, and its exit code where that is known."""

    window: Annotated[str, StringConstraints(min_length=1, max_length=64)]
    exit_code: int | None = None


class Ended(BaseModel):
    """What a command changed: how many paths, and the act that takes it back, null when nothing changed.

    `left_out` names folders that can be made again and are not captured; `coincident` what may as well have
    been changed by somebody else at the same time, which the act leaves alone.
    """

    act: str | None = None
    changed: int = 0
    left_out: list[str] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)
    coincident: list[str] = Field(default_factory=list)


class Effect(BaseModel):
    """What happens to one resource; `version` is the one it has afterwards, empty where unknown.

    `holds` is how many entries come or go with a folder's content.
    """

    resource: str
    action: str
    reason: str = ""
    version: str = ""
    holds: int | None = None


class Done(BaseModel):
    """What became of a path. `act` is the log's id, null when nothing was changed.

    `notes` say where something is kept that somebody saved at the same moment.
    """

    path: str
    resource: str
    version: str
    act: str | None = None
    effects: list[Effect] = Field(default_factory=list)
    notes: list[str] = Field(default_factory=list)


class Restored(BaseModel):
    """What was put back, or would be; `notes` as in Done."""

    effects: list[Effect]
    act: str | None = None
    notes: list[str] = Field(default_factory=list)


class Content(BaseModel):
    """Bytes of a file, text where they are UTF-8; `size` is the whole file's, `next` where they end."""

    path: str
    resource: str
    content: str | None = None
    content_base64: str | None = None
    size: int
    mode: str
    version: str
    next: int | None = None


class Listed(BaseModel):
    """One entry of a folder; `path` is what the other tools take. `size` is in bytes, of files alone."""

    name: str
    path: str
    kind: Literal["file", "dir", "link", "special"]
    size: int = 0


class Listing(BaseModel):
    """A page of a folder, by name; `next` is the cursor of the page after it."""

    path: str
    entries: list[Listed]
    next: str | None = None


class Search(At):
    """What to look for in a folder: files whose name matches `name` (as in a shell), and lines with `text`.

    `hidden` looks at names with a leading dot as well.
    """

    text: str = ""
    name: str = "*"
    ignore_case: bool = False
    hidden: bool = False
    limit: int = Field(default=200, ge=1, le=2000)


class Match(BaseModel):
    """A file that was found, or a line in it by its number from 1 on."""

    path: str
    line: int | None = None
    text: str = ""


class Matches(BaseModel):
    """What was found, in the order of the names; `more` says that there is more of it."""

    matches: list[Match]
    more: bool = False
    notes: list[str] = Field(default_factory=list)


class History(At):
    """A page of what was done to a path: at most `limit` acts after `cursor`."""

    limit: int = Field(default=50, ge=1, le=500)
    cursor: str | None = None


class Past(BaseModel):
    """One act on a path, with the versions it found and left; empty where it was on a folder around it."""

    act: str
    at: str
    actor: str
    summary: str
    state: str
    before: str = ""
    after: str = ""


class Pasts(BaseModel):
    """A page of a path's history, newest first; `next` is the cursor of the page after it."""

    path: str
    acts: list[Past]
    next: str | None = None


class Diff(At):
    """A file, and the act whose change is asked for; without one, what has changed since before the last."""

    act: ActId | None = None


class Differences(BaseModel):
    """Changes in the unified form; `text` is null where there is no text to compare, and `note` says why."""

    path: str
    act: str
    before: str
    after: str
    text: str | None
    note: str = ""


class LayOut(At):
    """A file in conflict, and the act that is to be taken back."""

    act: ActId


class Laid(BaseModel):
    """The files that were put beside another, and the act that takes them away again."""

    paths: list[str]
    act: str | None = None
    notes: list[str] = Field(default_factory=list)


class Versions(BaseModel):
    """The version that each resource has now."""

    versions: dict[str, str]


class Swept(BaseModel):
    """What the store forgot, or would: how many blobs, and their bytes.

    `git_files` are files of git's objects that were held; only those that nobody else has free any bytes.
    """

    deleted: int
    freed_bytes: int
    kept: int
    git_files: int = 0
