"""Whatever a command does to a repository is taken back whole: git itself, its fsck and its names decide."""

import hashlib

import anyio
import anyio.lowlevel
import pytest

from takeback_acts.files.capture import gitobjects
from tests.files.test_commands import Running, _kernel, sh, shown

pytestmark = pytest.mark.anyio

_SEED = """
git init -q -b main .
printf '*.tmp\\n' > .gitignore
for n in 1 2 3; do echo $n > file; git add .; git commit -qm "commit $n"; done
git branch side; git tag -a -m annotated v1
git checkout -q side; echo side > of-side; git add .; git commit -qm "on side"; git checkout -q main
echo stashed > file; git stash -q
"""
_PURGE = "git reflog expire --expire=now --expire-unreachable=now --all; git gc -q --prune=now"


@pytest.fixture
def repo(root):
    sh(root, _SEED)
    return root


def facts(repo):
    """All that a person has in a repository, as far as fsck finds nothing wrong with it."""
    sh(repo, "git fsck --strict --full")
    return {
        "refs": sh(repo, "git for-each-ref; git symbolic-ref HEAD; git rev-parse HEAD"),
        "stash": sh(repo, "git stash list"),
        "reflog": sh(repo, "git reflog show --all --format='%H %gd %gs'"),
        "status": sh(repo, "git status --porcelain"),
        "trees": sh(repo, "git log --all --reflog --format='%H %T'; git rev-parse 'HEAD^{tree}'"),
        "files": {
            path.relative_to(repo): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in repo.rglob("*")
            if path.is_file() and ".git" not in path.relative_to(repo).parts
        },
    }


def objects(repo):
    return set(sh(repo, "git cat-file --batch-all-objects --batch-check").splitlines())


async def undone(bench, repo, script, *, top=None):
    """Runs a script as a command in the root, undoes it; the repository must then be as before."""
    before, had = facts(repo), objects(repo)
    async with Running(bench.agent(), bench.root) as running:
        sh(top or repo, script)
    assert running.ended.act is not None, "no act"
    assert [note for note in running.ended.notes if "not captured" in note] == []
    await bench.undo(running.ended.act)
    assert facts(repo) == before
    assert objects(repo) >= had
    return running.ended


PACKING = {
    "loose": "true",
    "packed": "git gc -q",
    "both": "git gc -q; echo 4 > file; git commit -qam 'commit 4'; git commit-graph write --reachable",
}


@pytest.mark.parametrize("packing", PACKING)
@pytest.mark.parametrize(
    "script",
    [
        "rm -rf .git",
        "rm -rf .git/objects/*",
        "rm -rf .git/objects",
        "rm -f .git/objects/pack/* .git/objects/??/*",
        "rm -rf .git/refs .git/logs .git/packed-refs; rm -rf .git/objects/[0-7]* .git/objects/pack",
        "mv .git away",
        "rm -rf .git; git init -q -b main .; git add .; git commit -qm other",
        "chmod -R u+w .; find . -type f -exec truncate -s0 {} +",
        "chmod -R u+w .git; find .git -type f -exec truncate -s0 {} +; rm -rf .git",
        "chmod -R u+w .git; find .git/objects -type f -exec sh -c 'printf x > \"$1\"' - {} ';'; rm file",
    ],
)
async def test_a_repository_that_is_destroyed_comes_back(bench, repo, packing, script):
    sh(repo, PACKING[packing])
    await undone(bench, repo, script)


@pytest.mark.parametrize("packing", PACKING)
@pytest.mark.parametrize(
    "script",
    [
        "git stash drop -q",
        "git branch -q -D side",
        "git reset -q --hard HEAD~1",
        "git tag -d v1",
        "git checkout -q -b new; git branch -q -D main side",
        "git stash clear; git update-ref -d refs/heads/side; echo 9 > file; git commit -qam nine",
    ],
)
async def test_what_a_purge_took_comes_back_with_the_references(bench, repo, packing, script):
    sh(repo, PACKING[packing])
    await undone(bench, repo, f"{script}\n{_PURGE}")


@pytest.mark.parametrize(
    "script",
    [
        "git gc -q",
        "git pack-refs --all",
        "git repack -adfq",
        "git branch -q -D side",
        "git gc -q; git repack -adq --write-midx; git commit-graph write --reachable",
        "git commit-graph write --reachable; git repack -adq; git multi-pack-index write",
        "git branch -m side aside; git pack-refs --all",
        "git rebase -q side",
    ],
)
async def test_what_packs_or_moves_branches_is_undone(bench, repo, script):
    await undone(bench, repo, script)


async def test_a_gc_alone_keeps_nothing_twice(bench, repo):
    """What was only packed anew is in the repository still."""
    sh(repo, "git pack-refs --all; git repack -q; git reflog expire --expire=now --all")
    async with Running(bench.agent(), repo) as running:
        sh(repo, "git repack -adfq")
    assert running.ended.act is None
    sh(repo, "git fsck --strict")


async def test_a_repository_that_is_moved_or_cloned_leaves_nothing_and_loses_nothing(bench, root):
    sub = root / "sub"
    sub.mkdir()
    sh(sub, _SEED)
    await undone(bench, sub, "mv sub sub2", top=root)
    assert not (root / "sub2").exists()
    for script in ("git clone -q sub copy", "git clone -q --no-local sub copy", "git init -q copy"):
        ended = await undone(bench, sub, script, top=root)
        assert not (root / "copy").exists()
        assert ended.notes == []


async def test_a_clone_that_was_undone_can_be_redone(bench, root):
    sub = root / "sub"
    sub.mkdir()
    sh(sub, _SEED)
    async with Running(bench.agent(), root) as running:
        sh(root, "git clone -q sub copy")
    after = facts(root / "copy")
    undo = await bench.undo(running.ended.act)
    await bench.person().call("undo.redo", id=undo.act)
    assert facts(root / "copy") == after


@pytest.mark.parametrize("packing", PACKING)
async def test_a_root_that_is_cloned_anew_is_what_it_was(bench, repo, packing):
    sh(repo, PACKING[packing])
    sh(repo.parent, "git clone -q root keep")
    await undone(bench, repo, "rm -rf root; git clone -q keep root", top=repo.parent)


async def test_a_nested_repository_and_a_submodule_come_back(bench, repo, tmp_path):
    origin = tmp_path / "origin"
    origin.mkdir()
    sh(origin, _SEED)
    sh(
        repo,
        f"git -c protocol.file.allow=always submodule --quiet add {origin} mod; git commit -qm mod;"
        "git init -q nested; cd nested; echo n > n; git add n; git commit -qm n",
    )
    for script, inner in (("rm -rf nested/.git", "nested"), ("rm -rf .git", "mod"), ("rm -rf ./* .git", ".")):
        before = facts(repo / inner)
        await undone(bench, repo, script)
        assert facts(repo / inner) == before


async def test_a_bare_repository_keeps_what_was_pushed_to_it_and_loses_the_branch(bench, root, tmp_path):
    sh(root, "git init -q --bare -b main bare.git")
    work = tmp_path / "work"
    work.mkdir()
    sh(work, f"{_SEED}git remote add origin {root}/bare.git; git push -q origin main")
    bare = root / "bare.git"
    before = sh(bare, "git for-each-ref")
    async with Running(bench.agent(), root) as running:
        sh(work, "git push -q origin side")
    await bench.undo(running.ended.act)
    assert sh(bare, "git for-each-ref") == before
    sh(bare, "git fsck --strict")
    await undone_bare(bench, bare, "rm -rf objects/*")
    await undone_bare(bench, bare, f"git update-ref -d refs/heads/main; {_PURGE}")


async def undone_bare(bench, bare, script):
    before = sh(bare, "git for-each-ref; git cat-file --batch-all-objects --batch-check")
    async with Running(bench.agent(), bench.root) as running:
        sh(bare, script)
    await bench.undo(running.ended.act)
    sh(bare, "git fsck --strict")
    assert sh(bare, "git for-each-ref; git cat-file --batch-all-objects --batch-check") == before


async def test_alternates_come_back(bench, repo, tmp_path):
    clone = repo / "borrows"
    sh(repo, "git clone -q --shared . borrows")
    before = facts(clone)
    async with Running(bench.agent(), repo) as running:
        sh(clone, "rm -rf .git/objects/*")
    await bench.undo(running.ended.act)
    assert facts(clone) == before
    assert (clone / ".git/objects/info/alternates").exists()


@pytest.fixture
def linked(monkeypatch):
    """A repository too large to be copied."""
    monkeypatch.setattr(gitobjects, "MOST", 0)


@pytest.mark.parametrize("packing", PACKING)
@pytest.mark.parametrize(
    "script",
    ["rm -rf .git", "rm -rf .git/objects/*", "mv .git away", f"git stash drop -q; {_PURGE}"],
)
async def test_a_repository_too_large_to_copy_comes_back(bench, repo, linked, packing, script):
    sh(repo, PACKING[packing])
    async with Running(bench.agent(), repo):
        pass
    # What it counts on outlives the pruning of what it does not.
    await bench.person().call("files.gc", grace_hours=0)
    await undone(bench, repo, script)


async def test_what_was_destroyed_with_its_only_copy_is_said_and_not_put_back_empty(bench, repo, linked):
    async with Running(bench.agent(), repo) as running:
        sh(repo, "chmod -R u+w .; find . -type f -exec truncate -s0 {} +")
    act = await shown(bench, running.ended.act)
    told = [line for line in act.why if line.startswith("not captured")]
    assert any(str(repo / "file") in line for line in told)
    assert any("/.git/objects/" in line for line in told)
    assert bench.uri("file") not in {item.resource for item in act.touched}


# ---------------------------------------------------------------------- what is kept, and for how long


async def _left_behind(kernel, repo):
    """A baseline that has moved on from objects that nobody has any more."""
    person = kernel.enter("cli:person")
    async with Running(person, repo):
        pass
    sh(
        repo,
        f"git rm -q file; git commit -q --amend -m 'without'; git stash drop -q;"
        f"git branch -qD side; {_PURGE}",
    )
    async with Running(person, repo):
        pass
    return person


@pytest.mark.parametrize("restarted", [False, True])
async def test_gc_removes_and_counts_the_objects_that_nothing_needs(tmp_path, repo, restarted):
    async with _kernel(tmp_path) as kernel:
        person = await _left_behind(kernel, repo)
        if not restarted:
            await _collected(person)
    if restarted:
        async with _kernel(tmp_path) as kernel:
            person = kernel.enter("cli:person")
            # It is swept by itself once the module starts.
            with anyio.fail_after(10):
                while (await person.call("files.gc", {}, rehearsal_={})).git_files:
                    await anyio.lowlevel.checkpoint()
    kept = list((tmp_path / "home").rglob("git/*/objects/??/*"))
    assert [path for path in kept if path.stat().st_nlink == 1] == []


async def _collected(person):
    told = await person.call("files.gc", {}, rehearsal_={})
    done = await person.call("files.gc")
    assert told.git_files == done.git_files > 0
    assert told.freed_bytes == done.freed_bytes > 0
    assert (await person.call("files.gc")).git_files == 0


async def test_what_was_pruned_is_kept_anew_when_it_is_needed_again(bench, repo, linked):
    sh(repo, "git gc -q")
    agent, person = bench.agent(), bench.person()
    async with Running(agent, repo) as removed:
        sh(repo, "rm -rf .git")
    await person.call("files.gc", grace_hours=0)
    await bench.undo(removed.ended.act)
    await undone(bench, repo, "rm -rf .git")
