# SPDX-License-Identifier: GPL-3.0-or-later
"""State that all services share (store, settings, credentials, log, faults and clock), and their
base class.
"""

from __future__ import annotations

import time
from copy import deepcopy
from typing import TYPE_CHECKING, Any, ClassVar

from starlette.responses import PlainTextResponse, Response

from sandbox.faults import Faults
from sandbox.log import Log

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from starlette.requests import Request
    from starlette.routing import Route

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
            "log_responses": False,
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
                    settings = objects.pop("settings", None) or {}
                    credentials = objects.pop("credentials", None) or {}
                    self._require_known(name, objects, credentials)
                    self.update_settings(name, settings)
                    self.update_credentials(name, credentials)
                    self.services[name].seed(objects)
                except (AttributeError, LookupError, TypeError) as error:
                    raise ValueError(f"the seed of {name} cannot be read: {error!r}") from error

    def _require_known(
        self, name: str, objects: dict[str, Any], credentials: dict[str, Any]
    ) -> None:
        """Raise `ValueError` for keys of a seed that the service would ignore."""
        service = self.services[name]
        places = (
            ("", objects, (*service.objects, "settings", "credentials")),
            (" under credentials", credentials, service.logins),
        )
        for place, keys, known in places:
            for key in sorted(set(keys) - set(known)):
                if key in self._settings[name]:
                    hint = f"it is a setting, so write it under {name}.settings"
                elif key in service.logins:
                    hint = f"write it under {name}.credentials"
                else:
                    hint = f"known are {', '.join(sorted(known))}"
                raise ValueError(f"the seed of {name} has an unknown key{place}, {key}: {hint}")

    def reset(self, state: Snapshot | None) -> None:
        """Restore documents, settings and credentials from a snapshot. Clear faults and log.

        None empties the store. Requests that a fault still delays are dropped.
        """
        self.resets += 1
        if state is None:
            self.store.clear()
        else:
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


class Service:
    """Base class of the five services.

    `name`: also the prefix of its paths. `defaults`: settings with their default values. Each
    service also has the settings `flavour` (`written` or `real`), `delay_ms`, a delay before each
    response, and `log_responses`, whether the log has the JSON of responses. `objects` are the keys
    of its seed, `logins` those under `credentials`.
    """

    name: str
    defaults: ClassVar[dict[str, Any]] = {}
    objects: ClassVar[tuple[str, ...]] = ()
    logins: ClassVar[tuple[str, ...]] = ("users",)

    def __init__(self, context: Context) -> None:
        self.context = context

    @property
    def settings(self) -> dict[str, Any]:
        return self.context.settings(self.name)

    @property
    def real(self) -> bool:
        return self.context.real(self.name)

    def routes(self) -> list[Route]:
        """Return the routes, built with `sandbox.service.route()`. The first match is used."""
        raise NotImplementedError

    async def authenticate(self, request: Request) -> Response | None:
        """Check the login. Return None if the request may proceed, else the error response."""
        raise NotImplementedError

    def seed(self, data: dict[str, Any]) -> None:
        """Merge seed data, without `settings` and `credentials`.

        An object with the key of an existing object replaces it.
        """
        raise NotImplementedError

    def reset(self) -> None:
        """Clear the state of the service that is not in the store."""

    def tick(self) -> None:
        """Process events that are due. Called before each request to any service."""

    def is_write(self, method: str, path: str, form: Mapping[str, str]) -> bool:
        """Return whether a request may change the state.

        :param path: percent-encoded as sent, without the prefix of the service
        :param form: parameters of the query and of a form in the body
        """
        return method not in ("GET", "HEAD", "OPTIONS")

    def headers(self) -> dict[str, str]:
        """Return headers to add to all responses of the service."""
        return {}

    def inside(self, path: str) -> str | None:
        """Map a path outside the prefix of the service to a path of the service.

        Returns None for paths of other services.
        """
        return None

    def not_found(self, request: Request) -> Response:
        """Return the response to a request that matches no route."""
        return PlainTextResponse("Not Found", 404)

    def not_a_write(self, request: Request) -> None:
        """Record in the log that a request is a dry run and changes nothing."""
        request.scope["sandbox.entry"].write = False

    def method_not_allowed(self, request: Request, allowed: str) -> Response:
        """Return the response to a request that matches a route with other methods."""
        return PlainTextResponse("Method Not Allowed", 405, {"Allow": allowed})


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
