# SPDX-License-Identifier: GPL-3.0-or-later
"""Match the accounts that a desired state names with those of other servers, by email address."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ...module_utils._lib.core.accounts import translated
from ...module_utils._lib.core.errors import invalid, listed, single_line
from ...module_utils._lib.wiki.formats import mentions
from . import kinds, yaml_edits
from .accounts import ALL, COLUMNS, Accounts, texts_of
from .desired_state import State, values

#: Services whose accounts can be matched: the tracker knows the email addresses of both.
SERVICES = ("tracker", "wiki")
#: A comment of an earlier run.
_COMMENT = re.compile(rf"# ({'|'.join((*SERVICES, ALL))}),.+: (missing|hidden|ambiguous): ")
#: A row of `tracker_user_info`.
Row = Mapping[str, Any]


class User(NamedTuple):
    """A user that the desired state names. `is_key`: by the key that the wiki has for the user."""

    service: str
    name: str
    is_key: bool = False

    @property
    def column(self) -> str:
        """Return the service of the line. Exports prefer the name of a user to the key, because a
        line of the service goes before one of all services.
        """
        return ALL if self.is_key else self.service


@dataclass(frozen=True)
class Servers:
    """What the servers know about the users.

    :param names: names on the old wiki by user key
    :param old: users of the old tracker by name
    :param new: users of the new tracker by email address
    """

    names: Mapping[str, str] = field(default_factory=dict)
    old: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    new: Mapping[str, Sequence[Row]] = field(default_factory=dict)

    @classmethod
    def of(cls, keys: Sequence[Row], old: Sequence[Row], new: Sequence[Row]) -> Servers:
        """Return what the rows of the modules `wiki_user_info` and `tracker_user_info` contain."""
        return cls(
            {row["key"]: row["account"] for row in keys if row["account"]},
            {row["user"]: row["matches"] for row in old},
            {row["email"]: row["matches"] for row in new},
        )


@dataclass(frozen=True)
class Match:
    """The account of a user, or why there is none.

    :param account: "" if no account is certain
    :param holder: name of the user on the old tracker
    :param status: `matched`, `missing`, `hidden` or `ambiguous`
    """

    user: User
    account: str = ""
    holder: str = ""
    status: str = "matched"
    reason: str = ""

    @property
    def line(self) -> str:
        """Return why there is no account, in one line."""
        return single_line(f"{self.user.column},{self.user.name}: {self.status}: {self.reason}")


def users(state: State) -> Iterator[User]:
    """Yield each user in a desired state. Groups have no email address."""
    for service, lists in values(state).items():
        for name, entries in lists.items():
            kind = kinds.find(service, name)
            places = [place for place in kind.accounts if "group" not in place]
            for entry in entries if places else ():
                yield from (User(service, user) for user in _users_of(entry, places))
                for text in texts_of(entry) if kind.texts else ():
                    for user, attribute in mentions.names(text).items():
                        # an account id of the cloud is no name of a server
                        if attribute != mentions.ACCOUNT_ID:
                            yield User(service, user, attribute == mentions.USER_KEY)


def _users_of(entry: Any, places: Sequence[str]) -> list[str]:
    found: dict[str, str] = {}
    translated(entry, places, lambda user: found.setdefault(user, user))
    return list(found)


def named(states: Iterable[State], services: Collection[str]) -> list[User]:
    """Return the users of the given services, without duplicates."""
    found = {each for state in states for each in users(state) if each.service in services}
    by_name = {(each.service, each.name): each for each in sorted(found, reverse=True)}
    return sorted(by_name.values())


def matched(wanted: Iterable[User], servers: Servers, known: Accounts) -> list[Match]:
    """Return the match of each user that has no account yet.

    Two users never get the same account: one may be an administrator's second account. Names of
    accounts are compared without regard to case, and between the services.

    :param known: accounts of users by their mapping
    """
    wanted = list(wanted)
    keys = {user.name for user in wanted if user.is_key}
    matches = [_match(user, servers) for user in wanted if user.name not in known.of(user.service)]
    holders: dict[tuple[str, str], set[str]] = {}
    for service in SERVICES:
        for name, account in known.of(service).items():
            # a key may belong to the same user
            holders.setdefault((service, account.casefold()), set()).update({name} - keys)
        for match in matches:  # the services have the same accounts
            holders.setdefault((service, match.account.casefold()), set()).add(match.holder)

    def alone(match: Match) -> Match:
        names = holders[match.user.service, match.account.casefold()]
        others = sorted(name for name in names if name.casefold() != match.holder.casefold())
        if not match.account or not others:
            return match
        reason = f"{match.account} is also the account of {listed(others)}: write the right line"
        return replace(match, account="", status="ambiguous", reason=reason)

    return [alone(match) for match in matches]


def _match(user: User, servers: Servers) -> Match:
    def none(status: str, reason: str) -> Match:
        return Match(user, status=status, reason=reason)

    name = servers.names.get(user.name, "") if user.is_key else user.name
    if not name:
        return none("missing", "the old wiki shows no user with this key")
    old = servers.old.get(name, [])
    if not old:
        return none("missing", f"the old tracker has no user {name}")
    email = old[0]["email"]
    if not email:
        return none("hidden", f"the old tracker hides the email address of {name}")
    found = servers.new.get(email, [])
    accounts = listed(f"{each['account']} ({each['display_name']})" for each in found)
    certain = [each for each in found if each["email"]]
    if len(certain) == 1 and user.is_key and certain[0]["key"]:
        reason = f"{name} is {certain[0]['account']} on a server with other keys"
        return none("missing", f"{reason}: mention the user by ri:username")
    if len(certain) == 1:
        return Match(user, certain[0]["account"], old[0]["account"])
    if certain:
        reason = f"{email} is the address of {accounts}: write the line of the right one"
        return none("ambiguous", reason)
    if found:
        reason = f"for {email} the new tracker finds {accounts}, but hides the address"
        return none("hidden", f"{reason}: check it, and write the line")
    return none("missing", f"the new tracker has no user with {email}")


def completed(text: str, matches: Sequence[Match], *, is_yaml: bool) -> str:
    """Return the text of a mapping file with a line for each matched user.

    A user without a match gets a comment. Other lines stay. Comments of earlier runs that no longer
    apply are removed.
    """
    newline = "\r\n" if "\r\n" in text else "\n"
    comments = {f"# {each.line}": None for each in matches if not each.account}
    lines = [
        line
        for line in io.StringIO(text, newline="")
        if not _COMMENT.match(line) or line.rstrip("\r\n") in comments
    ]
    there = {line.rstrip("\r\n") for line in lines}
    if lines and not lines[-1].endswith(("\n", "\r")):
        lines[-1] += newline
    text = _with_yaml("".join(lines), matches) if is_yaml else _with_csv(lines, matches, newline)
    return text + "".join(f"{comment}{newline}" for comment in comments if comment not in there)


def _with_csv(lines: Sequence[str], matches: Sequence[Match], newline: str) -> str:
    columns, written = _columns(lines), io.StringIO()
    rows = csv.writer(written, lineterminator=newline)
    if matches and not columns:
        rows.writerow(columns := list(COLUMNS))
    for each in (each for each in matches if each.account):
        row = dict(zip(COLUMNS, (each.user.column, each.user.name, each.account), strict=True))
        rows.writerow([row.get(column, "") for column in columns])
    return "".join(lines) + written.getvalue()


def _columns(lines: Iterable[str]) -> list[str]:
    """Return the columns in the first line that is no comment."""
    for row in csv.reader(lines):
        cells = [cell.strip().lower().lstrip("\ufeff") for cell in row]
        if any(cells) and not cells[0].startswith("#"):
            return cells
    return []


def _with_yaml(text: str, matches: Sequence[Match]) -> str:
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    text = text.removeprefix(mark)
    try:
        wanted = dict(yaml_edits.load(text))
        for each in matches:
            if each.account or not wanted:
                known = wanted.get(each.user.column) or {}
                # PyYAML cannot write the subclasses of strings that Ansible loads
                more = {str(each.user.name): str(each.account)} if each.account else {}
                wanted[each.user.column] = {**known, **more}
        start = "---\n" if wanted and not text else ""
        return mark + start + yaml_edits.edited(text, wanted)
    except yaml_edits.EditError as error:
        raise invalid(f"match_accounts_file: {error}") from None
