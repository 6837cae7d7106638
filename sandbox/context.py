# SPDX-License-Identifier: GPL-3.0-or-later
"""State that all services share: store, settings, credentials, log, faults and clock."""

from __future__ import annotations

import time
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from sandbox.faults import Faults
from sandbox.log import Log

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.requests import Request

    from sandbox.service import Service
    from sandbox.store import Snapshot, Store

FLAVOURS = ("written", "real")

_SETTINGS, _CREDENTIALS = "sandbox.settings", "sandbox.credentials"


class Context:
    """State of a sandbox. Handlers get it from `context(request)`, services from `self.context`."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.log = Log()
        self.faults = Faults()
        #: Number of resets.
        self.resets = 0
        self.services: dict[str, Service] = {}
        self._settings: dict[str, dict[str, Any]] = {}
        self._credentials: dict[str, dict[str, Any]] = {}

    def add_service(self, service: Service) -> None:
        """Register a service with its stored settings and credentials."""
        self.services[service.name] = service
        self._settings[service.name] = {
            "flavour": "written",
            "delay_ms": 0,
            **deepcopy(service.defaults),
            **(self.store.get(_SETTINGS, service.name) or {}),
        }
        self._credentials[service.name] = self.store.get(_CREDENTIALS, service.name) or {}

    def known_services(self, names: Iterable[Any]) -> None:
        """Raise `ValueError` if a name is not that of a service."""
        unknown = sorted(set(map(str, names)) - set(self.services))
        if unknown:
            raise ValueError(f"unknown services: {', '.join(unknown)}")

    def settings(self, service: str) -> dict[str, Any]:
        """Return the current settings of a service. Change them with `update_settings()`."""
        return self._settings[service]

    def update_settings(self, service: str, changes: dict[str, Any]) -> None:
        """Change settings. Raises `ValueError` for an unknown name or flavour."""
        settings = self._settings[service]
        unknown = sorted(set(changes) - set(settings))
        if unknown:
            raise ValueError(f"{service} has no setting {', '.join(unknown)}")
        if changes.get("flavour", FLAVOURS[0]) not in FLAVOURS:
            raise ValueError(f"{service} has no flavour {changes['flavour']}")
        settings.update(deepcopy(changes))
        self.store.put(
            _SETTINGS, service, {**(self.store.get(_SETTINGS, service) or {}), **changes}
        )

    def credentials(self, service: str) -> dict[str, Any]:
        """Return the credentials in the seed, whose format the service defines."""
        return self._credentials[service]

    def update_credentials(self, service: str, changes: dict[str, Any]) -> None:
        """Merge changes into the credentials: dicts are merged deeply, other values replaced."""
        _merge(self._credentials[service], deepcopy(changes))
        self.store.put(_CREDENTIALS, service, self._credentials[service])

    def seed(self, data: dict[str, Any]) -> None:
        """Merge a seed, `{service: {settings, credentials, ...}}`.

        Raises `ValueError` for an unknown service, or for data that a service cannot read.
        """
        self.known_services(data)
        with self.store.transaction():
            for name, content in data.items():
                objects = deepcopy(content or {})
                try:
                    self.update_settings(name, objects.pop("settings", None) or {})
                    self.update_credentials(name, objects.pop("credentials", None) or {})
                    self.services[name].seed(objects)
                except (AttributeError, LookupError, TypeError) as error:
                    raise ValueError(f"the seed of {name} cannot be read: {error!r}") from error

    def reset(self, state: Snapshot) -> None:
        """Restore documents, settings and credentials from a snapshot. Clear faults and log.

        Requests that a fault still delays are dropped.
        """
        self.resets += 1
        self.store.restore(state)
        self.faults.clear()
        self.log.clear()
        for service in self.services.values():
            service.reset()
            self.add_service(service)

    def real(self, service: str) -> bool:
        """Return whether a service simulates real servers instead of the written interface."""
        return bool(self._settings[service]["flavour"] == "real")

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def base_url(self, request: Request, service: str) -> str:
        """Return the base URL of a service for this client, without a slash at the end."""
        host = request.headers.get("host") or "127.0.0.1"
        return f"{request.scope['scheme']}://{host}/{service}"


def context(request: Request) -> Context:
    """Return the sandbox that handles this request."""
    found: Context = request.app.state.context
    return found


def _merge(target: dict[str, Any], changes: dict[str, Any]) -> None:
    for key, value in changes.items():
        if isinstance(value, dict) and isinstance(target.get(key), dict):
            _merge(target[key], value)
        else:
            target[key] = value
