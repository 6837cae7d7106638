# SPDX-License-Identifier: GPL-3.0-or-later
"""Read the accounts that stand for the names in a desired state, and apply them to its entries."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from ...module_utils._lib.core.accounts import AccountNames, translated
from ...module_utils._lib.core.errors import ToolchainError
from ...module_utils._lib.core.files import open_regular
from ...module_utils._lib.core.yaml_text import UnreadableYaml, reason_of, require_bounds
from ...module_utils._lib.wiki.formats import mentions
from . import kinds
from .desired_state import DesiredStateError, State, key_of, values, with_entries
from .sentence_error import did_you_mean
from .services import SERVICES
from .unreadable_yaml import UNREADABLE

VARIABLE = "desired_state_accounts"
#: The service in the mapping that stands for all services.
ALL = "all"
COLUMNS = ("service", "name", "account")
_KNOWN = (*SERVICES, ALL)
#: Option of a module that translates the accounts in its text.
OPTION = "accounts"
#: Endings of files that may be pages.
_PAGES = (".xml", ".html", ".xhtml", ".md", ".markdown", ".mdx")
_YAML_TEXTS = ("tag:yaml.org,2002:str", "tag:yaml.org,2002:int", "!unsafe")


class Line(NamedTuple):
    """An account of the mapping, with its place for messages."""

    place: str
    service: str
    name: str
    account: str


@dataclass(frozen=True)
class Accounts:
    """Accounts of an environment by service and name, as in the mapping.

    :param required: each name of an account in the desired state must have an account
    """

    by_service: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    required: bool = False

    @property
    def is_given(self) -> bool:
        return bool(self.by_service) or self.required

    def of(self, service: str) -> dict[str, str]:
        """Return the account of each name. A line of the service goes before one of `all`."""
        return {**self.by_service.get(ALL, {}), **self.by_service.get(service, {})}

    def apply(self, state: State, *, names_only: bool = False) -> State:
        """Return a desired state with its names replaced by accounts, each of them once.

        :param names_only: only the names of objects matter
        :raises DesiredStateError: with all names that have no account
        """
        if not self.is_given:
            return state
        unknown: dict[str, None] = {}
        problems: list[str] = []

        def change(service: str, listed: str, entry: Any) -> Any:
            kind, accounts = kinds.find(service, listed), self.of(service)

            def account_of(name: str) -> str:
                if name not in accounts:
                    unknown[f"{service}/{name}"] = None
                return accounts.get(name, name)

            places = [
                place
                for place in kind.accounts
                if not names_only or place in key_of(service, listed)
            ]
            try:
                found = translated(entry, places, account_of)
            except ToolchainError as error:
                problems.append(f"{kinds.name_of(service, listed)}: {error.message}")
                return entry
            is_text = kind.texts and accounts and not names_only and isinstance(entry, Mapping)
            return {**found, OPTION: {**accounts, **found.get(OPTION, {})}} if is_text else found

        changed = with_entries(state, change)
        if self.required and not names_only:
            unknown |= dict.fromkeys(self._unknown_mentions(state))
        if self.required and unknown:
            names = ", ".join(sorted(unknown))
            problems.append(
                f"{VARIABLE} has no account for {names}: add a line for each of them, or set"
                f" {VARIABLE}_required to false"
            )
        if problems:
            raise DesiredStateError("; ".join(dict.fromkeys(problems)))
        return changed

    def _unknown_mentions(self, state: State) -> Iterator[str]:
        """Yield the names without an account that bodies and files of pages mention."""
        for service, lists in values(state).items():
            known = self.of(service)
            for listed, entries in lists.items():
                for entry in entries if kinds.find(service, listed).texts else ():
                    yield from (
                        f"{service}/{name}"
                        for text in texts_of(entry)
                        for name in mentions.names(text)
                        if name not in known
                    )

    def identified(self, service: str, listed: str, entry: Any) -> Any:
        """Return an entry of the desired state with accounts in the options that identify it."""
        accounts, key = self.of(service), key_of(service, listed)
        places = [place for place in kinds.find(service, listed).accounts if place in key]
        return translated(entry, places, lambda name: accounts.get(name, name))

    def named(self, service: str, listed: str, entry: Any) -> Any:
        """Return an entry of an export with the names of the desired state for its accounts.

        Raises `invalid` if a name is not certain.
        """
        own = self.by_service.get(service, {})
        names = AccountNames(self.of(service), own, self.required)
        kind = kinds.find(service, listed)
        found = translated(entry, kind.accounts, names.name_of)
        if kind.texts and "body" in found:
            body = mentions.translated(str(found["body"]), names.name_of, in_cloud=False)
            found = {**found, "body": body}
        names.require_names()
        return found

    def of_export(self, service: str) -> dict[str, Any]:
        """Return the option `accounts` of the module that exports a service."""
        return {
            "names": self.of(service),
            "preferred": list(self.by_service.get(service, {})),
            "places": {
                kind.list: list(kind.accounts)
                for kind in kinds.KINDS
                if kind.service == service and kind.accounts
            },
            "required": self.required,
        }


def texts_of(entry: Mapping[str, Any]) -> Iterator[str]:
    """Yield the body of an entry, and the files of its pages. The module reports other files."""
    yield str(entry.get("body") or "")
    src = Path(str(entry["src"])) if entry.get("src") else None
    for file in () if src is None else [src] if src.is_file() else sorted(src.rglob("*")):
        if file.suffix.lower() in _PAGES and file.is_file():
            yield file.read_text("utf-8", "replace")


def read(given: Any, path_of: Callable[[str], Path], *, required: bool = False) -> Accounts:
    """Return the accounts of a mapping by service, or of the file with it.

    :param given: mapping, path of a file, or `None`
    :param path_of: returns the absolute path of a file
    :raises DesiredStateError: with all errors
    """
    if given is None:
        return Accounts(required=required)
    errors: list[str] = []
    if isinstance(given, Mapping):
        lines = list(_of_mapping(given, errors))
    elif isinstance(given, str):
        lines = list(_of_file(path_of(given), given, errors))
    else:
        raise DesiredStateError(
            f"{VARIABLE} must be the path of a YAML or CSV file, or a mapping by service"
        )
    found: dict[str, dict[str, str]] = {}
    for line in lines:
        known = found.setdefault(line.service, {})
        empty = [column for column in COLUMNS if not getattr(line, column)]
        if empty:
            subject = f" of {line.name}" if line.name else ""
            errors.append(
                f"{line.place}: {' and '.join(empty)}{subject} is empty: write it, or remove"
                " the line"
            )
        elif line.service not in _KNOWN:
            hint = did_you_mean(line.service, _KNOWN, f" (write one of {', '.join(_KNOWN)})")
            errors.append(f"{line.place}: the service {line.service} is unknown{hint}")
        elif known.setdefault(line.name, line.account) != line.account:
            errors.append(
                f"{line.place}: {line.name} of {line.service} is also the account"
                f" {known[line.name]}: leave one of the two lines"
            )
    if errors:
        raise DesiredStateError("; ".join(errors))
    return Accounts(found, required)


def _of_mapping(given: Mapping[Any, Any], errors: list[str]) -> Iterator[Line]:
    for service, accounts in given.items():
        place = f"{VARIABLE}.{service}"
        if not isinstance(accounts, Mapping):
            errors.append(f"{place} must be a mapping of names to accounts, such as alice: a.smith")
            continue
        for name, account in accounts.items():
            if isinstance(account, bool | float) or not isinstance(account, str | int | None):
                errors.append(f"{place}.{name} must be a string: put it into quotes")
                continue
            text = "" if account is None else str(account).strip()
            yield Line(f"{place}.{name}", str(service), str(name).strip(), text)


def _of_file(file: Path, shown: str, errors: list[str]) -> Iterator[Line]:
    try:
        with open(file, "rb", opener=open_regular) as stream:
            text = stream.read().decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "save it as UTF-8"
        errors.append(f"{VARIABLE}: cannot read {shown}: {reason}")
        return
    ending = file.suffix.lower()
    if ending == ".csv":
        yield from _of_csv(text, shown, errors)
    elif ending in (".yml", ".yaml"):
        yield from _of_yaml(text, shown, errors)
    else:
        errors.append(f"{VARIABLE}: {shown} must end in .csv, .yml or .yaml")


def _of_csv(text: str, shown: str, errors: list[str]) -> Iterator[Line]:
    """Yield the lines of a CSV file. Lines that start with `#` are comments."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    columns: list[str] = []
    try:
        for row in reader:
            place, cells = f"{shown}:{reader.line_num}", [cell.strip() for cell in row]
            if not any(cells) or cells[0].startswith("#"):
                continue
            if not columns:
                columns = [cell.lower() for cell in cells]
                if problem := _problem_of_header(columns):
                    errors.append(f"{place}: {problem}")
                    return
            elif len(cells) != len(columns):
                errors.append(
                    f"{place} has {len(cells)} cells, but the first line has {len(columns)}: write"
                    f" {','.join(columns)}, and put a value with a comma into quotes"
                )
            else:
                values = dict(zip(columns, cells, strict=True))
                yield Line(place, *(values[column] for column in COLUMNS))
    except csv.Error as error:
        errors.append(f"{shown}:{reader.line_num}: this is not valid CSV: {error}")
        return
    if not columns:
        errors.append(f"{shown}:1: the file is empty: write {','.join(COLUMNS)} in its first line")


def _problem_of_header(columns: list[str]) -> str:
    wanted = ",".join(COLUMNS)
    missing = [column for column in COLUMNS if column not in columns]
    for name, mark in (("semicolons", ";"), ("tabs", "\t")):
        if missing and mark in "".join(columns):
            return f"the columns are separated by {name}: use commas, as in {wanted}"
    repeated = [column for column in COLUMNS if columns.count(column) > 1]
    if missing or repeated:
        problem = f"has no column {missing[0]}" if missing else f"has {repeated[0]} twice"
        return f"the first line {problem}: write {wanted}"
    return ""


def _of_yaml(text: str, shown: str, errors: list[str]) -> Iterator[Line]:
    try:
        require_bounds(text)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        errors.append(f"{shown}:{line}: this is not valid YAML: {reason_of(error)}")
        return
    except (UnreadableYaml, *UNREADABLE) as error:
        line = getattr(error, "line", None) or 1
        errors.append(f"{shown}:{line}: this is not valid YAML: {reason_of(error)}")
        return
    for service, accounts in _pairs(root, shown, "a mapping by service", errors):
        about = f"a mapping of names to accounts in {service.value}"
        for name, account in _pairs(accounts, shown, about, errors):
            place = f"{shown}:{name.start_mark.line + 1}"
            is_empty = account.tag == "tag:yaml.org,2002:null"
            if not is_empty and account.tag not in _YAML_TEXTS:
                errors.append(f"{place}: the account of {name.value} must be a string in quotes")
                continue
            value = "" if is_empty else str(account.value).strip()
            yield Line(place, str(service.value).strip(), str(name.value).strip(), value)


def _pairs(
    node: yaml.Node | None, shown: str, wanted: str, errors: list[str]
) -> list[tuple[yaml.Node, yaml.Node]]:
    if isinstance(node, yaml.MappingNode):
        return list(node.value)
    line = 1 if node is None else node.start_mark.line + 1
    errors.append(f"{shown}:{line}: write {wanted}")
    return []
