"""What was pushed stays where it is without force, however its references lie; all else moves back."""

import pytest

from takeback.errors import ConflictError
from tests.files.test_commands import Running, sh, shown

pytestmark = pytest.mark.anyio


@pytest.fixture
def repo(root, tmp_path):
    sh(
        root,
        "git init -q -b main .; echo 1 > file; git add .; git commit -qm one;"
        f"git init -q --bare -b main {tmp_path}/remote; git remote add origin {tmp_path}/remote;"
        "git push -q origin main",
    )
    return root


def head(repo, name="HEAD"):
    return sh(repo, f"git rev-parse {name}").strip()


COMMIT = "echo 2 >> file; git commit -qam two"


@pytest.mark.parametrize(
    "script",
    [
        f"{COMMIT}; git push -q origin main; git pack-refs --all",
        f"{COMMIT}; git push -q origin main",
        f"{COMMIT}; git push -q origin main; git gc -q",
        f"{COMMIT}; git push -q origin main; echo 3 > file; git commit -qam three",
        f"{COMMIT}; git push -q origin main; git commit -q --amend -m again; git push -qf origin main",
        f"{COMMIT}; git push -q origin main:other; git pack-refs --all",
        f"git checkout -q -b side; {COMMIT}; git push -q origin side",
        f"git checkout -q -b a/b/c; {COMMIT}; git push -q origin a/b/c; git pack-refs --all",
        f"{COMMIT}; git push -q origin main; git tag -a -m v v1; git push -q origin v1",
        "git tag v1; git push -q origin v1",
        f"{COMMIT}; git push -q origin main; git remote set-url origin /nowhere",
    ],
)
async def test_what_a_command_pushed_is_not_undone_without_force(bench, repo, script):
    async with Running(bench.agent(), repo) as running:
        sh(repo, script)
    refs = sh(repo, "git for-each-ref")
    with pytest.raises(ConflictError) as caught:
        await bench.undo(running.ended.act)
    assert "pushed" in caught.value.message
    assert sh(repo, "git for-each-ref") == refs
    await bench.undo(running.ended.act, force=True)
    assert sh(repo, "git for-each-ref refs/heads refs/tags; git fsck --strict") != refs
    assert head(repo, "main") == head(repo, "main@{0}")
    assert sh(repo, "cat file") == "1\n"


async def test_two_commits_of_which_one_was_pushed_later_stay(bench, repo):
    async with Running(bench.agent(), repo) as running:
        sh(repo, f"{COMMIT}; echo 3 > file; git commit -qam three")
    sh(repo, "git push -q origin HEAD~1:main; git pack-refs --all")
    now = head(repo)
    with pytest.raises(ConflictError):
        await bench.undo(running.ended.act)
    assert head(repo) == now


async def test_the_undo_of_a_push_does_not_hide_it(bench, repo):
    """Taken back one after another, newest first, as a rewind of a session does."""
    async with Running(bench.agent(), repo) as commit:
        sh(repo, COMMIT)
    async with Running(bench.agent(), repo) as push:
        sh(repo, "git push -q origin main")
    now = head(repo)
    assert any("refs/remotes" in note for note in push.ended.notes)
    if (await shown(bench, push.ended.act)).undoable:
        await bench.undo(push.ended.act)
    with pytest.raises(ConflictError):
        await bench.undo(commit.ended.act)
    assert head(repo) == now == head(repo, "origin/main")


@pytest.mark.parametrize(
    "script",
    [
        "git reset -q --hard HEAD~1",
        "git checkout -q -b side",
        "git checkout -q -b side; git branch -q -D main",
        f"git checkout -q -b side; {COMMIT}; git pack-refs --all",
        f"{COMMIT}; git tag v2; git gc -q",
        "git branch -m main other",
    ],
)
async def test_what_nobody_else_has_moves_back(bench, repo, script):
    sh(repo, "echo 1 > other; git add .; git commit -qm other; git push -q origin main")
    before = sh(repo, "git for-each-ref; git symbolic-ref HEAD; git status --porcelain")
    async with Running(bench.agent(), repo) as running:
        sh(repo, script)
    await bench.undo(running.ended.act)
    assert sh(repo, "git for-each-ref; git symbolic-ref HEAD; git status --porcelain") == before
    sh(repo, "git fsck --strict")


@pytest.mark.parametrize("script", ["git branch -q -D side", "git branch -m side side/two", "git gc -q"])
async def test_a_branch_that_is_gone_or_a_folder_by_now_is_put_back(bench, repo, script):
    sh(repo, "git branch side; echo stays > untracked")
    before = sh(repo, "git for-each-ref")
    async with Running(bench.agent(), repo) as running:
        sh(repo, f"{script}; rm untracked")
    await bench.undo(running.ended.act)
    assert sh(repo, "git for-each-ref; cat untracked") == f"{before}stays\n"


# ---------------------------------------------------------------------- a repository that lies elsewhere


@pytest.fixture
def linked(repo, tmp_path):
    sh(repo, f"git worktree add -q -b work {tmp_path}/work")
    return tmp_path / "work"


async def test_a_commit_in_a_linked_work_tree_is_undone_with_its_branch_and_index(bench, repo, linked):
    before = head(linked)
    async with Running(bench.person(), linked) as running:
        sh(linked, COMMIT)
    assert running.begun.roots == [str(linked), str(repo / ".git")]
    await bench.undo(running.ended.act)
    assert head(linked) == before
    assert sh(linked, "git status --porcelain; cat file") == "1\n"
    sh(linked, "git fsck --strict")


async def test_a_branch_of_a_linked_work_tree_that_moved_on_stays(bench, linked):
    async with Running(bench.person(), linked) as running:
        sh(linked, COMMIT)
    sh(linked, "git commit -q --allow-empty -m mine")
    now = head(linked)
    with pytest.raises(ConflictError):
        await bench.undo(running.ended.act)
    assert head(linked) == now
    assert sh(linked, "cat file") == "1\n2\n"


@pytest.mark.parametrize(
    "script", [COMMIT, "git commit -q --allow-empty -m nothing", "git checkout -q --detach"]
)
async def test_what_stays_of_a_repository_outside_an_agents_roots_is_said(bench, repo, linked, script):
    agent = bench.agent(roots=[linked])
    async with Running(agent, linked) as running:
        sh(linked, script)
    assert running.begun.roots == [str(linked)]
    moved = "HEAD" if "detach" in script else "refs/heads/work"
    assert [note for note in running.ended.notes if f"{moved} stays at {head(linked)}" in note]
    act = await shown(bench, running.ended.act)
    assert any(moved in line for line in act.why)
    if act.undoable:
        plan = (await bench.person().call("undo.preview", id=act.id)).plan
        reasons = [effect.reason for step in plan.steps for effect in step.effects]
        assert any(moved in reason for reason in reasons)
    else:
        assert moved in act.reason


async def test_what_others_do_in_the_repository_of_a_linked_work_tree_is_none_of_its_doing(
    bench, repo, linked
):
    async with Running(bench.agent(roots=[linked]), linked) as running:
        sh(repo, COMMIT)
    assert running.ended.act is None


async def test_a_work_tree_that_names_a_stranger_gets_nothing_of_it(bench, repo, tmp_path):
    liar = tmp_path / "liar"
    liar.mkdir()
    (liar / ".git").write_text(f"gitdir: {repo}/.git\n")
    begun = await bench.person().call("files.begin_command", cwd=str(liar), command=["x"])
    assert begun.roots == [str(liar)]


async def test_a_submodule_is_captured_with_its_repository(bench, repo, tmp_path):
    sh(
        repo,
        f"git -c protocol.file.allow=always submodule --quiet add {tmp_path}/remote mod; git commit -qm mod",
    )
    sub = repo / "mod"
    before = head(sub)
    async with Running(bench.person(), sub) as running:
        sh(sub, COMMIT)
    await bench.undo(running.ended.act)
    assert head(sub) == before
    assert sh(sub, "git status --porcelain") == ""
