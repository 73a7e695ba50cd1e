"""The demo: an agent works on a folder, the person changes something too, and takes the agent's work back."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio

from takeback_doors.cli.demo import juno, tree
from takeback_doors.cli.demo.person import Person

_LINE = "\nThis line is mine: I wrote it while juno was away.\n"


class BrokenPromiseError(Exception):
    """Something is not as the demo says."""


class Story:
    """Tells what happens as it happens; raises BrokenPromiseError when anything is not as promised."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say

    def tell(self) -> None:
        """Run the whole story in a temporary folder, with a daemon of its own."""
        with tempfile.TemporaryDirectory(prefix="takeback-demo-") as folder:
            here = Path(folder).resolve()
            work = here / "project"
            work.mkdir()
            person = Person(here / "home")
            try:
                self._act_one(person, work)
            finally:
                person.ask("stop")

    def _act_one(self, person: Person, work: Path) -> None:
        tree.sample(work)
        before = tree.fingerprint(work)
        self._say(f"A project with {len(before)} files and folders lies in {work}.")
        added = self._expect(person.ask("agents", "add", "juno", "--root", str(work)), "agents add juno")
        url = self._expect(person.ask("status"), "status")["mcp"]["url"]
        self._say(f"The daemon runs, and juno may work in that folder. Its MCP client connects to {url}.")
        acts = anyio.run(self._let_work, url, added["token"], work)
        changed = tree.differences(before, tree.fingerprint(work))
        self._say(f"juno did {acts} things in three turns; {len(changed)} paths are no longer as they were.")
        _require(acts >= 30, f"juno was to act at least 30 times, and did {acts}")
        self._take_back(person, work, before, acts)

    async def _let_work(self, url: str, token: str, work: Path) -> int:
        async with juno.connected(url, token, work) as agent:
            await agent.work()
            return agent.acts

    def _take_back(self, person: Person, work: Path, before: dict[str, str], acts: int) -> None:
        log = self._expect(person.ask("log", "--limit", "100"), "log")["acts"]
        _require(len(log) == acts, f"the log was to hold {acts} acts, and holds {len(log)}")
        self._say("\n$ takeback log --limit 6\n" + person.read("log", "--limit", "6"))
        self._undo_one(person, work, log)
        page = self._edit_by_hand(work)
        self._rewind(person, work)
        self._check(work, before, page)

    def _undo_one(self, person: Person, work: Path, log: list[dict[str, Any]]) -> None:
        gone = work / "docs" / "pictures"
        act = next(one for one in log if str(gone) in one["summary"] and one["tool"] == "files.delete")
        self._say("The pictures are gone! What would undoing that do?")
        plan = self._expect(person.ask("undo", act["id"], "--dry-run"), "undo --dry-run")["plan"]
        _require(not gone.exists(), "a preview was to change nothing")
        self._say(f"\n$ takeback undo {act['id']} --dry-run\n" + person.read("undo", act["id"], "--dry-run"))
        done = self._expect(person.ask("undo", act["id"], "--digest", plan["digest"]), "undo")
        _require(done["results"][0]["state"] == "undone", "the act was to be undone")
        _require((gone / "empty").is_dir(), "the empty folder was to come back")
        again = self._expect(person.ask("undo", act["id"]), "undo again")
        _require(again["results"][0]["already"], "a second undo was to say that it is done already")
        self._say("The folder is back, its empty subfolder too. Tapping Undo once more does nothing.\n")

    def _edit_by_hand(self, work: Path) -> Path:
        page = sorted((work / "docs").glob("*.md"))[-1]
        page.write_text(page.read_text() + _LINE)
        self._say(f"Meanwhile I add a line of my own to docs/{page.name}, which juno has edited as well.")
        return page

    def _rewind(self, person: Person, work: Path) -> None:
        words = ("rewind", "--session", juno.SESSION)
        plan = self._expect(person.ask(*words, "--dry-run"), "rewind --dry-run")["plan"]
        counts = ", ".join(f"{count} {status}" for status, count in plan["counts"].items())
        self._say(f"What would taking all of it back do? The plan has {len(plan['steps'])} steps: {counts}.")
        _require(not plan["conflicts"], f"the plan was to have no conflict, and has {plan['conflicts']}")
        done = self._expect(person.ask(*words, "--digest", plan["digest"]), "rewind")
        self._say(f"$ takeback rewind --session {juno.SESSION}\n{len(done['results'])} acts taken back.\n")

    def _check(self, work: Path, before: dict[str, str], page: Path) -> None:
        after = tree.fingerprint(work)
        name = str(page.relative_to(work))
        changed = tree.differences(before, after)
        _require(changed == [name], f"only {name} was to differ, but these do: {changed[:5]}")
        text = page.read_text()
        _require(text.endswith(_LINE), "the person's own line was to survive")
        page.write_text(text.removesuffix(_LINE))
        left = tree.differences(before, tree.fingerprint(work))
        _require(not left, f"{name} was to differ by the person's line alone")
        self._say(
            f"Checked by SHA-256: all {len(before)} files and folders are byte for byte as before juno came,"
        )
        self._say(
            f"modes and links included, and docs/{page.name} has kept my line and nothing else of that time."
        )

    def _expect(self, answer: dict[str, Any], what: str) -> dict[str, Any]:
        _require(answer.get("ok") is True, f"`takeback {what}` failed: {answer.get('error')}")
        return answer


def _require(holds: bool, promise: str) -> None:
    if not holds:
        raise BrokenPromiseError(promise)
