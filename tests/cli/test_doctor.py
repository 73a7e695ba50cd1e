"""`takeback doctor`: what it sees with a daemon and without."""

import shutil
import subprocess
import sys
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
