# SPDX-License-Identifier: GPL-3.0-or-later
"""Matrix of every module that writes and every permission that it needs."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci import client as ci
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.descriptor import (
    Access,
)
from sandbox.client import Sandbox
from tests.helpers import in_process
from tests.helpers.cases import (
    CASES,
    FAULT_CASES,
    connection_options,
    first_arguments,
    module_of,
    seed,
    settings,
)
from tests.helpers.permissions import ADMIN, ALL
from tools.descriptors import DESCRIPTORS

#: Without these permissions, an object appears to be missing.
UNSEEN = (ci.READ_JOB, "view")
TOKEN, LTOKEN = "limited-token-1234567890", "5555" * 16
LOGINS: dict[str, dict[str, str]] = {
    "repo": {"token": TOKEN, "dialect": "jfrog"},
    "tracker": {"token": TOKEN},
    "wiki": {"token": TOKEN},
    "ci": {"username": "limited", "password": TOKEN},
    "analysis": {"username": "limited", "ltoken": LTOKEN},
}


@dataclass(frozen=True)
class Operation:
    """A task that runs without each permission that it needs, from a case file.

    `case`: name of the case. `row` is an entry of `permissions` there; `case.schema.json` describes its keys.
    """

    case: str
    row: Mapping[str, Any]

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.case, self.row.get("name"))))

    @property
    def module(self) -> str:
        return module_of(self.case)

    @property
    def _accesses(self) -> list[Access]:
        declared = DESCRIPTORS[self.module].operations
        return [declared[name] for name in self.row["operations"]]

    @property
    def needs(self) -> dict[str, str]:
        """Map each permission to the kind of error without it; empty if the task succeeds
        nevertheless.
        """
        declared = [
            name for access in self._accesses for name in (*access.needs, *access.unforeseen)
        ]
        kinds = dict.fromkeys(UNSEEN, "not_found") | self.row.get("kinds", {})
        return {
            name: kinds.get(name, "permission")
            for name in (*declared, *self.row.get("unforeseen", ()))
        }

    @property
    def unforeseen(self) -> set[str]:
        """Return the permissions whose absence check mode does not report."""
        declared = {name for access in self._accesses for name in access.unforeseen}
        foreseen = set(self.row.get("foreseen", ()))
        return (declared | set(self.row.get("unforeseen", ()))) - foreseen

    @property
    def service(self) -> str:
        return str(CASES[self.case]["service"])

    def given(self, url: str, folder: Path) -> dict[str, Any]:
        arguments = self.row.get("arguments") or first_arguments(self.case)
        text = json.dumps({**arguments, **self.row.get("more", {})}).replace("FOLDER", str(folder))
        # the login last: the case may name one with all permissions
        login = {**connection_options(self.case, "real"), **LOGINS[self.service]}
        return {"url": url, **login, **json.loads(text)}


def _rows(case: str) -> list[Mapping[str, Any]]:
    """Return the rows of a case file. The default is the first operation that writes, with the
    arguments of its first step.
    """
    operations = DESCRIPTORS[module_of(case)].operations
    first = [name for name, access in operations.items() if access.writes][:1]
    default = [{"operations": first}] if first else []
    rows: list[Mapping[str, Any]] = CASES[case].get("permissions", default)
    return rows


OPERATIONS = {
    str(one): one for name in FAULT_CASES for one in (Operation(name, row) for row in _rows(name))
}


@dataclass(frozen=True)
class Played:
    """Result of a module, and the writes that the server carried out for it."""

    result: Mapping[str, Any]
    effects: Sequence[Mapping[str, Any]]


def without(operation: Operation, missing: str) -> list[str]:
    """Return all permissions of the service except one; `admin` is never among them."""
    return [one for one in ALL[operation.service] if one != missing]


def allow(sandbox: Sandbox, service: str, granted: Sequence[str]) -> None:
    """Give the account of `LOGINS` exactly these permissions."""
    given = list(granted)
    accounts: dict[str, dict[str, Any]] = {
        "repo": {"permissions": given, "admin": ADMIN in given},
        "tracker": {"permissions": {"*": given}},
        "wiki": {"permissions": {"*": given}},
        "ci": {"api_tokens": [TOKEN], "permissions": given},
        "analysis": {"ltoken": LTOKEN},
    }
    credentials: dict[str, Any] = {"users": {"limited": accounts[service]}}
    data: dict[str, Any] = {"credentials": credentials}
    if service in ("repo", "tracker", "wiki"):
        credentials["tokens"] = {TOKEN: "limited"}
    if service == "tracker":
        data["users"] = {"limited": {"displayName": "Limited"}}
    if service == "analysis":
        role = {
            "name": "Limited",
            "permissions": given,
            "status_permissions": [{"from": "Any", "to": "Any"}],
            "assignments": [{"name": "limited", "projectId": None, "group": False}],
        }
        data |= {"users": [{"name": "limited"}], "roles": [role]}
    sandbox.seed({service: data})


def play(
    sandbox: Sandbox,
    folder: Path,
    operation: Operation,
    granted: Sequence[str],
    *,
    again: bool = False,
    check: bool = False,
) -> Played:
    """Run the task with these permissions. Start from the seeds or, with `again`, from the state
    that the previous run left.
    """
    service = operation.service
    if not again:
        sandbox.reset(settings(operation.case), seed(operation.case))
        shutil.rmtree(folder / "RUN", ignore_errors=True)
    allow(sandbox, service, granted)
    mark = sandbox.mark()
    given = {**operation.given(sandbox.urls[service], folder), "_ansible_check_mode": check}
    result = in_process.run(operation.module, given)
    written = sandbox.requests(service, writes=True, since=mark)
    return Played(result, [record for record in written if (record["served"] or 500) < 400])
