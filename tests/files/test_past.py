"""What was at a path before: its history, what an act changed in it, and the sides of a conflict laid out."""

import pytest

from takeback.errors import ConflictError, NotFoundError, TakebackError, UsageError

pytestmark = pytest.mark.anyio


async def write(bench, name, content, who=None):
    return (await (who or bench.agent()).call("files.write", path=name, content=content)).act


async def test_history_is_newest_first_with_the_versions(bench, root):
    first = await write(bench, "a", "one\n")
    second = await write(bench, "a", "two\n")
    await write(bench, "b", "other\n")
    await bench.undo(second)
    found = await bench.person().call("files.history", path=str(root / "a"))
    assert [act.state for act in found.acts] == ["done", "undone", "done"]
    assert [act.act for act in found.acts][1:] == [second, first]
    assert [act.before for act in found.acts][1:] == [found.acts[2].after, "absent"]
    assert found.acts[0].after == found.acts[2].after
    page = await bench.person().call("files.history", path=str(root / "a"), limit=1)
    rest = await bench.person().call("files.history", path=str(root / "a"), cursor=page.next)
    assert [*page.acts, *rest.acts] == found.acts


async def test_history_of_an_agent_holds_its_own_acts_and_stays_in_its_roots(bench, root, tmp_path):
    own = await write(bench, "a", "one\n")
    await write(bench, "a", "two\n", bench.agent("otto"))
    found = await bench.agent().call("files.history", path="a")
    assert [act.act for act in found.acts] == [own]
    with pytest.raises(TakebackError) as refused:
        await bench.agent().call("files.history", path=str(tmp_path / "elsewhere"))
    assert refused.value.code == "scope.outside"


async def test_history_holds_acts_on_a_folder_around(bench, root):
    (root / "d").mkdir()
    (root / "d" / "a").write_text("one\n")
    act = (await bench.agent().call("files.delete", path="d", recursive=True)).act
    (one,) = (await bench.person().call("files.history", path=str(root / "d" / "a"))).acts
    assert (one.act, one.before, one.after) == (act, "", "")
    with pytest.raises(UsageError) as refused:
        await bench.person().call("files.diff", path=str(root / "d" / "a"))
    assert refused.value.code == "files.folder_act"


async def test_a_diff_of_an_act_and_of_what_has_changed_since(bench, root):
    (root / "a").write_text("".join(f"{n}\n" for n in range(20)))
    act = (await bench.agent().call("files.edit", path="a", old="\n10\n", new="\nten\n")).act
    of_act = await bench.agent().call("files.diff", path="a", act=act)
    assert of_act.text == (
        f"--- {root}/a\n+++ {root}/a\n@@ -8,7 +8,7 @@\n 7\n 8\n 9\n-10\n+ten\n 11\n 12\n 13\n"
    )
    with (root / "a").open("a") as file:
        file.write("by hand")
    since = await bench.agent().call("files.diff", path="a")
    assert since.act == act
    assert (
        since.text
        == of_act.text + "@@ -18,3 +18,4 @@\n 17\n 18\n 19\n+by hand\n\\ No newline at end of file\n"
    )


async def test_a_diff_of_a_file_that_was_made_and_of_one_that_is_gone(bench, root):
    act = await write(bench, "a", "new\n")
    made = await bench.agent().call("files.diff", path="a", act=act)
    assert made.text == f"--- /dev/null\n+++ {root}/a\n@@ -0,0 +1,1 @@\n+new\n"
    gone = (await bench.agent().call("files.delete", path="a")).act
    assert (await bench.agent().call("files.diff", path="a")).text == (
        f"--- {root}/a\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-new\n"
    )
    assert (await bench.agent().call("files.diff", path="a", act=gone)).before == made.after


async def test_a_diff_of_what_is_no_text(bench, root):
    (root / "a").write_bytes(b"\0" * 10)
    await write(bench, "a", "text\n")
    found = await bench.agent().call("files.diff", path="a")
    assert (found.text, found.note) == (None, "not text; 10 bytes became 5")


async def test_a_diff_of_what_nobody_acted_on_or_whose_bytes_are_gone(bench, root):
    (root / "a").write_text("by hand\n")
    with pytest.raises(NotFoundError) as refused:
        await bench.person().call("files.diff", path=str(root / "a"))
    assert refused.value.code == "files.no_past"
    binary = (await bench.agent().call("files.write", path="b", content_base64="AAAA")).act
    (root / "b").write_text("something else\n")
    with pytest.raises(NotFoundError) as refused:
        await bench.person().call("files.diff", path=str(root / "b"), act=binary)
    assert refused.value.code == "files.not_kept"


async def test_the_sides_of_a_conflict_are_laid_out_and_taken_away_again(bench, root, snapshot):
    (root / "a").write_text("before\n")
    act = await write(bench, "a", "the agent's\n")
    (root / "a").write_text("by hand\n")
    as_it_was = snapshot(root)
    with pytest.raises(ConflictError):
        await bench.undo(act)
    laid = await bench.person().call("files.lay_out", path=str(root / "a"), act=act)
    beside = {name.rpartition("-")[2]: (root / name).read_text() for name in laid.paths}
    assert beside == {"base": "the agent's\n", "ours": "by hand\n", "theirs": "before\n"}
    assert (root / "a").read_text() == "by hand\n"
    with pytest.raises(ConflictError) as refused:
        await bench.person().call("files.lay_out", path=str(root / "a"), act=act)
    assert refused.value.code == "files.exists"
    await bench.undo(laid.act)
    assert snapshot(root) == as_it_was


async def test_sides_that_are_no_file_or_not_kept_are_told(bench, root):
    act = (await bench.agent().call("files.write", path="a", content_base64="AAAA")).act
    (root / "a").write_text("by hand\n")
    laid = await bench.agent().call("files.lay_out", path="a", act=act)
    assert [name.rpartition("-")[2] for name in laid.paths] == ["ours"]
    assert laid.notes == ["base is not kept", "theirs is no file: absent"]


async def test_laying_out_stays_in_the_agents_roots_and_acts(bench, root):
    act = await write(bench, "a", "new\n")
    with pytest.raises(NotFoundError) as refused:
        await bench.agent("otto").call("files.lay_out", path="a", act=act)
    assert refused.value.code == "files.no_past"
    with pytest.raises(TakebackError) as outside:
        await bench.agent(roots=[root / "sub"]).call("files.lay_out", path=str(root / "a"), act=act)
    assert outside.value.code == "scope.outside"


async def test_a_rehearsal_lays_nothing_out(bench, root, snapshot):
    act = await write(bench, "a", "new\n")
    before = snapshot(root)
    laid = await bench.person(dry_run=True).call("files.lay_out", path=str(root / "a"), act=act)
    assert (len(laid.paths), laid.act) == (2, None)
    assert snapshot(root) == before
