"""`takeback rows`: a database is connected, listed without its password, and let go."""

import sqlite3
from contextlib import closing

import pytest

from tests.cli.running import Cli


@pytest.fixture
def person(served: Cli):
    """A SQLite file of the person's beside the served home; whatever is connected is let go."""
    file = served.work / "person.db"
    file.unlink(missing_ok=True)
    with closing(sqlite3.connect(file)) as db:
        db.executescript("CREATE TABLE skill (id INTEGER PRIMARY KEY, title TEXT); CREATE TABLE odd (x);")
    yield file
    for each in served.json("rows")["databases"]:
        served.json("rows", "disconnect", each["name"], "--force")


def test_a_file_is_connected_by_its_path_and_let_go(served, person):
    connected = served.json("rows", "connect", "main", "person.db")
    assert connected["database"]["url"] == f"sqlite:///{person}"
    assert connected["database"]["tables"] == ["skill"]
    assert connected["database"]["refused"].keys() == {"odd"}
    (listed,) = served.json("rows", "list")["databases"]
    assert (listed["name"], listed["engine"]) == ("main", "sqlite")
    ran = served.run("rows")
    assert ran.code == 0
    assert str(person) in ran.out.replace("\n", "") or "main" in ran.out
    assert served.json("rows", "disconnect", "main")["warning"] == ""
    assert served.json("rows")["databases"] == []


def test_connecting_tells_what_can_be_changed_and_what_can_not(served, person):
    ran = served.run("rows", "connect", "main", f"sqlite:///{person}")
    assert ran.code == 0
    assert "skill" in ran.err
    assert "odd can't be changed" in ran.err
    assert "takeback agents grant NAME --table main.TABLE" in ran.err


def test_the_url_is_read_from_stdin(served, person):
    ran = served.run("rows", "connect", "main", "-", "--json", stdin=f"sqlite:///{person}\n")
    assert ran.json["database"]["name"] == "main"


def test_what_an_act_did_is_taken_back_on_the_command_line(served, person):
    served.json("rows", "connect", "main", "person.db")
    call = ["tools", "call", "rows.insert", '{"table": "skill", "row": {"title": "Go"}}']
    done = served.json(*call)["result"]
    assert done["rows"] == [{"table": "skill", "key": {"id": 1}}]
    ran = served.run("rows", "disconnect", "main", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (3, "rows.in_use")
    assert served.run("undo", "--last").code == 0
    with closing(sqlite3.connect(person)) as db:
        assert db.execute("SELECT * FROM skill").fetchall() == []
    assert served.run("rows", "disconnect", "main").code == 0


@pytest.mark.parametrize(
    ("args", "code", "exits"),
    [
        (["disconnect", "nothing"], "rows.database", 5),
        (["connect", "Main", "person.db"], "rows.name", 2),
        (["connect", "main", "nothing.db"], "rows.file", 4),
        (["connect", "main", "mysql://root:geheim@host/db"], "rows.url", 2),
        (["connect", "main", "postgresql://me:geheim@127.0.0.1:1/db"], "rows.unreachable", 1),
    ],
)
def test_what_goes_wrong_has_its_code_and_no_secret(served, person, args, code, exits):
    ran = served.run("rows", *args, "--json")
    assert (ran.json["error"]["code"], ran.code) == (code, exits)
    assert "geheim" not in ran.out + ran.err


def test_an_empty_url_is_none(served, person):
    assert served.run("rows", "connect", "main", "-", stdin="\n").code == 2
