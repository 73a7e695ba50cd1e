"""Where the app gets its database from."""

from __future__ import annotations

import os

from fastapi import FastAPI

from cv_app.app import create_app


def from_environment() -> FastAPI:
    """The app over the database that `CV_DATABASE` names."""
    return create_app(os.environ.get("CV_DATABASE", "sqlite+aiosqlite:///cv.db"))
