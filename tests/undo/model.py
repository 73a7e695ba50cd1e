"""A model owner module: notes under keys, and every way in which a note is changed and brought back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict

from takeback import ConflictError, Context, Manifest, Module, RefusedError, TakebackError, faults, tool
from takeback_core.undo import act
from tests.undo.notebook import Notebook, Shelf, version

__all__ = ["EVERYTHING", "Notebook", "Notes", "Shelf", "notes_module", "resource", "version"]

EVERYTHING = "*"  # among a scope's roots: all notes


class _In(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Put(_In):
    key: str
    value: str


class Fill(_In):
    keys: list[str]
    value: str


class Key(_In):
    key: str


class Rename(_In):
    key: str
    to: str


class Batch(_In):
    """Notes put by calls within one call; `own` says when the call records an act of its own, on `key`."""

    items: list[Put]
    own: Literal["around", "after", "after-intent", "never", "final"] = "never"
    key: str = "batch"
    value: str = "ran"
    then: str | None = None  # a value put into `key` by a further call, after the act of its own
    undoes: str | None = None  # an act taken back within the call


class Nest(_In):
    """A batch within a call that records an act of its own on `key`."""

    key: str
    inner: Batch


class Item(_In):
    """A note to bring back: `value` is what to give back, `base` what the undone act had left."""

    key: str
    value: str | None
    base: str | None


class Items(_In):
    """Notes to bring back; with `only`, of these resources alone."""

    items: list[Item]
    only: list[str] | None = None


class Whole(_In):
    """Notes to bring back, all of them or none."""

    items: list[Item]


class Resources(_In):
    resources: list[str]


class Change(BaseModel):
    resource: str
    action: str
    reason: str = ""
    version: str = ""


class Acted(BaseModel):
    act: str | None


class Restored(BaseModel):
    effects: list[Change]


class Versions(BaseModel):
    versions: dict[str, str]


def resource(key: str) -> str:
    """The resource of a note."""
    return f"notes:{key}"


class Notes(Module):
    """Notes under keys; a key may hold slashes, and a scope's roots are keys with what lies beneath them."""

    manifest: ClassVar[Manifest] = Manifest(
        1, "notes", "Notes for tests.", needs=("undo",), calls=("undo.*", "notes.*", "deputy.*")
    )
    notebook: ClassVar[Notebook]

    @tool(effect="write", reach=("person", "agents", "modules"))
    async def put(self, ctx: Context, args: Put) -> Acted:
        """Put a value under a key."""
        if args.key == self.notebook.refused:
            raise TakebackError("notes.refused", f"The notebook refuses {args.key}")
        return await self._change(ctx, "notes.put", {args.key: args.value})

    @tool(effect="write", reach=("person", "agents", "modules"))
    async def fill(self, ctx: Context, args: Fill) -> Acted:
        """Put one value under several keys at once."""
        return await self._change(ctx, "notes.fill", dict.fromkeys(args.keys, args.value))

    @tool(effect="write", reach=("person", "agents", "modules"))
    async def delete(self, ctx: Context, args: Key) -> Acted:
        """Delete a note."""
        self._existing(args.key)
        return await self._change(ctx, "notes.delete", {args.key: None})

    @tool(effect="write", reach=("person", "agents", "modules"))
    async def rename(self, ctx: Context, args: Rename) -> Acted:
        """Give a note another key."""
        value = self._existing(args.key)
        return await self._change(ctx, "notes.rename", {args.key: None, args.to: value})

    @tool(effect="write", reach=("person", "agents", "modules"))
    async def batch(self, ctx: Context, args: Batch) -> Acted:
        """Put several notes by calls of their own."""
        if args.undoes is not None:
            await ctx.call("undo.run", id=args.undoes)
        if args.own == "never":
            await self._put_all(ctx, args.items)
            return Acted(act=None)
        if args.own == "after":
            await self._put_all(ctx, args.items)
            recorded = await self._change(ctx, "notes.batch", {args.key: args.value})
            return await self._then(ctx, args, recorded)
        changes: dict[str, str | None] = {} if args.own == "final" else {args.key: args.value}
        async with act(ctx, **self._told("notes.batch", changes)) as opened:
            if args.own == "around":
                self.notebook.apply(changes)
            await self._put_all(ctx, args.items)
            if args.own == "after-intent":
                self.notebook.apply(changes)
        return await self._then(ctx, args, Acted(act=opened.id))

    async def _then(self, ctx: Context, args: Batch, answer: Acted) -> Acted:
        if args.then is not None:
            await ctx.call("notes.put", key=args.key, value=args.then)
        return answer

    @tool(effect="write", reach=("person", "agents", "modules"))
    async def nest(self, ctx: Context, args: Nest) -> Acted:
        """Put a note around a batch."""
        changes: dict[str, str | None] = {args.key: "ran"}
        async with act(ctx, **self._told("notes.nest", changes)) as opened:
            self.notebook.apply(changes)
            await ctx.call("notes.batch", args.inner)
        return Acted(act=opened.id)

    @tool(effect="write", reach=("modules",), previews=True)
    async def restore(self, ctx: Context, args: Items) -> Restored:
        """Bring notes back."""
        return await self._restore(ctx, "notes.restore", args)

    @tool(effect="write", reach=("modules",), previews=True)
    async def restore_plain(self, ctx: Context, args: Items) -> Restored:
        """Bring notes back and record nothing."""
        return await self._restore(ctx, None, args)

    @tool(effect="write", reach=("modules",))
    async def restore_blind(self, ctx: Context, args: Items) -> Restored:
        """Bring notes back without being able to say beforehand what will happen."""
        return await self._restore(ctx, "notes.restore_blind", args)

    @tool(effect="write", reach=("modules",), previews=True)
    async def restore_whole(self, ctx: Context, args: Whole) -> Restored:
        """Bring notes back, all of an act's or none."""
        return await self._restore(ctx, "notes.restore_whole", Items(items=args.items))

    @tool(effect="write", reach=("modules",), previews=True)
    async def restore_each(self, ctx: Context, args: Whole) -> Restored:
        """Bring notes back, each by an act of its own."""
        parts = [await self._restore(ctx, "notes.restore", Items(items=[item])) for item in args.items]
        return Restored(effects=[effect for part in parts for effect in part.effects])

    @tool(effect="read", reach=("modules",))
    async def versions(self, ctx: Context, args: Resources) -> Versions:
        """Tell the versions that notes have now."""
        found = {}
        for name in args.resources:
            key = name.removeprefix("notes:")
            _require_scope(ctx, key)
            found[name] = version(self._now(ctx, key))
        return Versions(versions=found)

    # ------------------------------------------------------------------ how it is done

    def _existing(self, key: str) -> str:
        if key not in self.notebook.values:
            raise TakebackError("notes.missing", f"There is no note {key}")
        return self.notebook.values[key]

    async def _put_all(self, ctx: Context, items: list[Put]) -> None:
        for item in items:
            await ctx.call("notes.put", item)

    async def _change(self, ctx: Context, name: str, changes: dict[str, str | None]) -> Acted:
        for key in changes:
            _require_scope(ctx, key)
        async with act(ctx, **self._told(name, changes)) as opened:
            faults.point("notes.changing")
            self.notebook.apply(changes)
            faults.point("notes.changed")
        return Acted(act=opened.id)

    def _told(self, name: str, changes: Mapping[str, str | None], inverse: str = "") -> dict[str, Any]:
        """What is recorded of changes that are about to be made."""
        old = self.notebook.values
        items = [{"key": key, "value": old.get(key), "base": new} for key, new in changes.items()]
        told: dict[str, Any] = {
            "tool": name,
            "summary": f"{name.partition('.')[2]} {', '.join(changes)}".strip(),
            "touched": [(resource(k), version(old.get(k)), version(new)) for k, new in changes.items()],
        }
        if changes:
            return told | {"inverse": (inverse or self.notebook.inverse, {"items": items})}
        return told | {"final_reason": "it did nothing by itself"}

    async def _restore(self, ctx: Context, inverse: str | None, args: Items) -> Restored:
        if args.only is not None:
            args = Items(items=[item for item in args.items if resource(item.key) in args.only])
        for item in args.items:
            ctx.confine(resource(item.key))
            _require_scope(ctx, item.key)
        results = [self._result(ctx, item) for item in args.items]
        effects = [effect for effect, _ in results]
        changes = {
            item.key: value
            for item, (effect, value) in zip(args.items, results, strict=True)
            if effect.action != "skip"
        }
        if ctx.dry_run:
            if self.notebook.objects is not None:
                raise self.notebook.objects
            if ctx.rehearsal is not None and not any(e.action in ("conflict", "gone") for e in effects):
                ctx.rehearsal.setdefault("notes", {}).update(changes)
            return Restored(effects=effects)
        await self._disturb(ctx)
        failure = self.notebook.failures.pop(0) if self.notebook.failures else ""
        if failure == "crash":
            raise RuntimeError("a fault in the module")
        _fail_if(failure == "before")
        self._require_expected(ctx, args.items)
        if clash := next((e for e in effects if e.action in ("conflict", "gone")), None):
            raise ConflictError("notes.conflict", f"{clash.resource} is {clash.action}")
        self.notebook.ran.append([item.key for item in args.items])
        if changes:
            await self._carry_out(ctx, inverse, changes, failure)
        return Restored(effects=effects)

    async def _disturb(self, ctx: Context) -> None:
        if self.notebook.waits is not None:
            entered, go = self.notebook.waits
            self.notebook.waits = None
            entered.set()
            await go.wait()
        if self.notebook.asks is not None:
            name, given = self.notebook.asks
            await ctx.call(name, given)

    async def _carry_out(
        self, ctx: Context, inverse: str | None, changes: dict[str, str | None], failure: str
    ) -> None:
        if inverse is None:
            self.notebook.apply(changes)
            return
        async with act(ctx, **self._told("notes.restore", changes, inverse)):
            _fail_if(failure == "inside")
            faults.point("notes.restoring")
            self.notebook.apply(changes)
            faults.point("notes.restored")
            _fail_if(failure == "late")

    def _require_expected(self, ctx: Context, items: list[Item]) -> None:
        for item in items:
            now = version(self.notebook.values.get(item.key))
            if ctx.confined_to is not None and ctx.confined_to[resource(item.key)] != now:
                raise ConflictError(
                    "undo.changed", f"{resource(item.key)} has changed since the plan was made"
                )

    def _result(self, ctx: Context, item: Item) -> tuple[Change, str | None]:
        """What bringing one note back comes to, and the value it has afterwards."""
        now = self._now(ctx, item.key)
        name = resource(item.key)
        back = Change(
            resource=name, action="delete" if item.value is None else "restore", version=version(item.value)
        )
        if now == item.value:
            return Change(resource=name, action="skip", reason="unchanged", version=version(now)), now
        if now == item.base:
            return back, item.value
        merged = _merge(item, now) if self.notebook.merges else None
        if merged is not None:
            return Change(resource=name, action="merge", version=version(merged)), merged
        if ctx.force:
            return back, item.value
        action = "gone" if now is None else "conflict"
        return Change(resource=name, action=action, reason="somebody changed it since"), now

    def _now(self, ctx: Context, key: str) -> str | None:
        rehearsed: dict[str, str | None] = (ctx.rehearsal or {}).get("notes", {})
        return rehearsed[key] if key in rehearsed else self.notebook.values.get(key)


def notes_module(notebook: Notebook) -> type[Notes]:
    """A `Notes` module over a notebook."""

    class Opened(Notes):
        pass

    Opened.notebook = notebook
    return Opened


def _require_scope(ctx: Context, key: str) -> None:
    if ctx.scope is None or EVERYTHING in ctx.scope.roots:
        return
    if not any(key == root or key.startswith(root + "/") for root in ctx.scope.roots):
        raise RefusedError("scope.outside", f"{resource(key)} is outside what this agent may touch")


def _fail_if(failing: bool) -> None:
    if failing:
        raise TakebackError("notes.broken", "The notebook is stuck", "Try again.")


def _words(value: str | None) -> frozenset[str] | None:
    if value is None or "," not in value:
        return None
    return frozenset(word for word in value.split(",") if word)


def _merge(item: Item, now: str | None) -> str | None:
    """The words of now without what the act added and with what it took, where all three are words."""
    base, ours, theirs = _words(item.base), _words(now), _words(item.value)
    if base is None or ours is None or theirs is None:
        return None
    words = sorted((ours - (base - theirs)) | (theirs - base))
    return ",".join(words) + ("," if len(words) < 2 else "")
