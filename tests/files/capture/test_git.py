"""Work trees of git: clean files come from kept objects, whatever happens to the repository afterwards."""

import os
import shutil
import subprocess

import pytest

from takeback_acts.files.capture.changes import RefMove
from takeback_acts.files.capture.gitkeep import environment
from tests.files.capture.rig import Rig, only, whats

pytestmark = pytest.mark.anyio

AUTHOR = {
    f"GIT_{who}_{what}": "t@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
}


def git(folder, *words, check=True):
    env = {**environment(), **AUTHOR}
    ran = subprocess.run(["git", "-C", folder, *words], env=env, check=check, capture_output=True)
    return ran.stdout.decode().strip()


@pytest.fixture
def rig(tmp_path):
    rig = Rig(tmp_path)
    git(rig.root, "init", "-q", "-b", "main")
    return rig


@pytest.fixture
async def work(rig):
    """A repository with two committed files, one of them changed since, and an ignored one."""
    rig.write("clean.txt", b"clean\n")
    rig.write("src/dirty.txt", b"committed\n")
    rig.write(".gitignore", b".env\n")
    commit(rig.root)
    rig.write("src/dirty.txt", b"uncommitted\n")
    rig.write(".env", b"SECRET=1\n")
    return rig


def commit(folder, message="one"):
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "--allow-empty", "-m", message)


def stored(rig):
    return set(rig.memory.blobs.values())


async def test_a_clean_file_is_not_copied_and_comes_back(work):
    capture = work.capture()
    assert (await capture.baseline()).notes == []
    assert b"clean\n" not in stored(work)
    assert {b"uncommitted\n", b"SECRET=1\n"} <= stored(work)
    for name in ("clean.txt", "src/dirty.txt", ".env"):
        (work.root / name).unlink()
    changes = await capture.after()
    assert work.bytes_before(changes, "clean.txt") == b"clean\n"
    assert work.bytes_before(changes, "src/dirty.txt") == b"uncommitted\n"
    assert work.bytes_before(changes, ".env") == b"SECRET=1\n"
    await capture.close()


async def test_the_repository_and_its_index_are_not_touched(work):
    def all_of_it():
        return {
            path: (path.stat().st_mtime_ns, path.is_file() and path.read_bytes())
            for path in work.root.rglob("*")
        }

    before = all_of_it()
    capture = work.capture()
    await capture.baseline()
    await capture.scan()
    await capture.close()
    assert all_of_it() == before


@pytest.mark.parametrize("packed", [False, True])
async def test_objects_outlive_gc_and_the_removal_of_the_repository(work, packed):
    if packed:
        git(work.root, "gc", "-q")
    capture = work.capture()
    await capture.baseline()
    git(work.root, "commit", "-q", "--amend", "-m", "other")
    git(work.root, "rm", "-q", "--cached", "clean.txt")
    git(work.root, "commit", "-q", "--amend", "-m", "without")
    git(work.root, "reflog", "expire", "--expire=now", "--all")
    git(work.root, "gc", "-q", "--prune=now")
    shutil.rmtree(work.root / ".git")
    (work.root / "clean.txt").write_bytes(b"overwritten")
    changes = await capture.after()
    assert work.bytes_before(changes, "clean.txt") == b"clean\n"
    assert work.bytes_before(changes, ".git/HEAD") == b"ref: refs/heads/main\n"
    assert only(changes, ".git/objects").before.reason == ""
    await capture.close()


async def test_moved_references_are_told(work):
    old = git(work.root, "rev-parse", "HEAD")
    capture = work.capture(watch=True)
    await capture.baseline()
    git(work.root, "checkout", "-q", "-b", "side")
    commit(work.root, "two")
    new = git(work.root, "rev-parse", "HEAD")
    changes = await capture.after()
    assert changes.refs == [
        RefMove(b"", "HEAD", "ref: refs/heads/main", "ref: refs/heads/side"),
        RefMove(b"", "refs/heads/side", "", new),
    ]
    git(work.root, "pack-refs", "--all")
    assert (await capture.after()).refs == []
    git(work.root, "update-ref", "refs/heads/side", old)
    assert (await capture.after()).refs == [RefMove(b"", "refs/heads/side", new, old)]
    await capture.close()


async def test_an_index_that_lies_is_not_believed(work):
    """The index says that the file has other bytes of the same size, as a hostile program could have it."""
    other = git(work.root, "hash-object", "-w", "--stdin-paths", check=False)
    assert other == ""
    lie = subprocess.run(
        ["git", "-C", work.root, "hash-object", "-w", "--stdin"],
        input=b"CLEAN\n",
        capture_output=True,
        check=True,
    ).stdout.decode()
    git(work.root, "update-index", "--cacheinfo", f"100644,{lie.strip()},clean.txt")
    git(work.root, "update-index", "--assume-unchanged", "clean.txt")
    capture = work.capture()
    await capture.baseline()
    (work.root / "clean.txt").unlink()
    assert work.bytes_before(await capture.after(), "clean.txt") == b"clean\n"
    await capture.close()


async def test_files_behind_filters_are_copied_as_they_lie(rig):
    rig.write(
        ".gitattributes",
        b"*.crlf text eol=crlf\n*.id ident\n*.big filter=lfs\n*.wide working-tree-encoding=UTF-16\n",
    )
    git(rig.root, "config", "filter.lfs.clean", "echo pointer")
    git(rig.root, "config", "filter.lfs.smudge", "echo expanded")
    for name in ("a.crlf", "a.id", "a.big"):
        rig.write(name, b"$Id$\nx\n")
    rig.write("a.wide", "$Id$\nx\n".encode("utf-16"))
    commit(rig.root)
    for name in ("a.crlf", "a.id", "a.big", "a.wide"):
        (rig.root / name).unlink()
    git(rig.root, "checkout", "-q", "--", ".")
    lying = {name: (rig.root / name).read_bytes() for name in ("a.crlf", "a.id", "a.big", "a.wide")}
    assert lying["a.crlf"] == b"$Id$\r\nx\r\n"
    capture = rig.capture()
    await capture.baseline()
    for name in lying:
        (rig.root / name).unlink()
    changes = await capture.after()
    assert {name: rig.bytes_before(changes, name) for name in lying} == lying
    await capture.close()


async def test_a_hostile_configuration_runs_nothing(work):
    ran = work.root.parent / "ran"
    script = work.root.parent / "evil"
    script.write_text(f"#!/bin/sh\ntouch {ran}\n")
    script.chmod(0o700)
    config = work.root / ".git" / "config"
    runs = {
        "core": "fsmonitor hooksPath pager sshCommand",
        'filter "x"': "clean smudge process",
        'diff "x"': "textconv",
    }
    for section, keys in runs.items():
        lines = "".join(f"\t{key} = {script}\n" for key in keys.split())
        config.write_text(f"{config.read_text()}[{section}]\n{lines}")
    work.write(".gitattributes", b"* filter=x diff=x\n")
    work.write(".git/objects/info/alternates", b"../../../nowhere\n/proc/1/root\n")
    capture = work.capture()
    await capture.baseline()
    (work.root / "clean.txt").unlink()
    assert work.bytes_before(await capture.after(), "clean.txt") == b"clean\n"
    await capture.close()
    assert not ran.exists()


@pytest.mark.parametrize("version", [2, 3, 4])
async def test_every_version_of_the_index_is_read(work, version):
    git(work.root, "add", "-A")
    git(work.root, "update-index", f"--index-version={version}")
    if version > 2:
        git(work.root, "update-index", "--skip-worktree", "clean.txt")
    capture = work.capture()
    assert (await capture.baseline()).notes == []
    assert b"clean\n" not in stored(work)
    assert b"uncommitted\n" not in stored(work)
    await capture.close()


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"DIRC",
        b"DIRC\0\0\0\x09\0\0\0\1" + bytes(90),
        b"not an index at all, but long enough to look like one",
    ],
)
async def test_a_corrupt_index_means_copies_and_is_said(work, damage):
    (work.root / ".git" / "index").write_bytes(damage)
    capture = work.capture()
    assert [note for note in (await capture.baseline()).notes if note.startswith("git.index: .")]
    (work.root / "clean.txt").unlink()
    assert work.bytes_before(await capture.after(), "clean.txt") == b"clean\n"
    await capture.close()


async def test_without_git_everything_is_copied_and_is_said(work, monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    capture = work.capture()
    assert (await capture.baseline()).notes == ["git.missing: ."]
    assert b"clean\n" in stored(work)
    await capture.close()


async def test_a_repository_with_names_by_sha256(tmp_path):
    rig = Rig(tmp_path)
    git(rig.root, "init", "-q", "--object-format=sha256")
    rig.write("a", b"by sha256")
    commit(rig.root)
    capture = rig.capture()
    assert (await capture.baseline()).notes == []
    assert b"by sha256" not in stored(rig)
    shutil.rmtree(rig.root / ".git")
    (rig.root / "a").unlink()
    assert rig.bytes_before(await capture.after(), "a") == b"by sha256"
    await capture.close()


async def test_work_trees_submodules_nested_and_borrowing_repositories(work, tmp_path):
    git(work.root, "worktree", "add", "-q", "other")
    rig_nested = work.root / "nested"
    rig_nested.mkdir()
    git(rig_nested, "init", "-q", "-b", "main")
    (rig_nested / "inner.txt").write_bytes(b"nested\n")
    commit(rig_nested)
    origin = tmp_path / "origin"
    git(tmp_path, "clone", "-q", "--shared", work.root, origin)
    borrowed = work.root / "borrowed"
    git(tmp_path, "clone", "-q", "--shared", origin, borrowed)
    git(
        work.root, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", os.fspath(origin), "sub"
    )
    work.memory.blobs.clear()
    capture = work.capture()
    assert (await capture.baseline()).notes == []
    assert not {b"clean\n", b"nested\n", b"committed\n"} & stored(work)
    names = ["clean.txt", "other/clean.txt", "nested/inner.txt", "borrowed/clean.txt", "sub/clean.txt"]
    shutil.rmtree(work.root / ".git")
    shutil.rmtree(origin)
    for name in names:
        (work.root / name).unlink()
    changes = await capture.after()
    assert {work.bytes_before(changes, name) for name in names} == {b"clean\n", b"nested\n"}
    await capture.close()


async def test_objects_that_are_not_there_are_no_source(work):
    """As in a clone that was told to leave blobs with its origin."""
    oid = git(work.root, "rev-parse", "HEAD:clean.txt")
    (work.root / ".git" / "objects" / oid[:2] / oid[2:]).unlink()
    capture = work.capture()
    await capture.baseline()
    (work.root / "clean.txt").unlink()
    assert work.bytes_before(await capture.after(), "clean.txt") == b"clean\n"
    await capture.close()


async def test_a_touched_or_recommitted_file_is_no_change(work):
    capture = work.capture()
    await capture.baseline()
    os.utime(work.root / "clean.txt")
    data = (work.root / "src/dirty.txt").read_bytes()
    (work.root / "src/dirty.txt").write_bytes(data)
    assert whats(await capture.after()) == {}
    await capture.close()


async def test_a_repository_cloned_by_a_command_is_known_afterwards(work, tmp_path):
    capture = work.capture(watch=True)
    await capture.baseline()
    git(work.root, "clone", "-q", "--no-hardlinks", ".", "copy")
    changes = await capture.after()
    assert whats(changes)["copy/clean.txt"] == "created"
    (work.root / "copy/clean.txt").unlink()
    commit(work.root / "copy", "removed")
    changes = await capture.after()
    assert work.bytes_before(changes, "copy/clean.txt") == b"clean\n"
    assert [move.ref for move in changes.refs if move.repository == b"copy"] == ["refs/heads/main"]
    await capture.close()
