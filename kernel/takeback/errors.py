"""Typed errors: one shape on every door."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

EXIT_CODES: Mapping[str, int] = {"failed": 1, "usage": 2, "conflict": 3, "refused": 4, "not_found": 5}


class TakebackError(Exception):
    """A foreseen failure whose words may reach whoever made the call.

    `code` is a stable dotted name, `message` says what was wrong and where, `hint` what to do about it.
    `retryable` tells that the very same call may succeed later. `data` holds JSON values for programs.
    """

    kind: ClassVar[str] = "failed"

    def __init__(
        self,
        code: str,
        message: str,
        hint: str = "",
        *,
        retryable: bool = False,
        data: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.retryable = retryable
        self.data = data or {}

    def __str__(self) -> str:
        return f"{self.message} [{self.code}]"

    def __reduce__(self) -> tuple[Any, ...]:
        return (TakebackError.from_dict, (self.as_dict(),))

    @property
    def exit_code(self) -> int:
        """The exit code of a command that ends with this error."""
        return EXIT_CODES[self.kind]

    def as_dict(self) -> dict[str, Any]:
        """The error as JSON values: `code, kind, message, hint, retryable` and `data` where there is any."""
        shape: dict[str, Any] = {
            "code": self.code,
            "kind": self.kind,
            "message": self.message,
            "hint": self.hint,
            "retryable": self.retryable,
        }
        if self.data:
            shape["data"] = self.data
        return shape

    @staticmethod
    def from_dict(shape: Mapping[str, Any]) -> TakebackError:
        """The error that `as_dict` described, of the class its kind names."""
        made = _BY_KIND.get(str(shape.get("kind")), TakebackError)
        return made(
            str(shape["code"]),
            str(shape["message"]),
            str(shape.get("hint", "")),
            retryable=bool(shape.get("retryable", False)),
            data=dict(shape.get("data") or {}),
        )


class UsageError(TakebackError):
    """The call itself is malformed: wrong types, extra keys, a value out of range."""

    kind = "usage"


class ConflictError(TakebackError):
    """The world has changed since, so the call would destroy somebody's work."""

    kind = "conflict"


class RefusedError(TakebackError):
    """The caller may not do this."""

    kind = "refused"


class NotFoundError(TakebackError):
    """What the call names is not there for this caller."""

    kind = "not_found"


_BY_KIND = {
    made.kind: made for made in (TakebackError, UsageError, ConflictError, RefusedError, NotFoundError)
}
