"""The door's settings, and what its tools take and give."""

from __future__ import annotations

from ipaddress import ip_address

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator


class Settings(BaseModel):
    """`[mcp]` in takeback.toml.

    `host` is an address to listen on, loopback unless `allow_remote` says otherwise; `port` 0 takes any
    free one. `hosts` are further values of the Host header to answer to, `name:port`. Times are in
    seconds or, where the name says so, in minutes.
    """

    model_config = ConfigDict(extra="forbid")
    allow_remote: bool = False
    hosts: tuple[str, ...] = ()
    host: str = "127.0.0.1"
    port: int = Field(default=7420, ge=0, le=65_535)
    session_gap_minutes: float = Field(default=30, gt=0)
    call_timeout: float = Field(default=120, gt=0)
    body_timeout: float = Field(default=10, gt=0)
    body_limit: int = Field(default=4 * 1024 * 1024, ge=1024)
    stream_limit: int = Field(default=256, ge=1)

    @field_validator("host")
    @classmethod
    def _loopback_or_explicit(cls, host: str, known: ValidationInfo) -> str:
        if not is_loopback(host):
            if not known.data.get("allow_remote"):
                raise ValueError("others can reach it; set allow_remote = true if that is meant")
            if not known.data.get("hosts"):
                raise ValueError("set hosts as well, the names and ports it may be addressed by")
        return host


class Nothing(BaseModel):
    """No arguments."""

    model_config = ConfigDict(extra="forbid")


class Status(BaseModel):
    """Where agents find the door, and how many streams and bridges are open.

    Without a `url`, `problem` says why there is no HTTP; the bridge over `socket` works all the same.
    """

    url: str
    problem: str
    socket: str
    streams: int
    bridges: int


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
