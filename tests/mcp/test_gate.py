"""The gate: what a browser, a rebound name or a flood could send."""

import json

import anyio
import pytest

from tests.mcp.house import house, http, request, routing

pytestmark = pytest.mark.anyio

BODY = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def head(method: str, path: str, *lines: str, body: bytes = b"") -> bytes:
    top = [f"{method} {path} HTTP/1.1", *lines]
    if body:
        top.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*top, "", ""]).encode("latin-1") + body


def status(answer: bytes) -> int:
    return int(answer.split()[1])


def code(answer: bytes) -> str:
    return str(json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["code"])


@pytest.mark.parametrize("path", ["/mcp", "/", "/anything"])
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE", "OPTIONS"])
async def test_1_foreign_host_is_refused_on_every_route_before_auth(door, path, method):
    answer = await door.raw(head(method, path, f"Host: evil.example:{door.port}"))
    assert status(answer) == 421
    assert code(answer) == "http.host"


async def test_1_our_own_host_without_token_is_asked_for_one(door):
    answer = await door.raw(head("GET", "/mcp", f"Host: 127.0.0.1:{door.port}"))
    assert status(answer) == 401
    assert b"www-authenticate: Bearer" in answer


@pytest.mark.parametrize(
    "lines",
    [
        ["Host: localhost:1.evil.example"],
        ["Host: localhost.:{port}"],
        ["Host: 127.0.0.1:{port}.evil.example"],
        ["Host: 127.0.0.1"],
        ["Host: 127.0.0.1:1"],
        ["Host: 0.0.0.0:{port}"],
        ["Host: localhost:{port}", "Host: evil.example"],
        ["Host: localhost:{port}", "Host: localhost:{port}"],
        ["X-Forwarded-Host: localhost:{port}"],
        ["Host: evil.example", "X-Forwarded-Host: localhost:{port}"],
    ],
)
async def test_2_only_the_exact_host_passes(door, lines):
    answer = await door.raw(head("GET", "/mcp", *[line.format(port=door.port) for line in lines]))
    assert status(answer) in (421, 400)
    assert b"www-authenticate" not in answer


async def test_2_host_in_upper_case_is_the_same_host(door):
    assert status(await door.raw(head("GET", "/mcp", f"Host: LOCALHOST:{door.port}"))) == 401


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:3000", "https://localhost:{port}"]
)
@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
async def test_3_foreign_origin_is_refused(door, origin, method):
    lines = [f"Host: localhost:{door.port}", f"Origin: {origin.format(port=door.port)}"]
    answer = await door.raw(head(method, "/mcp", *lines))
    assert status(answer) == 403
    assert code(answer) == "http.origin"


async def test_3_own_origin_passes(door):
    token = await door.token("juno")
    response = await door.post(
        token,
        request("tools/call", "notes.list", {}),
        Origin=f"http://127.0.0.1:{door.port}",
        **routing("notes.list"),
    )
    assert response.status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
async def test_5_cross_site_post_is_refused(door, site):
    lines = [f"Host: localhost:{door.port}", f"Sec-Fetch-Site: {site}", "Content-Type: application/json"]
    answer = await door.raw(head("POST", "/mcp", *lines, body=BODY))
    assert status(answer) == 403


@pytest.mark.parametrize(
    "kind", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=x", None]
)
async def test_5_a_forms_post_is_refused_without_any_fetch_header(door, kind):
    lines = [f"Host: localhost:{door.port}"] + ([f"Content-Type: {kind}"] if kind else [])
    answer = await door.raw(head("POST", "/mcp", *lines, body=BODY))
    assert status(answer) == 400
    assert code(answer) == "http.content_type"


async def test_8_declared_body_over_the_limit(door):
    token = await door.token("juno")
    response = await door.post(token, b"x" * (5 << 20))
    assert response.status_code == 413
    assert response.json()["error"]["code"] == "http.too_large"


async def test_8_chunked_body_over_the_limit(door):
    token = await door.token("juno")

    async def chunks():
        for _ in range(6):
            yield b" " * (1 << 20)

    async with http(token, **{"Content-Type": "application/json"}) as client:
        response = await client.post(door.url, content=chunks())
    assert "content-length" not in response.request.headers
    assert response.status_code == 413
    assert response.json()["error"]["code"] == "http.too_large"


async def test_8_body_up_to_the_limit_is_read(door):
    token = await door.token("juno")
    padded = json.dumps(request("tools/call", "notes.list", {})).encode()
    response = await door.post(token, padded + b" " * ((4 << 20) - len(padded)), **routing("notes.list"))
    assert response.json()["result"]["structuredContent"] == {"names": ["milk"]}


async def test_8_slow_body_times_out(home):
    async with house(home, body_timeout=0.2) as door:
        token = await door.token("juno")
        lines = [
            f"Host: localhost:{door.port}",
            f"Authorization: Bearer {token}",
            "Content-Type: application/json",
        ]
        started = anyio.current_time()
        answer = await door.raw(head("POST", "/mcp", *lines, "Content-Length: 100"))
        assert status(answer) == 408
        assert code(answer) == "http.slow"
        assert anyio.current_time() - started < 5


@pytest.mark.parametrize(
    "query", ["token={}", "access_token={}", "Authorization=Bearer%20{}", "x={}", "to%6ben=a"]
)
async def test_a_token_in_the_address_is_refused(door, query):
    token = await door.token("juno")
    lines = [f"Host: localhost:{door.port}", "Content-Type: application/json"]
    answer = await door.raw(head("POST", "/mcp?" + query.format(token), *lines, body=BODY))
    assert status(answer) == 400
    assert code(answer) == "http.token_in_url"
    assert token.encode() not in answer


async def test_9_headers_that_contradict_the_body(door):
    token = await door.token("juno")
    body = request("tools/call", "notes.delete", {"name": "milk"})
    response = await door.post(token, body, **routing("notes.list"))
    assert response.status_code == 400
    assert response.json()["error"]["code"] == -32020
    assert (await door.call(token, "notes.list", {}))["result"]["structuredContent"] == {"names": ["milk"]}


async def test_a_preflight_gets_no_permission(door):
    lines = [f"Host: localhost:{door.port}", "Access-Control-Request-Method: POST"]
    answer = await door.raw(head("OPTIONS", "/mcp", *lines))
    assert b"access-control-allow" not in answer.lower()
    assert status(answer) == 401


async def test_another_address_is_not_found(door):
    answer = await door.raw(head("GET", "/mcp/", f"Host: localhost:{door.port}"))
    assert status(answer) == 404
