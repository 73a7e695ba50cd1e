"""Bytes as they are read and written anew."""

import pytest

pytestmark = pytest.mark.anyio


async def test_holes_stay_holes(bench, root):
    """A disk image of some gigabytes that holds little must not fill the disk when it comes back."""
    with (root / "image").open("wb") as file:
        file.write(b"head")
        file.seek(9 << 20)
        file.write(b"tail")
        file.truncate(12 << 20)
    before = (root / "image").read_bytes()
    used = (root / "image").stat().st_blocks
    done = await bench.agent().call("files.delete", path="image")
    await bench.undo(done.act)
    assert (root / "image").read_bytes() == before
    assert (root / "image").stat().st_blocks <= used + (3 << 20) // 512


async def test_zeros_that_take_room_go_on_taking_it(bench, root):
    (root / "reserved").write_bytes(bytes(4 << 20))
    done = await bench.agent().call("files.delete", path="reserved")
    await bench.undo(done.act)
    assert (root / "reserved").read_bytes() == bytes(4 << 20)
