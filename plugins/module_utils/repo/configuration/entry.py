# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of a repository, and checks for contradictions between them [C11.2]."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from ...core.errors import ToolchainError, invalid
from ...core.module.rules import Rule
from ...core.module.typed_options import Option
from .fields import checked_settings

RepositoryClass: TypeAlias = Literal["local", "remote", "virtual", "federated"]
_BAD_KEY = re.compile(r"[\s/\\:|?*\"<>\x00-\x1f]")
_LONGEST_KEY = 64
#: Options that only one class of repositories has.
_CLASS_OF = {
    "remote_url": "remote",
    "remote_username": "remote",
    "remote_password": "remote",
    "repositories": "virtual",
    "default_deployment_repo": "virtual",
    "members": "federated",
}
_OF_ABSENT = ("key", "state", "force", "rclass", "package_type", "update_password")


@dataclass(frozen=True)
class FederatedMember:
    """The suboptions of `members`: a member of a federated repository."""

    url: str
    enabled: bool = True


@dataclass(frozen=True)
class RepositoryEntry:
    """The suboptions of `entries`."""

    option_rules: ClassVar[tuple[Rule, ...]] = (
        Rule("state=absent", allows=_OF_ABSENT),
        Rule("update_password=always", requires="remote_password"),
    )

    key: Annotated[str, Option(secret=False)]
    rclass: RepositoryClass | None = None
    package_type: str | None = None
    description: Annotated[str | None, Option(empty=True)] = None
    notes: Annotated[str | None, Option(empty=True)] = None
    includes: list[str] | None = None
    excludes: list[str] | None = None
    layout: str | None = None
    project: Annotated[str | None, Option(empty=True)] = None
    environments: list[str] | None = None
    remote_url: str | None = None
    remote_username: Annotated[str | None, Option(empty=True)] = None
    remote_password: Annotated[str | None, Option(secret=True, empty=True)] = field(
        default=None, repr=False
    )
    update_password: Annotated[Literal["on_create", "always"], Option(secret=False)] = "on_create"
    repositories: list[str] | None = None
    default_deployment_repo: Annotated[str | None, Option(empty=True)] = None
    members: list[FederatedMember] | None = None
    settings: Annotated[dict[str, Any] | None, Option(values="json", private=True)] = None
    state: Literal["present", "absent"] = "present"
    force: bool = False

    def settings_of_server(self) -> Mapping[str, Any]:
        """Return `settings` with converted types. Raises `invalid` for a wrong type."""
        return checked_settings(self.settings or {})

    def check(self) -> None:
        """Raise `invalid` for an invalid key or setting, and for options of another class."""
        if _BAD_KEY.search(self.key) or len(self.key) > _LONGEST_KEY or self.key in (".", ".."):
            raise invalid(
                f"key: '{self.key}' is not a valid repository key: use at most {_LONGEST_KEY}"
                ' characters, without blanks and /\\:|?*"<>'
            )
        if self.rclass is not None:
            self.require_class(self.rclass)
        self.settings_of_server()

    def require_class(self, rclass: str) -> None:
        """Raise `invalid` if an option is set that repositories of this class do not have."""
        for option, wanted in _CLASS_OF.items():
            if getattr(self, option) is not None and wanted != rclass:
                raise invalid(
                    f"{option} applies to a {wanted} repository, but '{self.key}' is {rclass}:"
                    " omit it"
                )

    def require_creation(self) -> None:
        """Raise `invalid` if an option is missing that a new repository requires."""
        needed = ["rclass", "package_type", *(["remote_url"] if self.rclass == "remote" else [])]
        missing = [name for name in needed if getattr(self, name) is None]
        if missing:
            raise invalid(
                f"the repository '{self.key}' does not exist yet: set {' and '.join(missing)}"
            )

    def require_same(self, config: Mapping[str, Any]) -> None:
        """Raise `conflict` if the repository has another class or package type."""
        for option, name in (("rclass", "rclass"), ("package_type", "packageType")):
            wanted, current = getattr(self, option), str(config.get(name) or "")
            if wanted is not None and canonical(wanted) != canonical(current):
                raise ToolchainError(
                    "conflict",
                    f"the {option} of the repository '{self.key}' is '{current}' and cannot be"
                    f" changed to '{wanted}': use another key, or delete the repository first",
                )


def canonical(kind: str) -> str:
    """Return a repository class or package type as newer servers write it, such as `rpm`."""
    lower = kind.lower()
    return "rpm" if lower == "yum" else lower
