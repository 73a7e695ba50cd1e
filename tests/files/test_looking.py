"""Reading and listing: parts, pages, and the version of the whole."""

import base64
import os

import pytest

from takeback.errors import TakebackError
from takeback_acts.files import staging

pytestmark = pytest.mark.anyio


async def test_a_file_is_read_whole_with_its_mode_size_and_version(bench, root):
    (root / "a").write_text("text")
    (root / "a").chmod(0o600)
    read = await bench.agent().call("files.read", path="a")
    assert (read.content, read.content_base64, read.size, read.mode, read.next) == (
        "text",
        None,
        4,
        "0600",
        None,
    )
    now = await bench.kernel.enter("module:undo").call("files.versions", resources=[bench.uri("a")])
    assert now.versions == {bench.uri("a"): read.version}


async def test_a_file_is_read_in_parts_that_make_up_the_whole(bench, root):
    data = os.urandom(5000)
    (root / "a").write_bytes(data)
    agent, parts, at, versions = bench.agent(), [], 0, set()
    while at is not None:
        read = await agent.call("files.read", path="a", offset=at, limit=1234)
        parts.append(base64.b64decode(read.content_base64))
        versions.add(read.version)
        at = read.next
    assert b"".join(parts) == data
    assert len(versions) == 1


async def test_a_part_that_cuts_a_letter_comes_as_bytes(bench, root):
    (root / "a").write_text("aé")
    read = await bench.agent().call("files.read", path="a", limit=2)
    assert base64.b64decode(read.content_base64) == b"a\xc3"


async def test_reading_past_the_end_gives_nothing(bench, root):
    (root / "a").write_text("abc")
    read = await bench.agent().call("files.read", path="a", offset=10)
    assert (read.content, read.next) == ("", None)


async def test_a_folder_is_listed_in_pages_by_name_with_kinds(bench, root):
    for name in ("b", "a", "c"):
        (root / name).write_text(name * 3)
    (root / "d").mkdir()
    (root / "e").symlink_to("a")
    os.mkfifo(root / "f")
    agent, found, cursor = bench.agent(), [], None
    while True:
        page = await agent.call("files.list", path=".", limit=4, cursor=cursor)
        found += [(entry.name, entry.kind, entry.size) for entry in page.entries]
        cursor = page.next
        if cursor is None:
            break
    files = [("a", "file", 3), ("b", "file", 3), ("c", "file", 3)]
    assert found == [*files, ("d", "dir", 0), ("e", "link", 0), ("f", "special", 0)]


async def test_our_own_temporary_names_are_never_listed(bench, root):
    own = staging.fresh()
    (root / f".takeback-{own}").write_text("x")
    (root / f".takeback-{own}.part").write_text("x")
    (root / ".takeback-notes").write_text("x")
    page = await bench.agent().call("files.list", path=".")
    assert [entry.name for entry in page.entries] == [".takeback-notes"]


@pytest.mark.parametrize("cursor", ["x", "rows:/a", ""])
async def test_a_cursor_that_list_never_gave_is_refused(bench, cursor):
    with pytest.raises(TakebackError) as error:
        await bench.agent().call("files.list", path=".", cursor=cursor)
    assert error.value.code == "files.cursor"


async def test_the_version_of_what_is_not_there_is_absent(bench, root):
    (root / "a").write_text("a")
    (root / "d").mkdir()
    names = [
        bench.uri("none"),
        bench.uri("none/deep"),
        bench.uri("a/b"),
        bench.uri("a") + "/",
        bench.uri("none") + "/",
    ]
    module = bench.kernel.enter("module:undo")
    assert set((await module.call("files.versions", resources=names)).versions.values()) == {"absent"}
    both = [bench.uri("d"), bench.uri("d") + "/"]
    found = (await module.call("files.versions", resources=both)).versions
    assert found[both[0]].startswith("dir:")
    assert found[both[1]].startswith("tree:")


async def test_a_version_knows_bytes_and_mode_but_no_time(bench, root):
    module, uri = bench.kernel.enter("module:undo"), bench.uri("a")

    async def version():
        return (await module.call("files.versions", resources=[uri])).versions[uri]

    (root / "a").write_text("a")
    first = await version()
    os.utime(root / "a", (1, 1))
    assert await version() == first
    (root / "a").chmod(0o700)
    assert await version() != first
    (root / "a").chmod(0o644)
    (root / "a").write_text("b")
    assert await version() != first


async def test_the_version_of_a_folder_s_content_sees_every_change_in_it(bench, root):
    module, uri = bench.kernel.enter("module:undo"), bench.uri("d") + "/"
    seen = []

    async def look():
        seen.append((await module.call("files.versions", resources=[uri])).versions[uri])

    deep = root / "d" / "e" / "f"
    deep.mkdir(parents=True)
    await look()
    (deep / "x").write_text("1")
    await look()
    (deep / "x").write_text("2")
    await look()
    (deep / "x").chmod(0o600)
    await look()
    (deep / "x").rename(deep / "y")
    await look()
    (deep / "z").symlink_to("y")
    await look()
    assert len(set(seen)) == len(seen)
    os.utime(deep, (1, 1))
    await look()
    assert seen[-1] == seen[-2]


async def test_versions_are_kept_to_the_caller_s_scope(bench, tmp_path):
    from takeback.context import Scope

    module = bench.kernel.enter("module:undo", scope=Scope(roots=(str(bench.root),)))
    with pytest.raises(TakebackError) as error:
        await module.call("files.versions", resources=["files:/etc/passwd"])
    assert error.value.code == "scope.outside"
