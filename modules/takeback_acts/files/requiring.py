"""Requiring: what must hold of paths that are to be put back, before anything of it is done."""

from __future__ import annotations

from collections.abc import Sequence

from takeback.context import Context
from takeback.errors import ConflictError, NotFoundError, UsageError
from takeback_acts.files import paths, roots
from takeback_acts.files.judging import Case
from takeback_acts.files.models import Back


def target(ctx: Context, root: str, item: Back) -> bytes:
    """The canonical path of an item, which must be within every limit there is."""
    top, _ = paths.parse(root)
    path, whole = paths.parse(item.resource)
    if whole or path == b"/":
        raise UsageError(
            "files.path", f"{item.resource} names no entry", "Name a file or folder without a last `/`."
        )
    if not paths.beneath(path, top):
        raise roots.outside(path)
    if item.source is not None:
        ctx.confine(paths.resource(paths.parse(item.source)[0]))
    ctx.confine(paths.own(path) if item.own else paths.resource(path))
    if not item.own and "dir" in (item.before.kind, item.after.kind):
        ctx.confine(paths.content(path))
    roots.require(ctx.scope, path)
    return path


def require_expected(ctx: Context, cases: Sequence[Case]) -> None:
    """Raises ConflictError `undo.changed` unless every path has the version that the plan counted on."""
    if ctx.confined_to is None:
        return
    for case in cases:
        now, path = case.now.state, case.spot.path
        found = {paths.resource(path): now.version, paths.content(path): now.content_version}
        if case.back.own:
            found = {paths.own(path): now.own_version}
        for name, version in found.items():
            if ctx.confined_to.get(name, version) != version:
                raise changed(f"{paths.shown(path)} has changed since the plan was made")


def changed(message: str) -> ConflictError:
    """The plan does not hold any more."""
    return ConflictError(
        "undo.changed", message, "Preview the undo again; nothing was changed.", retryable=True
    )


def require_possible(cases: Sequence[Case]) -> None:
    """Raises ConflictError `files.conflict`, NotFoundError `files.blob_missing` where a path is blocked."""
    blocked = [case for case in cases if case.blocked]
    if not blocked:
        return
    effects = [effect.model_dump() for case in blocked for effect in case.effects()]
    first = blocked[0]
    name = paths.shown(first.spot.path)
    if all(case.action == "gone" for case in blocked):
        raise NotFoundError(
            "files.blob_missing",
            f"{name} can't be put back: {first.reason}",
            "What it held is not kept any more; nothing was changed.",
            data={"effects": effects},
        )
    raise ConflictError(
        "files.conflict",
        f"{name} can't be put back: {first.reason}",
        "Nothing was changed. Look at the preview; the person can overwrite with force.",
        data={"effects": effects},
    )
