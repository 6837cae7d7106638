# SPDX-License-Identifier: GPL-3.0-or-later
"""Create an issue unless a query finds it [tracker-20]."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from ...core.address import path
from ...core.errors import ToolchainError
from ...core.http.messages import back_off, expected, json_or_none
from ...core.json_text import member
from ...core.plan import Change
from ..client import TrackerClient
from ..fields.field_values import same, shown
from .fields import FieldsPart, predicted
from .issue_options import IssueOptions
from .site import Site

#: Server fact [tracker-20]: the search index may be several seconds out of date.
_ATTEMPTS = 5


class Creation:
    """Create an issue if the query of the option `match` finds none.

    :param matching: runs the query and returns the keys of the issues
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

    @property
    def _client(self) -> TrackerClient:
        return self._site.client

    def plan(self) -> tuple[str, tuple[Change, ...]]:
        """Return the type and the values of the new issue.

        Raises `not_found` for a missing project, and `rejected` if the project has no such type,
        version or component.
        """
        options = self._options
        project = self._project(str(options.project))
        kind = self._one_of(project, "issueTypes", "type", str(options.type))
        for option, name_of_list in (("fix_versions", "versions"), ("components", "components")):
            for source in (options, options.add):
                for name in getattr(source, option, None) or []:
                    self._one_of(project, name_of_list, option, name)
        identity = (Change("project", None, options.project), Change("type", None, options.type))
        return kind, (*identity, *self._fields.expected())

    def _project(self, key: str) -> Mapping[str, Any]:
        purpose = f"reading the project '{key}'"
        response = self._client.read(purpose, f"rest/api/2/project/{path(key)}")
        return expected(response, dict, "a project")

    def _one_of(self, project: Mapping[str, Any], listed: str, option: str, name: str) -> str:
        """Return a name in the project's spelling. Raises `rejected` if the project lacks it.

        Any name is accepted if the server does not send the list `listed` of the project.
        """
        known = project.get(listed)
        if not isinstance(known, list) or (not known and listed == "issueTypes"):
            return name
        found = next((item for item in known if same(item, {"name": name})), None)
        if found is None and predicted(self._site.task, option, str(self._options.project), name):
            return name
        if found is None:
            names = ", ".join(str(shown(item)) for item in known) or "none"
            raise ToolchainError(
                "rejected",
                f"{option}: the project '{self._options.project}' has no '{name}'; it has {names}",
            )
        return str(shown(found))

    def create(self, kind: str) -> str:
        """Create an issue of a type and return its key. The request is not repeated."""
        options = self._options
        members = {
            "project": {"key": options.project},
            "issuetype": {"name": kind},
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
            project = str(options.project)
            raise self._site.explained(error, *self._fields.needs, projectKey=project) from None
        made = json_or_none(response.body)
        key = member(made, "key")
        self._client.note_written(member(made, "id"))
        return self._confirmed(str(key)) if key else self._only(self._searched())

    def _is_found(self) -> bool | None:
        """Return True if the query finds the issue. None otherwise, because the index lags."""
        return True if self._searched() else None

    def _searched(self) -> list[str]:
        """Run the query until it finds an issue, at most `_ATTEMPTS` times. Return the keys."""
        longest = float(self._site.task.connection.settings["retry_max_wait"])
        for attempt in range(_ATTEMPTS):
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
        """Warn if the query does not find the new issue: the next run would create another one."""
        try:
            found = self._searched()
        except ToolchainError:
            found = []  # the issue exists, whatever the search returns
        if key not in found:
            self._site.task.warn(
                f"match does not find the new issue {key}. Check the query: if it does not find the"
                " issue, the next run creates another one"
            )
        return key


def several(keys: list[str]) -> ToolchainError:
    """Return the `conflict` error for a query that must find a single issue."""
    return ToolchainError(
        "conflict",
        f"match finds several issues ({', '.join(keys)}, ...): narrow the query to a single issue",
    )
