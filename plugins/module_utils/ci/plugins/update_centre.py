# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the plugins that the update centre offers, and install plugins through it [ci-22, ci-23].

The update centre installs plugins in the background.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ...core.errors import ToolchainError, shorten
from ...core.http.messages import Response
from ...core.http.transport import Transport
from ...core.json_text import as_text
from ...core.polling import PollInterval
from ..client import object_of, objects, part, require_confirmation

_PATH = "updateCenter/api/json"
_JOBS = "jobs[id,type,errorMessage,status[type,success],plugin[name,version]]"
_OFFER = "[name,version,dependencies]"
_OFFERS = f"sites[availables{_OFFER},updates{_OFFER}]"
_INSTALLATION = "InstallationJob"
_RUNNING = ("", "Pending", "Installing")
_NEEDS_RESTART = "SuccessButRequiresRestart"
#: Maximum number of status reads before a requested installation must appear.
_MAX_READS = 5


@dataclass(frozen=True)
class Installation:
    """A job of the update centre that installs a plugin.

    :param number: id of the job, which increases with time
    :param state: name of the state on the server, for example `Installing`
    :param reason: error message of a failed installation
    """

    number: int
    name: str
    version: str
    state: str
    reason: str

    @property
    def runs(self) -> bool:
        return self.state in _RUNNING

    @property
    def waits(self) -> bool:
        """Return whether the plugin is installed, but only loaded when the server restarts."""
        return self.state == _NEEDS_RESTART

    @property
    def failed(self) -> bool:
        return self.state == "Failure"


@dataclass(frozen=True)
class Offer:
    """The newest version of a plugin on the update site.

    :param needs: dependencies with their minimum versions
    """

    version: str
    needs: Mapping[str, str]


@dataclass(frozen=True)
class CentreState:
    """State of the update centre.

    :param installations: installations since the start of the server, oldest first
    :param restart_required: whether an installation requires a restart
    """

    installations: Sequence[Installation]
    restart_required: bool

    @property
    def last(self) -> int:
        return max((installation.number for installation in self.installations), default=0)

    def newest(self, name: str) -> Installation | None:
        """Return the newest installation of a plugin, or `None`."""
        return next((found for found in reversed(self.installations) if found.name == name), None)

    def coming(self, name: str) -> Installation | None:
        """Return the newest installation of a plugin if it runs or waits for a restart."""
        newest = self.newest(name)
        return newest if newest is not None and (newest.waits or newest.runs) else None

    def since(self, number: int) -> list[Installation]:
        """Return the installations after the one with this number."""
        return [found for found in self.installations if found.number > number]


def read_state(server: Transport) -> CentreState:
    """Return the state of the update centre. It is empty if the server has no update centre."""
    response = server.read(
        "reading the installations of plugins",
        _PATH,
        query={"tree": f"restartRequiredForCompletion,{_JOBS}"},
        expect=(200, 404),
    )
    shown = {} if response.status == 404 else object_of(response)
    found = [
        _installation(job)
        for job in objects(shown.get("jobs"))
        if str(job.get("type") or _INSTALLATION) == _INSTALLATION and part(job.get("plugin"))
    ]
    found.sort(key=lambda installation: installation.number)
    return CentreState(found, shown.get("restartRequiredForCompletion") is True)


def _installation(job: Mapping[str, Any]) -> Installation:
    plugin, status = part(job.get("plugin")), part(job.get("status"))
    number = job.get("id")
    return Installation(
        number if isinstance(number, int) else 0,
        as_text(plugin.get("name")),
        str(plugin.get("version") or ""),
        str(status.get("type") or ""),
        shorten(str(job.get("errorMessage") or "")),
    )


def read_offers(server: Transport) -> dict[str, Offer]:
    """Return the newest version of each plugin on the update site, by name.

    Server fact [ci-23]: the list is empty until the server has read the update site once.
    """
    response = server.read(
        "reading the plugins of the update site", _PATH, query={"tree": _OFFERS}, expect=(200, 404)
    )
    if response.status == 404:
        raise response.error(
            "rejected", "cannot install plugins, because the server has no update centre (404)"
        )
    return {
        as_text(obj.get("name")): Offer(
            str(obj.get("version") or ""),
            {name: str(version) for name, version in part(obj.get("dependencies")).items()},
        )
        for site in objects(object_of(response).get("sites"))
        for kind in ("availables", "updates")
        for obj in objects(site.get(kind))
    }


def require_right(server: Transport) -> None:
    """Raise `permission` if the account may not change plugins [ci-22].

    If the server does not support the request, the permission is assumed.
    """
    try:
        server.read(
            "checking the permission to change plugins",
            "pluginManager/prevalidateConfig",
            method="POST",
            body=b"<jenkins/>",
            headers={"Content-Type": "text/xml"},
        )
    except ToolchainError as error:
        if error.kind == "permission":
            raise


def refresh(server: Transport) -> None:
    """Let the server read the list of plugins from its update site again."""
    server.write(
        "refreshing the plugins of the update site",
        "POST",
        "pluginManager/checkUpdatesServer",
        form={},
        expect=(200, 204, 302),
        validate=partial(require_confirmation, server),
        repeatable=True,
    )


def install(server: Transport, names: Sequence[str], after: int) -> None:
    """Queue the installation of the newest versions, with their dependencies.

    Server fact [ci-22]: if a name is unknown, the names before it are queued anyway.

    :param after: number of the last installation before the request
    """
    purpose = f"installing {', '.join(names)}"

    def validate(response: Response) -> None:
        require_confirmation(server, response)
        if response.status == 200 and object_of(response).get("status") != "ok":
            message = shorten(str(object_of(response).get("message") or "no reason was given"))
            raise response.error(
                "rejected", f"the server rejected the installation: {message}", message
            )

    def is_begun() -> bool:
        return any(found.name in names for found in read_state(server).since(after))

    server.write(
        purpose,
        "POST",
        "pluginManager/installPlugins",
        json={"dynamicLoad": True, "plugins": list(names)},
        expect=(200, 204, 302),
        validate=validate,
        verify=is_begun,
    )


def follow(
    server: Transport,
    names: Collection[str],
    after: int,
    polling: PollInterval,
    say: Callable[[str], None],
) -> CentreState:
    """Wait until the installations and their dependencies have finished.

    Raises `failed` with all installations that have failed or were not started.

    :param names: names of the requested plugins
    :param after: number of the last installation before the request
    :param say: receives progress lines
    """
    reads = 0
    while True:
        state = read_state(server)
        started = state.since(after)
        running = [installation.name for installation in started if installation.runs]
        missing = set(names) - {installation.name for installation in started}
        reads += 1
        if not running and (not missing or reads > _MAX_READS):
            _require_success(started, names)
            return state
        count = f"{len(started) - len(running)} of {len(started) + len(missing)} done"
        line = f"installing plugins: {count}: {', '.join(running) or 'waiting for the server'}"
        say(line)
        polling.pause(line)


def _require_success(started: Sequence[Installation], names: Collection[str]) -> None:
    newest = {installation.name: installation for installation in started}
    errors = [
        f"{installation.name}: {installation.reason or 'the server gave no reason'}"
        for installation in newest.values()
        if installation.failed
    ]
    errors += [
        f"{name}: the server did not start its installation" for name in names if name not in newest
    ]
    if errors:
        raise ToolchainError(
            "failed", f"{len(errors)} plugin installations failed: {'; '.join(errors)}"
        )
