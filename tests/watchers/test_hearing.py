"""Hearing: changes in folders are heard from the moment on that it is entered."""

import os

import anyio
import pytest

from takeback_acts.watchers.hearing import hearing

pytestmark = pytest.mark.anyio


async def test_what_changes_right_after_entering_is_heard(tmp_path):
    heard = anyio.Event()
    async with hearing([str(tmp_path)], heard.set) as ears:
        (tmp_path / "a").write_text("x")
        with anyio.fail_after(10):
            await heard.wait()
        assert (ears.deaf, ears.lost) == ("", False)


async def test_a_folder_that_is_not_there_is_said_and_not_raised(tmp_path):
    async with hearing([str(tmp_path / "none")], lambda: None) as ears:
        assert ears.deaf


async def test_a_name_that_can_not_be_told_ends_the_hearing_and_wakes(tmp_path):
    woken = anyio.Event()
    async with hearing([str(tmp_path)], woken.set) as ears:
        with open(os.fsencode(tmp_path) + b"/caf\xe9", "w"):
            pass
        with anyio.fail_after(10):
            await woken.wait()
        assert ears.lost
