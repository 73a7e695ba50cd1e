"""Watching: files really appear, are moved by their rules, and are taken back like anybody's acts."""

import subprocess
import sys
from typing import ClassVar

import anyio
import pytest

from takeback.manifest import read_manifest
from takeback_acts.watchers.module import WatchersModule
from tests.docs.sources import MODULES

pytestmark = pytest.mark.anyio


async def test_a_file_that_appears_is_moved_and_the_log_says_by_whom_and_why(watching, rule, inbox):
    async with watching(rule(target="{year}/{month}/{name}")) as room:
        (inbox / "a.pdf").write_text("paper")
        await room.told("Rule papers moved 1 file")
        (act,) = await room.acts()
        assert (act.actor, act.actor_kind, act.session) == ("module:watchers", "module", "watchers:papers")
        assert act.why == [f"rule papers: move *.pdf in {inbox} to {{year}}/{{month}}/{{name}}"]
        assert {item.resource.rpartition("/inbox")[2] for item in act.touched} >= {"/a.pdf"}
        assert [made.why for made in await room.acts("files.make_dir")] == [act.why] * 2
        assert (await room.check("watcher papers")).ok
    (moved,) = inbox.glob("????/??/a.pdf")
    assert moved.read_text() == "paper"
    assert not (inbox / "a.pdf").exists()


async def test_a_file_is_renamed_in_its_folder(watching, rule, inbox):
    async with watching(rule(pattern="scan*.pdf", action="rename", target="{stem}-new.txt")) as room:
        (inbox / "scan1.pdf").write_text("paper")
        await room.told("moved 1")
    assert [path.name for path in inbox.iterdir()] == ["scan1-new.txt"]


async def test_what_no_rule_matches_and_what_was_there_before_stays(watching, rule, inbox):
    (inbox / "old.pdf").write_text("old")
    async with watching(rule()) as room:
        (inbox / "b.txt").write_text("note")
        (inbox / ".hidden.pdf").write_text("note")
        (inbox / "c.pdf").mkdir()
        (inbox / "d.pdf").symlink_to("old.pdf")
        (inbox / "new.pdf").write_text("new")
        await room.told("moved 1")
        assert len(await room.acts()) == 1
        (inbox / "old.pdf").write_text("old and more")
        await room.told("moved 1", times=2)
    assert sorted(path.name for path in inbox.iterdir()) == [".hidden.pdf", "b.txt", "c.pdf", "d.pdf", "pdf"]
    assert sorted(path.name for path in (inbox / "pdf").iterdir()) == ["new.pdf", "old.pdf"]


async def test_an_undo_holds_until_the_file_changes(watching, rule, inbox):
    async with watching(rule()) as room:
        (inbox / "a.pdf").write_text("paper")
        await room.told("moved 1")
        (act,) = await room.acts()
        outcome = await room.me.undo.run(id=act.id)
        assert [result.state for result in outcome.results] == ["undone"]
        await room.told("leaves 1 file alone that an undo brought back")
        assert (inbox / "a.pdf").read_text() == "paper"
        assert (await room.check("watcher papers")).ok
        (inbox / "a.pdf").write_text("paper, corrected")
        await room.told("moved 1", times=2)
    assert (inbox / "pdf" / "a.pdf").read_text() == "paper, corrected"


async def test_an_undo_holds_after_a_restart(watching, rule, inbox):
    async with watching(rule()) as room:
        (inbox / "a.pdf").write_text("paper")
        await room.told("moved 1")
        await room.me.undo.run(id=(await room.acts())[0].id)
        await room.told("an undo brought back")
    async with watching(rule()) as room:
        # As a program does that writes the same again.
        (inbox / "a.pdf").write_text("paper")
        await room.told("an undo brought back")
        (inbox / "b.pdf").write_text("another")
        await room.told("moved 1")
    assert (inbox / "a.pdf").read_text() == "paper"


async def test_a_redo_moves_it_again_and_the_next_of_its_name_is_moved_too(watching, rule, inbox):
    async with watching(rule(target="{date}/{stem}-{date}{suffix}")) as room:
        (inbox / "a.pdf").write_text("paper")
        await room.told("moved 1")
        (act,) = await room.acts()
        await room.me.undo.run(id=act.id)
        await room.told("an undo brought back")
        await room.me.undo.redo(id=act.id)
        assert not (inbox / "a.pdf").exists()
        assert len(list(inbox.glob("*/a-*.pdf"))) == 1


async def test_a_target_that_is_there_is_not_overwritten_and_doctor_says_so_until_it_is_settled(
    watching, rule, inbox
):
    (inbox / "pdf").mkdir()
    (inbox / "pdf" / "a.pdf").write_text("mine")
    async with watching(rule()) as room:
        (inbox / "a.pdf").write_text("paper")
        await room.told("left 1 file (files.exists)")
        found = await room.check("watcher papers")
        assert not found.ok
        assert str(inbox / "a.pdf") in found.detail
        assert found.hint
        (inbox / "a.pdf").rename(inbox / "b.pdf")
        await room.told("moved 1")
        assert (await room.check("watcher papers")).ok
    assert (inbox / "pdf" / "a.pdf").read_text() == "mine"
    assert (inbox / "pdf" / "b.pdf").read_text() == "paper"


@pytest.mark.parametrize(
    "given",
    [
        [{"action": "rename", "target": "{date} {name}"}],
        [{"target": "more/"}, {"name": "next", "root": "more", "target": "{year}/"}],
    ],
)
async def test_a_loop_is_not_begun(watching, rule, inbox, given):
    (inbox / "more").mkdir()
    rules = [rule(**(one | ({"root": str(inbox / "more")} if "root" in one else {}))) for one in given]
    async with watching(*rules) as room:
        (inbox / "a.pdf").write_text("paper")
        await room.told("left 1 file (watchers.loop)")
        assert not (await room.check("watcher papers")).ok
        assert await room.acts() == []
    assert (inbox / "a.pdf").read_text() == "paper"


async def test_of_two_rules_the_first_has_the_file_and_doctor_says_so(watching, rule, inbox):
    rules = [rule(name="bills", pattern="bill*.pdf", target="bills/"), rule()]
    async with watching(*rules) as room:
        (inbox / "bill.pdf").write_text("bill")
        (inbox / "paper.pdf").write_text("paper")
        await room.told("Rule bills moved 1")
        await room.told("Rule papers moved 1")
        assert "1 by bills" in (await room.check("watcher papers")).detail
    assert (inbox / "bills" / "bill.pdf").read_text() == "bill"
    assert (inbox / "pdf" / "paper.pdf").read_text() == "paper"


async def test_a_link_in_the_root_leads_nothing_out_of_it(watching, rule, inbox, tmp_path):
    (tmp_path / "outside").mkdir()
    (inbox / "pdf").symlink_to(tmp_path / "outside")
    async with watching(rule()) as room:
        (inbox / "a.pdf").write_text("paper")
        await room.told("left 1 file (files.link)")
    assert list((tmp_path / "outside").iterdir()) == []
    assert (inbox / "a.pdf").read_text() == "paper"


async def test_a_root_that_is_missing_is_waited_for(watching, rule, tmp_path):
    root = tmp_path / "far" / "away"
    async with watching(rule(root=str(root))) as room:
        await room.told(f"{root} can't be watched until it is there")
        assert not (await room.check("watcher papers")).ok
        root.mkdir(parents=True)
        (root / "a.pdf").write_text("paper")
        await room.told("moved 1")
        assert (await room.check("watcher papers")).ok
    assert (root / "pdf" / "a.pdf").read_text() == "paper"


async def test_a_root_that_vanishes_and_comes_back_is_watched_again(watching, rule, inbox, tmp_path):
    (inbox / "old.pdf").write_text("old")
    async with watching(rule()) as room:
        inbox.rename(tmp_path / "elsewhere")
        await room.told(f"{inbox} can't be watched")
        (tmp_path / "elsewhere").rename(inbox)
        await room.told(f"{inbox} is there again")
        (inbox / "a.pdf").write_text("paper")
        await room.told("moved 1")
        assert [act.summary.split("/")[-1] for act in await room.acts()] == ["a.pdf"]
    assert (inbox / "old.pdf").read_text() == "old"


async def test_what_no_event_tells_of_is_seen_by_looking(watching, rule, tmp_path):
    root = tmp_path / "far" / "away"
    root.mkdir(parents=True)
    async with watching(rule(root=str(root)), look_seconds=1) as room:
        # Neither the root itself nor what lies in it has changed.
        (tmp_path / "far").rename(tmp_path / "further")
        await room.told(f"{root} can't be watched")


async def test_a_root_that_goes_in_the_middle_of_a_burst_harms_nobody(watching, rule, inbox, tmp_path):
    async with watching(rule()) as room:
        for number in range(50):
            (inbox / f"{number}.pdf").write_text(f"paper {number}")
        await room.until(lambda: (inbox / "pdf").is_dir() and any((inbox / "pdf").iterdir()))
        inbox.rename(tmp_path / "elsewhere")
        await room.told(f"{inbox} can't be watched")
        assert not inbox.exists()
        (tmp_path / "elsewhere").rename(inbox)
        await room.until(lambda: len(list((inbox / "pdf").iterdir())) == 50)


async def test_a_burst_is_moved_whole_and_taken_back_as_one_session(watching, rule, inbox):
    many = 1000
    async with watching(rule()) as room:
        for number in range(many):
            (inbox / f"{number}.pdf").write_text(f"paper {number}")
        await room.until(lambda: sum(_moved(line) for line in room.said) == many)
        assert len(list((inbox / "pdf").iterdir())) == many
        assert len(room.said) < 20
        outcome = await room.me.undo.rewind(session="watchers:papers")
        assert len(outcome.results) == many + 1
        await room.until(lambda: sum(_left(line) for line in room.said) == many)
    assert sorted(path.name for path in inbox.iterdir()) == sorted(f"{number}.pdf" for number in range(many))
    assert (inbox / "7.pdf").read_text() == "paper 7"


def _moved(line):
    return int(line.split()[3].replace(",", "")) if line.startswith("Rule papers moved") else 0


def _left(line):
    return int(line.split()[3].replace(",", "")) if line.startswith("Rule papers leaves") else 0


async def test_a_name_that_is_no_text_is_moved_too(watching, rule, inbox):
    name = b"caf\xe9.pdf".decode("utf-8", "surrogateescape")
    async with watching(rule()) as room:
        (inbox / name).write_text("paper")
        await room.told("moved 1")
    assert (inbox / "pdf" / name).read_text() == "paper"


class Clocked(WatchersModule):
    """Watchers by a clock that a test sets."""

    manifest = read_manifest(MODULES / "takeback_acts" / "watchers")
    now: ClassVar[float]

    @classmethod
    def clock(cls):
        return cls.now


async def test_a_file_that_still_grows_is_not_taken(watching, rule, inbox):
    Clocked.now = 0
    async with watching(rule(), watchers=Clocked, settle_seconds=10) as room:
        due = room.module._roots[0].arrivals.next_due

        async def seen(when):
            with anyio.fail_after(30):
                while due() != when:
                    (inbox / "stir").write_text("")
                    await anyio.lowlevel.checkpoint()

        with (inbox / "a.pdf").open("w", buffering=1) as file:
            file.write("half")
            file.flush()
            await seen(10)
            Clocked.now = 9
            file.write(" a paper")
            file.flush()
            await seen(19)
        Clocked.now = 18
        assert await room.acts() == []
        Clocked.now = 19
        (inbox / "stir").write_text("now")
        await room.told("moved 1")
    assert (inbox / "pdf" / "a.pdf").read_text() == "half a paper"


async def test_rules_that_are_wrong_are_told_and_stop_nobody(watching, rule, inbox):
    async with watching(rule(name="out", target="../{name}"), rule()) as room:
        assert any("Rule out is off (watchers.template)" in line for line in room.said)
        found = await room.check("watcher out")
        assert not found.ok
        (inbox / "a.pdf").write_text("paper")
        await room.told("moved 1")


async def test_watchers_may_call_what_they_need_and_no_more(watching, rule):
    async with watching(rule()) as room:
        tools = [spec.name for spec in room.kernel.tools.reachable("module:watchers")]
        assert tools == ["files.make_dir", "files.move", "files.versions", "undo.list"]


async def test_without_rules_nothing_is_watched(watching):
    async with watching() as room:
        assert await room.module.checks() == []


def test_without_rules_what_watches_is_not_even_imported():
    script = (
        "import sys, takeback_acts.watchers.module as m;"
        "sys.exit('watchfiles' in sys.modules or 'takeback_acts.watchers.watch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
