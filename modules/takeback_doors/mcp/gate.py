"""The gate before every HTTP route: what a browser, a rebound name or a flood could send ends here."""

from __future__ import annotations

import json
from urllib.parse import parse_qsl

from takeback.errors import RefusedError, TakebackError, UsageError
from takeback_doors.mcp.exchange import App, Exchange, Receive, RefusedRequest, Scope, Send, too_large

_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_SAME_SITE = frozenset({b"same-origin", b"none"})
_CHECKED = frozenset({b"origin", b"sec-fetch-site", b"content-length"})
_SECRETS = frozenset({"token", "access_token", "auth", "authorization", "bearer", "api_key", "apikey", "key"})


class Gate:
    """Lets a request through to `app` only from this machine's own programs and within its limits.

    Checks, before anybody asks who is calling: the exact Host (421), a token in the address (400), Origin and
    Sec-Fetch-Site (403), a POST's content type (400), the body's size (413) and its pace (408).
    """

    def __init__(self, app: App, hosts: frozenset[bytes], *, body_limit: int, body_timeout: float) -> None:
        self._app = app
        self._hosts = hosts
        self._origins = frozenset(b"http://" + host for host in hosts)
        self._limit = body_limit
        self._timeout = body_timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request as an ASGI application."""
        if scope["type"] != "http":
            return
        try:
            self._check(scope)
            await Exchange(receive, send, self._limit, self._timeout).serve(self._app, scope)
        except RefusedRequest as refusal:
            await answer(send, refusal.status, refusal.error)

    def _check(self, scope: Scope) -> None:
        hosts, kind, others = [], b"", []
        for name, value in scope["headers"]:
            if name == b"host":
                hosts.append(value.lower())
            elif name == b"content-type":
                kind = value
            elif name in _CHECKED:
                others.append((name, value))
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            raise RefusedRequest(421, _unknown_host())
        if scope["query_string"]:
            _check_query(scope["query_string"])
        for name, value in others:
            self._check_header(name, value, scope["method"])
        if scope["method"] == "POST":
            _check_kind(kind)

    def _check_header(self, name: bytes, value: bytes, method: str) -> None:
        if name == b"origin" and value.lower() not in self._origins:
            raise _foreign("another origin")
        if name == b"sec-fetch-site" and method not in _SAFE and value not in _SAME_SITE:
            raise _foreign("another site")
        if name == b"content-length" and value.isdigit() and int(value) > self._limit:
            raise too_large(self._limit)


async def answer(send: Send, status: int, error: TakebackError, *headers: tuple[bytes, bytes]) -> None:
    """Send an error as JSON, in the shape it has on every door."""
    body = json.dumps({"ok": False, "error": error.as_dict()}).encode()
    head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *headers]
    if status == 408:
        head.append((b"connection", b"close"))
    await send({"type": "http.response.start", "status": status, "headers": head})
    await send({"type": "http.response.body", "body": body})


def _check_query(query: bytes) -> None:
    pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    if any(name.lower() in _SECRETS or value.startswith("tb_") for name, value in pairs):
        raise RefusedRequest(
            400,
            UsageError(
                "http.token_in_url",
                "The address carries a token, and addresses end up in logs",
                "Send it as a header, `Authorization: Bearer TOKEN`, and rotate this one.",
            ),
        )


def _check_kind(kind: bytes) -> None:
    # A form can't send this type, so no foreign page can post here without the browser asking first.
    if kind.split(b";")[0].strip().lower() != b"application/json":
        raise RefusedRequest(
            400,
            UsageError(
                "http.content_type",
                "A POST here carries JSON",
                "Set the header `Content-Type: application/json`.",
            ),
        )


def _foreign(who: str) -> RefusedRequest:
    hint = "Only this machine's own programs and takeback's own pages may call."
    return RefusedRequest(403, RefusedError("http.origin", f"The request comes from {who}", hint))


def _unknown_host() -> TakebackError:
    return RefusedError(
        "http.host",
        "The request is addressed to a host that is not this one",
        "Use the address that `takeback status` shows; add another one under hosts in the [mcp] settings.",
    )
