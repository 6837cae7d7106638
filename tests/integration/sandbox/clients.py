# SPDX-License-Identifier: GPL-3.0-or-later
"""Plain HTTP clients of the sandbox's services."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, TypeVar

import requests

from sandbox.client import Sandbox

Found = TypeVar("Found")
SECONDS = 10


class Client:
    """Send requests to a service as an account. Redirects are returned."""

    def __init__(
        self, sandbox: Sandbox, service: str, login: tuple[str, str] | None, **headers: str
    ) -> None:
        self.url = sandbox.urls[service]
        self.session = requests.Session()
        self.session.trust_env = False
        self.session.auth = login
        self.session.headers.update(headers)

    def __call__(
        self, method: str, path: str, json: Any = None, **options: Any
    ) -> requests.Response:
        address = path if path.startswith("http") else self.url + path
        given = {"timeout": SECONDS, "allow_redirects": False, **options}
        return self.session.request(method, address, json=json, **given)


def until(look: Callable[[], Found | None]) -> Found:
    """Return the first result that is not None. Fail after ten seconds."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        found = look()
        if found is not None:
            return found
        time.sleep(0.02)
    raise AssertionError("it did not happen")
