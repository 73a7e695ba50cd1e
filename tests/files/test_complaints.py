"""What people complain of in other tools' undo, each as it went wrong there, with commands and real git."""

import pytest

from takeback.errors import ConflictError
from tests.files.test_commands import Running, sh, shown

pytestmark = pytest.mark.anyio


@pytest.fixture
def repo(root):
    """A repository with a commit, ignored data, and work that nobody committed."""
    sh(root, "git init -q -b main .; echo secret > .env; printf '.env\\nout/\\n' > .gitignore")
    sh(
        root,
        "echo 1 > tracked; git add .; git commit -qm 1; mkdir out; echo big > out/big; echo u > untracked",
    )
    return root


async def rewind(bench, session, **more):
    return await bench.person().call("undo.rewind", session=session, **more)


async def test_1_edits_made_by_a_shell_are_seen_and_come_back(bench, repo, snapshot):
    before = snapshot(repo)
    agent = bench.agent(session="auto")
    for script in ("sed -i s/1/2/ tracked", "echo x >> untracked; mv out elsewhere", "rm .env; touch new"):
        async with Running(agent, repo, "sh", "-c", script):
            sh(repo, script)
    acts = (await bench.person().call("undo.list", session="auto")).acts
    assert len(acts) == 3
    await rewind(bench, "auto")
    assert snapshot(repo) == before


async def test_2_a_later_edit_of_the_person_is_not_overwritten_and_the_undo_can_be_redone(bench, root):
    (root / "text").write_text("1\n2\n3\n4\n5\n6\n7\n")
    (root / "whole").write_bytes(b"\0old")
    agent = bench.agent()
    async with Running(agent, root) as merged:
        sh(root, "sed -i s/1/one/ text")
    async with Running(agent, root) as clashing:
        (root / "whole").write_bytes(b"\0agent")
    sh(root, "sed -i s/7/seven/ text")
    (root / "whole").write_bytes(b"\0person")
    with pytest.raises(ConflictError):
        await bench.undo(clashing.ended.act)
    assert (root / "whole").read_bytes() == b"\0person"
    undone = await bench.undo(merged.ended.act)
    assert (root / "text").read_text() == "1\n2\n3\n4\n5\n6\nseven\n"
    await bench.person().call("undo.redo", id=undone.act)
    assert (root / "text").read_text() == "one\n2\n3\n4\n5\n6\nseven\n"


async def test_3_rewinding_a_session_that_changed_nothing_leaves_another_ones_work(bench, repo):
    async with Running(bench.agent(session="a"), repo):
        sh(repo, "echo work > work; sed -i s/1/mine/ tracked")
    async with Running(bench.agent(session="b"), repo):
        sh(repo, "cat tracked; git status")
    outcome = await rewind(bench, "b")
    assert outcome.results == []
    assert (repo / "work").read_text() == "work\n"
    assert (repo / "tracked").read_text() == "mine\n"


async def test_4_deleted_files_are_restored_whatever_git_thinks_of_them(bench, repo, snapshot):
    before = snapshot(repo)
    async with Running(bench.agent(), repo) as running:
        sh(repo, "rm -rf tracked untracked .env out")
    await bench.undo(running.ended.act)
    assert snapshot(repo) == before


async def test_5_untracked_outputs_that_the_agent_never_wrote_are_not_cleaned_away(bench, repo):
    async with Running(bench.agent(), repo) as running:
        sh(repo, "echo 2 > tracked; echo a > agents; echo b > dropped; echo 2 > removed")
    sh(repo, "echo later > results; rm dropped")
    await bench.undo(running.ended.act)
    # What the person has deleted since is not brought back either.
    found = sorted(path.name for path in repo.iterdir())
    assert found == [".env", ".git", ".gitignore", "out", "results", "tracked", "untracked"]
    assert (repo / "tracked").read_text() == "1\n"


async def test_6_an_undo_in_one_chat_leaves_the_others_and_its_redo_is_whole(bench, repo, snapshot):
    async with Running(bench.agent(session="one"), repo):
        sh(repo, "mkdir one; echo 1 > one/a; chmod 755 one/a; ln -s a one/l; rm untracked")
    async with Running(bench.agent(session="two"), repo):
        sh(repo, "mkdir two; echo 2 > two/a; echo 2 > tracked")
    after = snapshot(repo, times=False)
    undone = await rewind(bench, "one")
    assert not (repo / "one").exists()
    assert (repo / "two" / "a").read_text() == "2\n"
    assert (repo / "tracked").read_text() == "2\n"
    await bench.person().call("undo.redo", id=undone.act)
    assert snapshot(repo, times=False) == after


async def test_7_a_file_that_the_person_made_after_a_failed_read_stays(bench, repo):
    async with Running(bench.agent(session="s"), repo):
        sh(repo, "cat notes.md || true")
    (repo / "notes.md").write_text("the person's")
    async with Running(bench.agent(session="s"), repo):
        sh(repo, "cat notes.md; echo a > agents")
    await rewind(bench, "s")
    assert (repo / "notes.md").read_text() == "the person's"
    assert not (repo / "agents").exists()


async def test_8_an_old_baseline_and_a_session_in_a_subfolder_overwrite_nothing_beside(bench, repo):
    (repo / "sub").mkdir()
    (repo / "beside").write_text("old")
    async with Running(bench.person(), repo, roots=[str(repo)]):
        pass
    (repo / "beside").write_text("new")
    (repo / "sub" / "mine").write_text("person")
    async with Running(bench.agent(roots=[repo / "sub"]), repo / "sub") as running:
        sh(repo, "echo a > sub/agents; echo other > beside")
    assert running.ended.changed == 1
    await bench.undo(running.ended.act)
    assert (repo / "beside").read_text() == "other\n"
    assert (repo / "sub" / "mine").read_text() == "person"


async def test_9_a_restore_takes_no_commit_off_the_branch(bench, repo):
    async with Running(bench.agent(), repo) as running:
        sh(repo, "echo a > agents; echo 2 > tracked")
    sh(repo, "echo p > persons; git add persons; git commit -qm persons")
    head = sh(repo, "git rev-parse HEAD")
    await bench.undo(running.ended.act)
    assert sh(repo, "git rev-parse HEAD") == head
    assert (repo / "persons").exists()
    assert sh(repo, "git status --porcelain") == "?? untracked\n"


async def test_10_a_gitignore_that_comes_back_takes_no_ignored_data_along(bench, repo):
    (repo / ".gitignore").write_text(".env\nout/\ndata/\n")
    sh(repo, "mkdir data; echo precious > data/set")
    async with Running(bench.agent(), repo) as running:
        sh(repo, "git checkout -q .gitignore; echo a > agents")
    await bench.undo(running.ended.act)
    assert (repo / ".gitignore").read_text() == ".env\nout/\ndata/\n"
    assert (repo / "data" / "set").read_text() == "precious\n"
    assert (repo / "out" / "big").read_text() == "big\n"


async def test_11_and_12_nothing_is_written_into_the_persons_git(bench, repo, snapshot):
    before = snapshot(repo / ".git")
    async with Running(bench.agent(), repo) as running:
        sh(repo, "echo 2 > tracked; rm -r out")
    assert snapshot(repo / ".git") == before
    await bench.undo(running.ended.act)
    assert snapshot(repo / ".git") == before


async def test_13_a_restore_can_be_undone_moves_no_other_times_and_needs_no_git(bench, root, snapshot):
    sh(root, "echo 1 > a; echo 2 > b; mkdir d; echo 3 > d/c; touch -d 2020-01-01 b d/c")
    before = snapshot(root)
    async with Running(bench.agent(), root) as running:
        sh(root, "echo x > a")
    after = snapshot(root)
    undone = await bench.undo(running.ended.act)
    assert snapshot(root) == before
    await bench.undo(undone.act)
    assert {name: found for name, found in snapshot(root).items() if name != b"a"} == {
        name: found for name, found in after.items() if name != b"a"
    }
    assert (root / "a").read_text() == "x\n"


async def test_14_a_commit_that_was_pushed_is_not_undone_behind_the_remotes_back(bench, repo, tmp_path):
    sh(repo, f"git init -q --bare {tmp_path}/remote; git remote add origin {tmp_path}/remote")
    sh(repo, "git push -q origin main")
    async with Running(bench.agent(), repo) as running:
        sh(repo, "echo 2 > tracked; git commit -qam second")
    sh(repo, "git push -q origin main")
    head = sh(repo, "git rev-parse HEAD")
    with pytest.raises(ConflictError) as caught:
        await bench.undo(running.ended.act)
    assert "pushed" in caught.value.message
    assert sh(repo, "git rev-parse HEAD") == head
    assert (repo / "tracked").read_text() == "2\n"
    (moved,) = (await shown(bench, running.ended.act)).input["refs"]
    assert (moved["ref"], moved["new"]) == ("refs/heads/main", head.strip())
    await bench.undo(running.ended.act, force=True)
    assert sh(repo, "git rev-parse HEAD").strip() == moved["old"]


async def test_14_a_commit_that_was_not_pushed_is_undone_with_index_and_branch(bench, repo, tmp_path):
    sh(repo, f"git init -q --bare {tmp_path}/remote; git remote add origin {tmp_path}/remote")
    sh(repo, "git push -q origin main")
    first = sh(repo, "git rev-parse HEAD")
    async with Running(bench.agent(), repo) as running:
        sh(repo, "echo 2 > tracked; git commit -qam second")
    second = sh(repo, "git rev-parse HEAD")
    # Whoever looks rewrites the index with newer times; that is no change of anybody's.

    sh(repo, "touch tracked; git status")
    undone = await bench.undo(running.ended.act)
    assert sh(repo, "git rev-parse HEAD") == first
    assert sh(repo, "git status --porcelain") == "?? untracked\n"
    assert sh(repo, f"git cat-file -t {second}") == "commit\n"
    await bench.person().call("undo.redo", id=undone.act)
    assert sh(repo, "git rev-parse HEAD") == second
    sh(repo, "git fsck --strict")


async def test_14_a_branch_that_has_moved_on_stays_where_it_is(bench, repo):
    async with Running(bench.agent(), repo) as running:
        sh(repo, "echo 2 > tracked; git commit -qam second")
    sh(repo, "echo p > persons; git add persons; git commit -qm third")
    head = sh(repo, "git rev-parse HEAD")
    with pytest.raises(ConflictError):
        await bench.undo(running.ended.act)
    assert sh(repo, "git rev-parse HEAD") == head
    assert (repo / "tracked").read_text() == "2\n"


async def test_a_look_at_the_status_is_no_act(bench, repo):
    sh(repo, "touch -d 2030-01-01 tracked")
    async with Running(bench.agent(), repo) as running:
        sh(repo, "git status")
    assert running.ended.act is None


async def test_15_the_state_of_an_undo_is_the_logs_own_word(bench, repo):
    async with Running(bench.agent(), repo) as running:
        sh(repo, "echo 2 > tracked")
    assert (await shown(bench, running.ended.act)).undoable
    await bench.undo(running.ended.act)
    assert (await shown(bench, running.ended.act)).state == "undone"
