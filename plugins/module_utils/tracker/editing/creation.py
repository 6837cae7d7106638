# SPDX-License-Identifier: GPL-3.0-or-later
"""An issue that is created once [tracker-20]."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from ...core.address import path
from ...core.errors import ToolchainError
from ...core.http.messages import back_off, json_or_none, unexpected_body
from ...core.plan import Change
from ..client import TrackerClient
from ..fields.field_values import same, shown
from .fields import FieldsPart
from .issue_options import IssueOptions
from .site import Site

#: Server fact [tracker-20]: the index of the search lags behind by up to seconds.
_LOOKS = 5


class Creation:
    """Creates the issue that C(match) does not find.

    :param matching: the keys that C(match) finds now
    """

    def __init__(
        self,
        site: Site,
        options: IssueOptions,
        fields: FieldsPart,
        matching: Callable[[], list[str]],
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._site, self._options, self._fields = site, options, fields
        self._matching, self._sleep = matching, sleep
        self._type: Mapping[str, str] = {}

    @property
    def _client(self) -> TrackerClient:
        return self._site.client

    def plan(self) -> tuple[Change, ...]:
        """What the new issue has; C(not_found) for the project, C(rejected) for what it lacks."""
        options = self._options
        project = self._project(str(options.project))
        self._type = {"name": self._one_of(project, "issueTypes", "type", str(options.type))}
        for option, member in (("fix_versions", "versions"), ("components", "components")):
            for source in (options, options.add):
                for name in getattr(source, option, None) or []:
                    self._one_of(project, member, option, name)
        own = (Change("project", None, options.project), Change("type", None, options.type))
        return (*own, *self._fields.expected())

    def _project(self, key: str) -> Mapping[str, Any]:
        what = f"reading the project '{key}'"
        response = self._client.read(what, f"rest/api/2/project/{path(key)}")
        found = response.json()
        if not isinstance(found, Mapping):
            raise unexpected_body(response, "a project")
        return found

    def _one_of(self, project: Mapping[str, Any], member: str, option: str, name: str) -> str:
        """The name as the project has it; a server that does not show the list is believed."""
        known = project.get(member)
        if not isinstance(known, list) or (not known and member == "issueTypes"):
            return name
        found = next((one for one in known if same(one, {"name": name})), None)
        if found is None:
            names = ", ".join(str(shown(one)) for one in known) or "none"
            raise ToolchainError(
                "rejected",
                f"{option}: the project '{self._options.project}' has no '{name}'; it has {names}",
            )
        return str(shown(found))

    def create(self) -> str:
        """Send it once; the key of the new issue."""
        options = self._options
        members = {
            "project": {"key": options.project},
            "issuetype": self._type,
            **self._fields.for_creation(),
        }
        try:
            response = self._client.write(
                f"creating an issue in the project '{options.project}'",
                "POST",
                f"{self._site.api}/issue",
                json={"fields": members},
                verify=self._is_found,
            )
        except ToolchainError as error:
            where = {"projectKey": str(options.project)}
            raise self._site.judged(error, *self._fields.needs, **where) from None
        made = json_or_none(response.body)
        key = made.get("key") if isinstance(made, Mapping) else None
        return self._confirmed(str(key)) if key else self._only(self._looked_for())

    def _is_found(self) -> bool | None:
        """Whether the issue is there after an answer that does not tell. A search that does not
        find it proves nothing.
        """
        return True if self._looked_for() else None

    def _looked_for(self) -> list[str]:
        """The keys that C(match) finds, looked for several times."""
        longest = float(self._site.task.connection.settings["retry_max_wait"])
        for attempt in range(_LOOKS):
            if attempt:
                self._sleep(back_off(attempt - 1, longest))
            keys = self._matching()
            if keys:
                return keys
        return []

    def _only(self, keys: list[str]) -> str:
        if len(keys) != 1:
            raise several(keys)
        return keys[0]

    def _confirmed(self, key: str) -> str:
        """A query that does not find what it made would make another one in the next run."""
        try:
            found = self._looked_for()
        except ToolchainError:
            found = []  # the issue is there, whatever became of the search
        if key not in found:
            self._site.task.warn(
                f"match does not find the issue {key}, which was created because it found none:"
                " unless it does soon, the next run creates another one"
            )
        return key


def several(keys: list[str]) -> ToolchainError:
    """C(conflict) for a query that should find one issue."""
    return ToolchainError(
        "conflict", f"match finds more than one issue ({', '.join(keys)}, ...): make it find one"
    )
