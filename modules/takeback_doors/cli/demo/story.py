"""The demo: an agent works on a folder, the person changes something too, and takes the agent's work back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import anyio

from takeback_doors.cli.demo import juno, tree
from takeback_doors.cli.demo.person import Person
from takeback_doors.cli.demo.promise import require
from takeback_doors.cli.demo.stage import stage
from takeback_doors.cli.ids import shortened

_LINE = "\nThis line is yours: you wrote it while juno was away.\n"
_LOGGED = 3


class Story:
    """Tells what happens as it happens; raises BrokenPromiseError when anything is not as promised."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._parts = 0

    def tell(self) -> None:
        """Run the whole story in a temporary folder, with a daemon of its own."""
        with stage() as (person, work):
            self._say("You let an agent, juno, work on a project of yours, and take back what it did.")
            person.start()
            tree.sample(work)
            before = tree.fingerprint(work)
            self._say(
                f"Its {len(before)} files and folders are a sample, in a folder of their own that is removed"
            )
            self._say(f"at the end: {work}")
            log = self._let_work(person, work, before)
            self._undo_one(person, work, log)
            page = self._edit_by_hand(work)
            self._rewind(person, page)
            self._check(work, before, page)

    # ------------------------------------------------------------------ the parts of the story

    def _let_work(self, person: Person, work: Path, before: dict[str, str]) -> list[dict[str, Any]]:
        self._part("What juno did")
        added = self._expect(person.ask("agents", "add", "juno", "--root", str(work)), "agents add juno")
        url = self._expect(person.ask("status"), "status")["mcp"]["url"]
        acts = anyio.run(self._connect, url, added["token"], work)
        changed = tree.differences(before, tree.fingerprint(work))
        log: list[dict[str, Any]] = self._expect(person.ask("log", "--limit", "100"), "log")["acts"]
        require(acts >= 30, f"juno was to act at least 30 times, and did {acts}")
        require(len(log) == acts, f"the log was to hold {acts} acts, and holds {len(log)}")
        self._say("It came in over MCP, and on three requests of yours it rewrote, moved and deleted.")
        self._say(f"That made {acts} acts, and {len(changed)} paths are not as they were. The last acts:\n")
        self._show(("log", "--limit", str(_LOGGED)), person.read("log", "--limit", str(_LOGGED)))
        return log

    async def _connect(self, url: str, token: str, work: Path) -> int:
        async with juno.connected(url, token, work) as agent:
            await agent.work()
            return agent.acts

    def _undo_one(self, person: Person, work: Path, log: list[dict[str, Any]]) -> None:
        gone = work / "docs" / "pictures"
        act = next(one for one in log if str(gone) in one["summary"] and one["tool"] == "files.delete")
        short = shortened([one["id"] for one in log])[act["id"]]
        self._part("What undo would do")
        self._say("The pictures are gone! A dry run says what an undo would do, and changes nothing.\n")
        self._show(("undo", short, "--dry-run"), person.read("undo", act["id"], "--dry-run"))
        require(not gone.exists(), "a preview was to change nothing")
        self._part("The undo")
        self._show(("undo", short), person.read("undo", act["id"]))
        require((gone / "empty").is_dir(), "the empty folder was to come back")
        again = self._expect(person.ask("undo", act["id"]), "undo again")
        require(again["results"][0]["already"], "a second undo was to say that it is done already")
        self._say("\nThey are back, with an empty folder that lay among them.")

    def _edit_by_hand(self, work: Path) -> Path:
        page = sorted((work / "docs").glob("*.md"))[-1]
        page.write_text(page.read_text() + _LINE)
        self._part("Your own edit")
        self._say(f"You add a line to docs/{page.name}, a page that juno has changed as well.")
        return page

    def _rewind(self, person: Person, page: Path) -> None:
        self._part("The rewind")
        self._say("All that juno did in this session goes back: newest first, all of it or nothing.\n")
        words = ("rewind", "--session", juno.SESSION)
        plan = self._expect(person.ask(*words, "--dry-run"), "rewind --dry-run")["plan"]
        require(not plan["conflicts"], f"the plan was to have no conflict, and has {plan['conflicts']}")
        lines = person.read(*words)
        left = self._expect(person.ask("log", "--session", juno.SESSION, "--state", "done"), "log")["acts"]
        require(not left, f"all of the session was to be undone, but {len(left)} acts were not")
        counts = " and ".join(f"{count} {status}" for status, count in plan["counts"].items())
        self._show(words, [*_step_on(page.name, lines), f"… and so on, {counts} …", lines[-1]])

    def _check(self, work: Path, before: dict[str, str], page: Path) -> None:
        after = tree.fingerprint(work)
        name = str(page.relative_to(work))
        changed = tree.differences(before, after)
        require(changed == [name], f"only {name} was to differ, but these do: {changed[:5]}")
        text = page.read_text()
        require(text.endswith(_LINE), "the person's own line was to survive")
        page.write_text(text.removesuffix(_LINE))
        left = tree.differences(before, tree.fingerprint(work))
        require(not left, f"{name} was to differ by the person's line alone")
        self._part("The check")
        self._say(f"By SHA-256, all {len(before)} files and folders are byte for byte as before juno came,")
        self._say(f"modes and links too. docs/{page.name} has kept your line and nothing else.")

    # ------------------------------------------------------------------ telling

    def _part(self, heading: str) -> None:
        self._parts += 1
        self._say(f"\n{self._parts}. {heading}\n")

    def _show(self, words: Iterable[str], lines: Iterable[str]) -> None:
        self._say("\n".join(f"    {line}".rstrip() for line in (f"$ takeback {' '.join(words)}", *lines)))

    def _expect(self, answer: dict[str, Any], what: str) -> dict[str, Any]:
        require(answer.get("ok") is True, f"`takeback {what}` failed: {answer.get('error')}")
        return answer


def _step_on(name: str, lines: list[str]) -> list[str]:
    """The lines of the step that names a file, out of those of a plan."""
    start = next((number for number, line in enumerate(lines) if name in line), 0)
    end = next((number for number, line in enumerate(lines) if number > start and line[:1] != " "), start)
    return lines[start:end]
