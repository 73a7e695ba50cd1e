"""`takeback doctor`: what it sees with a daemon and without."""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import Any

import pytest

from takeback_doors.cli.checks import local_checks
from tests.cli.running import SECONDS, Cli


def checks(answer: Any) -> dict[str, bool]:
    """Name -> whether it is well."""
    return {check["name"]: check["ok"] for check in answer["checks"]}


def test_a_new_home_is_well_and_stays_unmade(cli: Cli):
    answer = cli.json("doctor")
    assert all(set(check) == {"name", "ok", "detail", "hint"} for check in answer["checks"])
    assert {"python", "home.data", "settings", "disk", "owner", "daemon"} <= set(checks(answer))
    assert not cli.home.data.exists()


def test_a_running_daemon_adds_its_own(served: Cli):
    answer = served.json("doctor")
    assert {"database", "module undo", "module files", "socket"} <= set(checks(answer))
    assert served.run("doctor").code == 0


def test_an_open_folder_is_found(cli: Cli):
    cli.home.create()
    cli.home.data.chmod(0o755)
    ran = cli.run("doctor", "--json")
    assert (ran.code, ran.json["ok"]) == (1, False)
    assert checks(ran.json)["home.data"] is False
    assert next(check for check in ran.json["checks"] if not check["ok"])["hint"].startswith("chmod 700")


def test_broken_settings_are_found(cli: Cli):
    cli.home.create()
    cli.home.settings.write_text("[undo\n")
    ran = cli.run("doctor", "--json")
    assert (ran.code, checks(ran.json)["settings"]) == (1, False)


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("[undo]\nretention_dayz = 3\n", "settings undo", "undo.retention_dayz"),
        ('[undo]\nretention_days = "long"\n', "settings undo", "undo.retention_days"),
        ("[kernel]\nenable = []\n", "settings kernel", "kernel.enable"),
        ("[cli]\nwatch_seconds = 0\n", "settings cli", "cli.watch_seconds"),
        ("[agents]\nnames = 1\n", "settings agents", "has no settings"),
        ("[undoo]\nretention_days = 3\n", "settings undoo", "is the section of no module"),
        ("retention_days = 3\n", "settings retention_days", "stands in no section"),
        ('[kernel]\nenabled = ["weather"]\n', "module weather", "no installed package"),
    ],
)
def test_a_setting_that_nobody_reads_is_found(cli: Cli, text: str, name: str, said: str):
    cli.home.create()
    cli.home.settings.write_text(text)
    ran = cli.run("doctor", "--json")
    assert ran.code == 1
    found = {check["name"]: check["detail"] for check in ran.json["checks"] if not check["ok"]}
    assert list(found) == [name]
    assert said in found[name]


def test_good_settings_are_well(cli: Cli):
    cli.home.create()
    cli.home.settings.write_text("[kernel]\nstart_seconds = 5\n[undo]\nretention_days = 3\n")
    assert checks(cli.json("doctor"))["settings"] is True


def in_data(cli: Cli) -> list[str]:
    """The names of what lies in the data folder."""
    return sorted(os.listdir(cli.home.data))


def test_a_database_at_rest_is_looked_at_without_a_trace(cli: Cli):
    cli.json("agents", "list")
    cli.stop()
    before = in_data(cli)
    assert checks(cli.json("doctor"))["database"] is True
    assert in_data(cli) == before
    assert "takeback.db-wal" not in before


def test_a_database_of_a_killed_daemon_is_sound(cli: Cli):
    daemon = cli.serve()
    cli.json("agents", "add", "juno")
    daemon.end(signal.SIGKILL)
    assert "takeback.db-wal" in in_data(cli)
    assert checks(cli.json("doctor"))["database"] is True
    assert [agent["name"] for agent in cli.json("agents", "list")["agents"]] == ["juno"]


@pytest.mark.parametrize(
    "content", [b"this is no database " * 100, b"SQLite format 3\x00" + b"?" * 5000, b"S"]
)
def test_a_database_that_is_none_is_found(cli: Cli, content: bytes):
    cli.home.create()
    cli.home.database.write_bytes(content)
    ran = cli.run("doctor", "--json")
    assert (ran.code, checks(ran.json)["database"]) == (1, False)
    assert cli.home.database.read_bytes() == content


def test_a_damaged_page_is_found(cli: Cli):
    cli.json("agents", "list")
    cli.stop()
    with open(cli.home.database, "r+b") as database:
        database.seek(4096)
        database.write(b"\xff" * 4096 * 3)
    ran = cli.run("doctor", "--json")
    assert (ran.code, checks(ran.json)["database"]) == (1, False)


def test_a_database_of_a_later_version_is_found(cli: Cli):
    cli.json("agents", "list")
    cli.stop()
    with closing(sqlite3.connect(cli.home.database)) as database, database:
        later = "INSERT INTO kernel_migration SELECT module, 99, at, digest FROM kernel_migration"
        database.execute(f"{later} WHERE module = 'undo' AND version = 1")
    ran = cli.run("doctor", "--json")
    found = {check["name"]: check["detail"] for check in ran.json["checks"] if not check["ok"]}
    assert list(found) == ["database"]
    assert "undo" in found["database"]


def test_what_is_wrong_is_said_in_sentences(cli: Cli):
    cli.home.create()
    cli.home.settings.write_text("[undo\n")
    shown = " ".join(cli.run("doctor").out.split())
    assert "can't be understood at line 1. Write TOML there" in shown
    assert ".. " not in shown


def test_it_reads_well_in_eighty_columns_and_ends_with_a_verdict(served: Cli):
    checks = served.json("doctor")["checks"]
    lines = served.run("doctor", env={"COLUMNS": "80", "HOME": str(served.root)}).out.splitlines()
    assert lines[-1].strip() == "All well."
    assert len(lines) == len(checks) + 1, "each check has its line"
    assert all(line.startswith("ok  ") for line in lines[:-1])
    assert "~/home/data is yours alone" in "".join(lines)


def test_the_verdict_counts_what_needs_the_person(cli: Cli):
    cli.home.create()
    cli.home.data.chmod(0o755)
    one = cli.run("doctor").out.splitlines()
    assert one[-1].endswith(" checks needs you; see above.")
    assert one[-1].startswith("1 of ")
    cli.home.settings.write_text("[undo\n")
    assert cli.run("doctor").out.splitlines()[-1].startswith("2 of ")


def test_a_wrong_variable_is_found(cli: Cli):
    ran = cli.run("doctor", "--json", env={"TAKEBACK_UNDO__": "7"})
    assert (ran.code, checks(ran.json)["settings"]) == (1, False)


def test_an_owner_that_does_not_answer_is_found(cli: Cli):
    cli.home.create()
    hold = (
        "import sys, pathlib; from takeback.home import Home; from takeback.lock import HomeLock\n"
        "lock = HomeLock.acquire(Home.at(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold, str(cli.root / "home")], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        ran = cli.run("doctor", "--json")
        holder.communicate(timeout=SECONDS)
    assert (ran.code, checks(ran.json)["owner"]) == (1, False)
    assert cli.run("doctor").code == 0


def test_a_full_disk_is_found(cli: Cli, monkeypatch: pytest.MonkeyPatch):
    usage = shutil.disk_usage(cli.root)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1))
    found = {check.name: check for check in local_checks(cli.home, running=False)}
    assert found["disk"].ok is False
    assert found["disk"].hint


def test_a_socket_that_is_none_is_found(cli: Cli):
    cli.home.create()
    cli.home.socket.write_text("no socket")
    ran = cli.run("doctor", "--json")
    assert (ran.code, checks(ran.json)["daemon"]) == (1, False)
