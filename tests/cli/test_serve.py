"""A daemon's start and end, by hand and by itself."""

import json
import os
import shutil
import signal
import sqlite3
import stat
import subprocess
from contextlib import closing

import pytest

from takeback_doors.cli.client import try_connect
from takeback_doors.cli.process import wait_for_exit
from tests.cli.running import SECONDS, Cli, Daemon, kill


def test_serve_answers_on_a_private_socket_once_it_says_so(cli: Cli):
    daemon = cli.serve()
    assert daemon.ready == {
        "ok": True,
        "pid": daemon.pid,
        "socket": str(cli.home.socket),
        "already": False,
    }
    assert stat.S_IMODE(cli.home.socket.stat().st_mode) == 0o600
    assert stat.S_IMODE(cli.home.runtime.stat().st_mode) == 0o700
    assert cli.json("status")["pid"] == daemon.pid
    assert "http://127.0.0.1:" in daemon.log.read_text()


@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_serve_ends_cleanly_by_signal(cli: Cli, by: signal.Signals):
    daemon = cli.serve()
    assert daemon.end(by) == 0
    assert not cli.home.socket.exists()
    assert "Traceback" not in daemon.log.read_text()


def test_second_serve_is_refused_and_names_the_first(cli: Cli):
    daemon = cli.serve()
    second = cli.run("serve")
    assert second.code == 1
    assert str(daemon.pid) in second.err
    assert cli.json("status")["pid"] == daemon.pid


def test_second_serve_that_tells_finds_the_first_ready(cli: Cli):
    cli.serve()
    second = cli.serve()
    assert second.ready["already"] is True
    assert second.process.wait(SECONDS) == 0


def test_command_starts_a_daemon_that_outlives_it(cli: Cli):
    assert cli.json("status")["running"] is False
    cli.json("agents", "list")
    found = cli.json("status")
    assert found["running"] is True
    assert os.getsid(found["pid"]) == found["pid"], "the daemon has a session of its own"
    assert stat.S_IMODE((cli.home.state / "daemon.log").stat().st_mode) == 0o600


def test_no_start_starts_none(cli: Cli):
    ran = cli.run("agents", "list", "--json", "--no-start")
    assert (ran.code, ran.json["error"]["code"]) == (1, "daemon.not_running")
    assert cli.json("status")["running"] is False


def test_many_clients_at_once_share_one_daemon(cli: Cli):
    clients = [
        subprocess.Popen(
            cli.command("tools", "list", "--json"),
            env=cli.environ,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(6)
    ]
    answers = [json.loads(client.communicate(timeout=SECONDS)[0]) for client in clients]
    assert [client.returncode for client in clients] == [0] * 6
    assert all(answer["ok"] for answer in answers)
    log = (cli.home.state / "daemon.log").read_text()
    assert log.count("takeback is ready") == 1


def test_after_a_killed_daemon_the_next_command_starts_another(cli: Cli):
    cli.json("agents", "add", "juno")
    first = cli.json("status")["pid"]
    kill(first)
    assert cli.home.socket.exists(), "a killed daemon leaves its socket behind"
    assert [agent["name"] for agent in cli.json("agents", "list")["agents"]] == ["juno"]
    assert cli.json("status")["pid"] != first


def test_stop_waits_until_the_process_has_ended(cli: Cli):
    cli.json("agents", "list")
    pid = cli.json("status")["pid"]
    assert cli.json("stop") == {"ok": True, "stopped": True, "pid": pid}
    assert wait_for_exit(pid, 0)
    assert cli.json("stop") == {"ok": True, "stopped": False}


def test_a_command_right_after_a_stop_signal_gets_a_daemon(cli: Cli):
    daemon = cli.serve()
    daemon.process.send_signal(signal.SIGTERM)
    ran = cli.run("agents", "list", "--json")
    # Either the old daemon still took it, or a new one did after the home was free.
    assert ran.code == 0, ran
    assert daemon.process.wait(SECONDS) == 0


def test_the_token_of_a_client_is_not_kept_by_the_daemon(cli: Cli):
    assert cli.run("agents", "list", env={"TAKEBACK_TOKEN": "secret-of-juno"}).code == 0
    pid = cli.json("status")["pid"]
    shown = subprocess.run(["ps", "eww", "-p", str(pid)], capture_output=True, text=True, check=True).stdout
    assert "TAKEBACK_HOME" in shown
    assert "secret-of-juno" not in shown


def test_a_failing_start_says_why(cli: Cli):
    cli.home.create()
    cli.home.settings.write_text("[kernel\n")
    ran = cli.run("agents", "list", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (2, "settings.malformed")
    assert str(cli.home.settings) in ran.json["error"]["message"]


def test_a_corrupt_database_is_said(cli: Cli):
    cli.home.create()
    cli.home.database.write_bytes(b"this is no database, and never was one" * 100)
    ran = cli.run("agents", "list", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (1, "store.corrupt")
    assert ran.json["error"]["hint"]
    assert "Traceback" not in ran.err


def test_a_database_of_a_later_version_is_said(cli: Cli):
    cli.json("agents", "list")
    cli.stop()
    with closing(sqlite3.connect(cli.home.database)) as database, database:
        later = "INSERT INTO kernel_migration SELECT module, 99, at, digest FROM kernel_migration"
        database.execute(f"{later} WHERE module = 'kernel'")
    ran = cli.run("agents", "list", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (1, "store.future")


@pytest.mark.parametrize("taken", ["state/daemon.log", "state/start.lock", "state/lock"])
def test_a_file_of_the_home_that_cant_be_opened_is_said(cli: Cli, taken: str):
    cli.home.create()
    (cli.root / "home" / taken).mkdir()
    ran = cli.run("agents", "list", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (1, "home.unusable")
    assert taken in ran.json["error"]["message"]


def test_a_large_log_is_put_aside(cli: Cli):
    cli.home.create()
    log = cli.home.state / "daemon.log"
    log.write_text("x" * (4 * 1024 * 1024 + 1))
    cli.json("agents", "list")
    assert (cli.home.state / "daemon.log.1").stat().st_size > 4 * 1024 * 1024
    assert log.stat().st_size < 1024 * 1024


def test_a_socket_path_that_is_taken_is_said(cli: Cli):
    cli.home.create()
    cli.home.socket.mkdir()
    ran = cli.run("agents", "list", "--json")
    assert ran.code == 1
    assert ran.json["error"]["code"] == "daemon.no_door"
    assert str(cli.home.socket) in ran.json["error"]["message"]


def test_a_home_that_is_too_deep_for_a_socket_works(cli: Cli):
    deep = cli.root / ("x" * 60) / ("y" * 60)
    env = {"TAKEBACK_HOME": str(deep)}
    started = cli.run("agents", "list", "--json", env=env)
    assert started.code == 0, started
    found = cli.run("status", "--json", env=env).json
    assert found["running"] is True
    assert len(found["socket"]) <= 100
    assert os.path.dirname(found["socket"]).startswith("/tmp/takeback-")
    assert cli.run("stop", env=env).code == 0
    assert not os.path.exists(os.path.dirname(found["socket"])), "nobody else would ever remove it"
    assert cli.run("agents", "list", env=env).code == 0, "it is made again"
    assert cli.run("stop", env=env).code == 0
    shutil.rmtree(deep)


@pytest.fixture
def watching(cli: Cli) -> Daemon:
    """A daemon that looks at its home all the time."""
    cli.environ["TAKEBACK_CLI__WATCH_SECONDS"] = "0.05"
    return cli.serve()


@pytest.mark.parametrize("gone", ["", "data", "data/takeback.db", "state/lock", "runtime/daemon.sock"])
def test_a_daemon_whose_home_is_deleted_ends_by_itself(cli: Cli, watching: Daemon, gone: str):
    path = cli.root / "home" / gone
    path.unlink() if path.suffix in (".db", ".sock") or path.name == "lock" else shutil.rmtree(path)
    assert watching.process.wait(SECONDS) == 0
    log = watching.log.read_text()
    assert "so this daemon ends" in log
    assert "Traceback" not in log
    assert gone != "" or not path.exists(), "what is deleted is not made again"


def test_a_daemon_whose_home_is_replaced_ends_and_leaves_the_new_one_alone(cli: Cli, watching: Daemon):
    del cli.environ["TAKEBACK_CLI__WATCH_SECONDS"]
    (cli.root / "home").rename(cli.root / "old")
    cli.json("agents", "add", "juno")
    assert watching.process.wait(SECONDS) == 0
    assert [agent["name"] for agent in cli.json("agents", "list", "--no-start")["agents"]] == ["juno"]


def test_a_caller_is_not_served_from_a_home_that_is_no_more(cli: Cli):
    daemon = cli.serve()
    cli.json("agents", "list")
    cli.home.database.rename(cli.root / "elsewhere.db")
    ran = cli.run("agents", "list", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (1, "daemon.homeless")
    assert daemon.process.wait(SECONDS) == 0, "it did not wait for its next look"


def test_no_daemon_is_there_to_connect_to(cli: Cli):
    assert try_connect(cli.home.socket) is None
