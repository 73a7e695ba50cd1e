"""`takeback gc` with a time of one's own, and `takeback rewind --path`."""

from pathlib import Path

import pytest

from tests.cli.running import Cli


@pytest.fixture
def acted(cli: Cli) -> Path:
    (cli.work / "a").write_text("1")
    cli.run("run", "--", "sh", "-c", "echo 2 > a; echo b > b")
    return cli.work


def test_gc_tells_what_is_live_and_what_was_pruned(cli: Cli, acted: Path):
    told = cli.json("gc", "--undo-ttl", "7d", "--dry-run")
    assert (told["undoLive"], told["undoPruned"], told["undo"]["removed"]) == (3, 0, 0)
    assert cli.json("gc", "--undo-ttl", "7d")["undoPruned"] == 0
    cli.json("undo", "--last")


@pytest.mark.parametrize("time", ["7", "soon", "0d"])
def test_a_ttl_that_is_no_length_of_time_is_refused(cli: Cli, time: str):
    ran = cli.run("gc", "--undo-ttl", time, "--json")
    assert (ran.code, ran.json["error"]["code"]) == (2, "usage.time")


def test_rewind_of_a_path_takes_back_what_touched_it(cli: Cli, acted: Path):
    cli.run("run", "--", "touch", "other")
    assert len(cli.json("rewind", "--path", "b", "--dry-run")["plan"]["steps"]) == 1
    cli.json("rewind", "--path", "b")
    assert sorted(path.name for path in acted.iterdir()) == ["a", "other"]
    assert (acted / "a").read_text() == "1"
    assert cli.json("rewind", "--path", "nowhere")["results"] == []
