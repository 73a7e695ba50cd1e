"""Every type whose values are captured comes back as it was, to the bit (cases 34 to 39)."""

import pytest

TYPES = {
    "bool": ["true", "false"],
    "int2": ["-32768"],
    "int8": ["9223372036854775807", "-9223372036854775808", "9007199254740993"],
    "numeric": [
        "1.10",
        "1.1",
        "NaN",
        "Infinity",
        "-Infinity",
        "0.00",
        "1e-300",
        "12345678901234567890.0123456789",
    ],
    "numeric(12,4)": ["1.1000", "-99999999.9999"],
    "float8": [
        "5e-324",
        "-0",
        "NaN",
        "Infinity",
        "-Infinity",
        "0.1",
        "1.7976931348623157e308",
        "0.30000000000000004",
    ],
    "float4": ["0.1", "-0", "1.4e-45", "3.4028235e38", "16777217", "NaN"],
    "money": ["12.34", "-92233720368547758.08"],
    "text": [
        "",
        " ",
        "NULL",
        "null",
        "a\tb\nc\\d\"e'f",
        "e\u0301\U0001f600\u200d",
        "{a,b}",
        "$takeback$",
        "%s %%",
    ],
    "varchar(5)": ["ab   ", "abcde"],
    "char(5)": ["", "ab", "ab  c"],
    "bpchar": ["ab  ", ""],
    "name": ["some name"],
    '"char"': ["a", "\\377", ""],
    "bytea": ["", "\\x00", "\\x00ff10", "\\x27225c"],
    "bit(3)": ["101"],
    "bit varying": ["", "10110"],
    "date": ["infinity", "-infinity", "0044-03-15 BC", "5874897-12-31", "2026-03-29"],
    "time": ["24:00:00", "00:00:00.000001"],
    "timetz": ["12:00:00+02", "23:59:59.999999-15:59:59"],
    "timestamp": ["infinity", "4713-01-01 00:00:00 BC", "2026-03-29 02:30:00.123456"],
    "timestamptz": ["infinity", "-infinity", "0001-01-01 00:00:00+00 BC", "2026-10-25 00:30:00.000001+00"],
    "timestamptz(0)": ["2026-10-25 00:30:00+00"],
    "interval": [
        "1 mon -2 days +03:04:05.000006",
        "-1 years 30 days",
        "infinity",
        "00:00:00",
        "24:00:00",
        "1 day",
    ],
    "uuid": ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
    "json": ['{"b":1,"a":2,"b":3}', '{ "a" :  1.10 }', "null", '"\\u0000"', "[]"],
    "jsonb": ['{"a": 1.10}', "null", "12345678901234567890.10", '"\\u00e9"'],
    "jsonpath": ['$."a"[*]?(@ > 1)'],
    "inet": ["10.1.2.3/8", "10.1.2.3", "::1/64"],
    "cidr": ["10.0.0.0/8"],
    "macaddr": ["08:00:2b:01:02:03"],
    "macaddr8": ["08:00:2b:01:02:03:04:05"],
    "point": ["(1,-0)", "(NaN,Infinity)", "(0.1,5e-324)"],
    "line": ["{1,2,3}"],
    "lseg": ["[(0.1,0),(1,1)]"],
    "box": ["(1,1),(0,0.1)"],
    "path": ["((0,0),(1,1))", "[(0,0),(1,1)]"],
    "polygon": ["((0,0),(1,1),(0.1,5))"],
    "circle": ["<(0.1,0),3>"],
    "oid": ["4294967295"],
    "xid": ["4294967295"],
    "xid8": ["18446744073709551615"],
    "cid": ["7"],
    "tid": ["(4294967295,65535)"],
    "pg_lsn": ["FFFFFFFF/FFFFFFFF", "0/0"],
    "pg_snapshot": ["10:20:10,14,15"],
    "tsvector": ["'a b':1A,3B 'it''s':2"],
    "tsquery": ["'a b' & !'c':*AB | 'd' <3> 'e'"],
    "int2vector": ["1 2 3", ""],
    "oidvector": ["1 2"],
    "refcursor": ["c1"],
    "int4[]": ["{}", "{NULL,1}", "[2:4]={1,NULL,3}", "{{1,2},{3,4}}", "[0:1][-1:0]={{1,2},{3,4}}"],
    "text[]": ['{"NULL",NULL,"null","",a}', '{"a,b","c\\"d","e\\\\f"," "}', "{{a},{b}}"],
    "box[]": ["{(1,1),(0,0);(2,2),(0,0)}"],
    "timestamptz[]": ['{"2026-10-25 00:30:00+00",infinity}'],
    "int4range": ["empty", "[1,5)", "(,5)", "(,)"],
    "numrange": ["[1.10,2.00)", "(NaN,]"],
    "tstzrange": ['["2026-10-25 00:30:00+00",infinity]'],
    "int8multirange": ["{}", "{[1,3),[5,7)}"],
    "datemultirange": ["{[2026-01-01,2026-02-01)}"],
    "mood": ["sad", "very happy", "it's"],
    "mood[]": ['{sad,"very happy"}'],
    "positive": ["1.10"],
    "moods": ["{sad}"],
    "pair": ["(,)", '(,"")', '(1,"a ""b"", (c)")', "(1,NULL)"],
    "pair[]": ['{"(1,a)",NULL}'],
    "nested": ['("(1,""x, y"")","{1.10,NULL}",sad)'],
    "moodrange": ["[sad,it's]"],
    '"Odd ""Type"': ["(1)"],
}
MADE = """
CREATE TYPE mood AS ENUM ('sad', 'very happy', 'it''s');
CREATE TYPE moodrange AS RANGE (subtype = mood);
CREATE DOMAIN positive AS numeric CHECK (value > 0);
CREATE DOMAIN moods AS mood[];
CREATE TYPE pair AS (a int, b text);
CREATE TYPE nested AS (p pair, n numeric[], m mood);
CREATE TYPE "Odd ""Type" AS (x int);
"""


@pytest.fixture
def typed(here):
    here.sql(MADE)
    return here


def _sent(here, select="SELECT * FROM v ORDER BY id"):
    """The values as the server sends them in binary, which says all of them."""
    cursor = here.stranger.cursor(binary=True)
    cursor.execute(select)
    result = cursor.pgresult
    return [[result.get_value(row, n) for n in range(result.nfields)] for row in range(result.ntuples)]


def test_values_of_every_type_come_back_to_the_bit(typed):
    columns = ", ".join(f"c{n} {name}" for n, name in enumerate(TYPES))
    typed.sql(f"CREATE TABLE v (id int PRIMARY KEY, {columns})")
    most = max(map(len, TYPES.values()))
    for row in range(most):
        values = [samples[row] if row < len(samples) else None for samples in TYPES.values()]
        marks = ", ".join(f"%s::{name}" for name in TYPES)
        typed.stranger.execute(f"INSERT INTO v VALUES ({row}, {marks})", values)
    typed.stranger.execute(f"INSERT INTO v (id) VALUES ({most})")
    before = _sent(typed)
    catalog = typed.install()
    assert catalog.refused == {}
    table = catalog.tables["v"]
    typed.dialect.begin(typed.link)
    typed.dialect.arm(typed.link, catalog, "act")
    typed.link.execute("DELETE FROM v")
    gone = [event.before for event in typed.dialect.collect(typed.link, catalog)]
    typed.dialect.insert(typed.link, table, gone)
    came = [event.after for event in typed.dialect.collect(typed.link, catalog)]
    read = typed.dialect.read(typed.link, table, [table.key_of(image) for image in gone])
    typed.dialect.commit(typed.link)
    assert came == gone
    assert list(read.values()) == gone
    assert _sent(typed) == before


def test_values_of_every_type_are_set_to_the_bit(typed):
    columns = ", ".join(f"c{n} {name}" for n, name in enumerate(TYPES))
    typed.sql(f"CREATE TABLE v (id int PRIMARY KEY, {columns})")
    marks = ", ".join(f"%s::{name}" for name in TYPES)
    typed.stranger.execute(f"INSERT INTO v VALUES (1, {marks})", [samples[0] for samples in TYPES.values()])
    before = _sent(typed)
    catalog = typed.install()
    table = catalog.tables["v"]
    names = [column.name for column in table.columns[1:]]
    typed.dialect.begin(typed.link)
    image = typed.dialect.read(typed.link, table, [("1",)])["1",]
    values = dict(zip(names, image[1:], strict=True))
    typed.dialect.update(typed.link, table, [(("1",), dict.fromkeys(names))])
    assert typed.dialect.read(typed.link, table, [("1",)])["1",] == ("1", *[None] * len(names))
    typed.dialect.update(typed.link, table, [(("1",), values)])
    typed.dialect.commit(typed.link)
    assert _sent(typed) == before


@pytest.mark.parametrize(
    "kind", ["regclass", "regtype", "aclitem", "pair_of_reg", "regrole[]", "shady", "regs"]
)
def test_a_type_whose_text_is_not_all_of_a_value_is_refused_by_name(here, kind):
    here.sql(
        "CREATE TYPE pair_of_reg AS (a int, b regproc); CREATE DOMAIN regs AS regclass;"
        "CREATE TYPE shady AS RANGE (subtype = oid, subtype_opclass = oid_ops);"
        f"CREATE TABLE v (id int PRIMARY KEY, odd {kind})"
    )
    catalog = here.dialect.catalog(here.link)
    if kind == "shady":
        assert "v" in catalog.tables
        return
    assert "v" not in catalog.tables
    assert "odd" in catalog.refused["v"]


def test_types_of_an_extension_are_captured_where_their_text_is_exact(here):
    with here.server.connect(here.name) as admin:
        admin.execute("CREATE EXTENSION vector")
    here.sql("CREATE TABLE v (id int PRIMARY KEY, e vector(3), h halfvec(2), s sparsevec(4))")
    here.sql("INSERT INTO v VALUES (1, '[0.1,-0,3e-45]', '[0.1,65504]', '{1:0.1,3:-2}/4')")
    before = _sent(here)
    catalog = here.install()
    here.dialect.begin(here.link)
    here.dialect.arm(here.link, catalog, "act")
    here.link.execute("DELETE FROM v")
    (event,) = here.dialect.collect(here.link, catalog)
    here.dialect.insert(here.link, catalog.tables["v"], [event.before])
    here.dialect.commit(here.link)
    assert _sent(here) == before


def test_texts_do_not_depend_on_the_settings_of_a_function_that_writes(here):
    here.sql(
        """
        CREATE TABLE v (id int PRIMARY KEY, t timestamptz, d date, i interval, f float8, b bytea, m money);
        CREATE FUNCTION odd() RETURNS void LANGUAGE sql
            SET timezone = 'Europe/Berlin' SET datestyle = 'German' SET intervalstyle = 'iso_8601'
            SET extra_float_digits = -15 SET bytea_output = 'escape'
        AS $$ INSERT INTO v VALUES
            (1, '2026-10-25 00:30:00+00', '2026-12-11', '1 day', 0.1::float8 + 0.2, '\\x00', 1) $$;
        """
    )
    (event,) = here.capture("SELECT odd()")
    assert event.after == (
        "1",
        "2026-10-25 00:30:00+00",
        "2026-12-11",
        "1 day",
        "0.30000000000000004",
        "\\x00",
        "$1.00",
    )
    (event,) = here.capture("SELECT set_config('TimeZone', 'Asia/Tokyo', true)", "SELECT odd()")
    assert event.after[1] == "2026-10-25 00:30:00+00"


def test_json_null_is_not_sql_null(here):
    here.sql("CREATE TABLE v (id int PRIMARY KEY, j jsonb, t text)")
    events = here.capture("INSERT INTO v VALUES (1, 'null', ''), (2, NULL, NULL), (3, '\"null\"', 'null')")
    assert [event.after for event in events] == [
        ("1", "null", ""),
        ("2", None, None),
        ("3", '"null"', "null"),
    ]


def test_a_value_beyond_a_page_is_captured_whole(here):
    here.sql("CREATE TABLE v (id int PRIMARY KEY, t text)")
    (event,) = here.capture(
        "INSERT INTO v SELECT 1, string_agg(md5(i::text), '') FROM generate_series(1, 100000) i"
    )
    assert len(event.after[1]) == 3_200_000
