# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare a wanted build record with the stored record [C8.3, repo-29].

The server adds content to a published record, such as checksums, and drops empty lists. Only
the wanted parts are compared, therefore, and not the whole records.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any, TypeAlias

from ...core.errors import shorten
from ...core.free_text import mask_free_text
from ...core.json_text import as_text, json_objects
from ...core.plan import without_none
from ...core.secret import MASK, hidden, is_secret_name, secrets_of_url, without_user_info
from ...core.times import moment_of
from .recorded_files import path_of
from .records import shown_record

ENVIRONMENT = "buildInfo.env."
_Match: TypeAlias = Callable[[Mapping[str, Any], Mapping[str, Any]], bool]
_DIGESTS = ("sha256", "sha1", "md5")
#: Lists of files in a module, and the key of a name in each.
_FILES = (("artifacts", "name"), ("dependencies", "id"))
#: Value of `agent` and `buildAgent` in a new record.
_AGENT = {"name": "delivery.toolchain"}


@dataclass(frozen=True)
class Differences:
    """The wanted parts that a record lacks, or has with another value, as labels for messages.

    Examples are `ci_url` and `artifacts core/app.jar of the module core`.

    :param surplus: parts of the record that are not wanted
    """

    lacks: list[str] = field(default_factory=list)
    differs: list[str] = field(default_factory=list)
    surplus: list[str] = field(default_factory=list)

    def add(self, label: str, *, exists: bool) -> None:
        """Add a part.

        :param exists: whether the record has the part with another value
        """
        (self.differs if exists else self.lacks).append(label)

    def __bool__(self) -> bool:
        return bool(self.lacks or self.differs or self.surplus)

    def __str__(self) -> str:
        lists = {"lacks": self.lacks, "differs": self.differs, "also has": self.surplus}
        return "; ".join(
            f"{verb}: {shorten(', '.join(labels), 400)}" for verb, labels in lists.items() if labels
        )


@dataclass(frozen=True)
class Publication:
    """Wanted content of a build record; parts that are not managed are `None`.

    :param exact: whether a record may have nothing else, except its promotions
    :param kept: modules of the existing record that stay as they are
    """

    name: str
    number: str
    modules: Sequence[Mapping[str, Any]]
    started: datetime | None = None
    url: str | None = None
    vcs: Sequence[Mapping[str, Any]] | None = None
    issues: Sequence[Mapping[str, Any]] | None = None
    environment: Mapping[str, str] | None = None
    properties: Mapping[str, str] | None = None
    exact: bool = False
    kept: Sequence[Mapping[str, Any]] = ()
    #: Start time of a new record if `started` is not set.
    now: datetime = field(default_factory=lambda: datetime.now(timezone.utc))

    def keeping(self, record: Mapping[str, Any], parts: Collection[str]) -> Publication:
        """Return the publication with what is kept of an existing record.

        :param parts: values of the option `keep`; entries that are wanted replace those of the same
            name
        """
        known: Mapping[str, Any] = shown_record(record)["properties"]
        variables = {
            name.removeprefix(ENVIRONMENT): as_text(value)
            for name, value in known.items()
            if name.startswith(ENVIRONMENT)
        }
        others = {
            name: as_text(value)
            for name, value in known.items()
            if not name.startswith(ENVIRONMENT)
        }
        own = {as_text(module["id"]) for module in self.modules}
        found = replace(self)
        values: dict[str, dict[str, Any]] = {
            "ci_url": {"url": self.url or record.get("url") or None},
            "modules": {
                "kept": [
                    module
                    for module in json_objects(record.get("modules"))
                    if as_text(module.get("id")) not in own
                ]
            },
            "vcs": {"vcs": _joined(self.vcs, json_objects(record.get("vcs")))},
            "issues": {"issues": _joined(self.issues, _issues_in(record))},
            "environment": {"environment": {**variables, **(self.environment or {})}},
            "properties": {"properties": {**others, **(self.properties or {})}},
        }
        for part in parts:
            found = replace(found, **values[part])
        return found

    def differences(self, record: Mapping[str, Any]) -> Differences:
        """Compare the wanted parts with a record."""
        found = Differences()
        moment = moment_of(record.get("started"))
        # the precision of the server is a millisecond [repo-29]
        if self.started is not None and (
            moment is None or as_started(moment) != as_started(self.started)
        ):
            found.differs.append("started")
        if self.url is not None and record.get("url") != self.url:
            found.add("ci_url", exists=bool(record.get("url")))
        known = shown_record(record)["properties"]
        for name, value in self._properties().items():
            if as_text(known.get(name)) != value:
                found.add(f"property {name}", exists=name in known)
        self._compare_modules(record, found)
        for wanted in self.vcs or ():
            if not any(_has(entry, wanted) for entry in json_objects(record.get("vcs"))):
                found.lacks.append(
                    f"vcs {wanted.get('url', '')} {wanted.get('revision', '')}".rstrip()
                )
        for wanted in self.issues or ():
            if not any(_has(entry, wanted) for entry in _issues_in(record)):
                found.lacks.append(f"issue {wanted.get('key')}")
        if self.exact:
            found.surplus.extend(self._surplus(record))
        return found

    def _surplus(self, record: Mapping[str, Any]) -> Iterator[str]:
        """Yield the parts of a record that are not wanted."""
        known = shown_record(record)["properties"]
        yield from (f"property {name}" for name in known if name not in self._properties())
        if record.get("url") and self.url is None:
            yield "ci_url"
        yield from self._surplus_in(json_objects(record.get("modules")))
        for entry in json_objects(record.get("vcs")):
            if not any(_has(entry, each) for each in self.vcs or ()):
                yield f"vcs {as_text(entry.get('url'))}"
        for entry in _issues_in(record):
            if not any(_has(entry, each) for each in self.issues or ()):
                yield f"issue {as_text(entry.get('key'))}"

    def _surplus_in(self, modules: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        wanted = {as_text(module["id"]): module for module in self.modules}
        kept = {as_text(module.get("id")) for module in self.kept}
        for module in modules:
            name = as_text(module.get("id"))
            if name in kept:
                continue
            if name not in wanted:
                yield f"module {name}"
                continue
            for part, key in _FILES:
                files = _ComparedFiles(
                    key, json_objects(module.get(part)), wanted[name].get(part, ())
                )
                files.unmatched()
                for file in files.unused():
                    label = path_of(file) or as_text(file.get(key))
                    yield f"{part} {label} of the module {wanted[name]['id']}"

    def _compare_modules(self, record: Mapping[str, Any], found: Differences) -> None:
        known = {
            as_text(module.get("id")): module for module in json_objects(record.get("modules"))
        }
        for module in self.modules:
            current = known.get(str(module["id"]))
            if current is None:
                found.lacks.append(f"module {module['id']}")
                continue
            for part, name in _FILES:
                files = _ComparedFiles(name, json_objects(current.get(part)), module.get(part, ()))
                for file in files.unmatched():
                    label = f"{part} {path_of(file) or file[name]} of the module {module['id']}"
                    found.add(label, exists=files.take(file, _is_named_alike))

    def _properties(self) -> dict[str, str]:
        variables = (self.environment or {}).items()
        return {
            **(self.properties or {}),
            **{f"{ENVIRONMENT}{name}": value for name, value in variables},
        }

    def record(self, current: Mapping[str, Any] | None) -> dict[str, Any]:
        """Return the record to send, which replaces `current` except its start and its promotions.

        Server fact [repo-29]: a record with the same start time is replaced; with another start
        time, the server adds a second record.
        """
        known = {name: (current or {}).get(name) for name in ("started", "statuses")}
        started = moment_of(known["started"]) or self.started or self.now
        issues = None
        if self.issues is not None:
            affected = [{"aggregated": False, **issue} for issue in self.issues]
            tracker = {"tracker": {"name": "JIRA"}, "aggregateBuildIssues": False}
            issues = {**tracker, "affectedIssues": affected}
        record = {
            "version": "1.0.1",
            "type": "GENERIC",
            "durationMillis": 0,
            "agent": _AGENT,
            "buildAgent": _AGENT,
            "url": self.url,
            "modules": [*self.modules, *self.kept],
            "vcs": None if self.vcs is None else list(self.vcs),
            "issues": issues,
            "name": self.name,
            "number": self.number,
            "started": known["started"] or as_started(started),
            "statuses": known["statuses"],
            "properties": self._properties(),
        }
        return without_none(record)


@dataclass(frozen=True)
class PublicationPlan:
    """The changes of a publication.

    :param there: the record before the task; `None` if it does not exist
    :param record: the record after the task
    :param sends: whether the record must be sent, because it is missing or differs
    :param unmarked: current properties of the files that lack build properties, by repository and
        path
    """

    publication: Publication
    there: Mapping[str, Any] | None
    record: Mapping[str, Any]
    sends: bool
    unmarked: Mapping[tuple[str, str], Any]

    def sides(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return before and after of the record for the diff, limited to the managed parts."""
        if not self.sends:
            return {}, {}
        wanted, there = self.publication, self.there
        names = ["url", "modules", "vcs", "issues", "properties"]
        if wanted.started is not None:
            names.append("started")
        after = {name: self.record[name] for name in names if self.record.get(name)}
        if there is None:
            return {}, {"name": wanted.name, "number": wanted.number, **after}
        return {name: there[name] for name in names if there.get(name)}, after


def _joined(
    wanted: Sequence[Mapping[str, Any]] | None, there: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return the wanted entries, and those of a record that have none of them."""
    own = list(wanted or ())
    return [*own, *(entry for entry in there if not any(_has(entry, each) for each in own))]


def _has(there: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(there.get(name) == value for name, value in wanted.items())


def _issues_in(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    issues = record.get("issues")
    return json_objects(issues.get("affectedIssues")) if isinstance(issues, Mapping) else []


class _ComparedFiles:
    """Recorded and wanted files of a module. A recorded file matches a single wanted file.

    :param name: key of the name, which is `id` for dependencies
    :param there: files of the record
    :param wanted: wanted files; equal entries are a single file
    """

    def __init__(
        self, name: str, there: Sequence[Mapping[str, Any]], wanted: Sequence[Mapping[str, Any]]
    ) -> None:
        self._name = name
        self._unused: dict[str, list[Mapping[str, Any]]] = {}
        for file in there:
            self._unused.setdefault(as_text(file.get(name)), []).append(file)
        places = {(file[name], path_of(file), *map(file.get, _DIGESTS)): file for file in wanted}
        self._wanted = list(places.values())

    def unmatched(self) -> list[Mapping[str, Any]]:
        """Return the wanted files that the record lacks."""

        # equal paths first: a file without a path must not take the entry of another file
        def at_path(there: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
            return path_of(there) == path_of(wanted) and _is_file(there, wanted)

        left = [file for file in self._wanted if not self.take(file, at_path)]
        return [file for file in left if not self.take(file, _is_file)]

    def unused(self) -> Iterator[Mapping[str, Any]]:
        """Yield the recorded files that no wanted file has matched."""
        for files in self._unused.values():
            yield from files

    def take(self, wanted: Mapping[str, Any], matches: _Match) -> bool:
        """Remove the first recorded file that matches; return whether there is one."""
        candidates = self._unused.get(str(wanted[self._name]), [])
        found = next((file for file in candidates if matches(file, wanted)), None)
        if found is not None:
            candidates.remove(found)
        return found is not None


def _is_named_alike(there: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return whether the paths of two files with the same name are equal, or one is unknown."""
    return path_of(there) == path_of(wanted) or "" in (path_of(there), path_of(wanted))


def _is_file(there: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return whether a recorded file with the wanted name has its path, digests and scopes.

    All digests that both have must be equal, and there must be at least one, unless the wanted
    file has none.
    """
    both = [digest for digest in _DIGESTS if there.get(digest) and wanted.get(digest)]
    scopes = set(wanted.get("scopes", ())) <= set(there.get("scopes") or ())
    comparable = bool(both) or not any(map(wanted.get, _DIGESTS))
    equal = all(str(there[name]).lower() == wanted[name] for name in both)
    return _is_named_alike(there, wanted) and scopes and comparable and equal


def as_started(moment: datetime) -> str:
    """Format a start time for the server [repo-29], such as `2026-01-31T12:00:00.000+0000`."""
    utc = moment.astimezone(timezone.utc)
    return f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03d}+0000"


def milliseconds(started: Any) -> str:
    """Convert a start time to epoch milliseconds for `build.timestamp`; "" if it is malformed."""
    moment = moment_of(started)
    return "" if moment is None else str(int(moment.timestamp() * 1000))


#: Names of variables that are usually left out [repo-29], such as `GIT_AUTH`, but not `AUTHOR`.
_SECRET_VARIABLE = re.compile(
    r"passw|pwd|psw|pass$|secret|token|credential|key|auth(?!or(?!i))", re.IGNORECASE
)
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"]+")
#: A user name without a password. A later `@` belongs to a mail address after the URL.
_USER_NAME = re.compile(r"(?<=://)[\w.%+~-]*@")
# At the start of a value, and not a word of a sentence. Not a reference to a variable, and not yet
# masked.
_BEARER = re.compile(
    r"""((?:^|[:='"])\s*bearer\s+)(?![$%{*]|[a-z]{1,15}[:,]?\s+[a-z]+)[^\s"',;]+""", re.IGNORECASE
)
#: A pair of a connection string, whose value may contain blanks.
_PAIR = re.compile(r"(?:^|(?<=;))([^=;]+)=(?!\s*[$%{*])[^;]+")
#: Minimum length of secrets that are searched for: shorter ones may occur in any value by chance.
_SHORTEST_SECRET = 6


class PublicValues:
    """Returns values without secrets.

    A value is left out if its name is secret or if it contains a secret of the task. Other secrets
    in a value are masked.
    """

    def __init__(self) -> None:
        self._secrets = [form for form in hidden.forms if len(form) >= _SHORTEST_SECRET]
        #: Places of the values that were left out or masked, such as `environment.DB_PASSWORD`.
        self.withheld: list[str] = []

    def variables(self, place: str, values: Mapping[str, str]) -> dict[str, str]:
        """Return environment variables without secrets."""
        return self._members(place, values, _is_secret_variable)

    def properties(self, place: str, value: Any) -> Any:
        """Return properties, a JSON value of any type, without secrets."""
        if isinstance(value, Mapping):
            name = value.get("key", value.get("name"))
            if "value" in value and isinstance(name, str) and is_secret_name(name):
                self.withheld.append(f"{place}.{name}")
                return {member: item for member, item in value.items() if member != "value"}
            return self._members(place, value, _is_secret_property)
        if isinstance(value, list):
            items = enumerate(value)
            return [self.properties(f"{place}[{number}]", item) for number, item in items]
        return self.text(place, value) if isinstance(value, str) else value

    def _members(
        self, place: str, values: Mapping[str, Any], is_secret: Callable[[str], bool]
    ) -> dict[str, Any]:
        found = {}
        for name, value in values.items():
            inside = f"{place}.{name}"
            # a value with a secret of the task is secret, whatever its name
            found_in = isinstance(value, str) and any(each in value for each in self._secrets)
            if found_in or is_secret(str(name)):
                self.withheld.append(inside)
            else:
                found[name] = self.properties(inside, value)
        return found

    def text(self, place: str, text: str) -> str:
        """Return a string without user info in addresses, and with other secrets masked."""
        addresses = _ADDRESS.findall(text)
        public = _ADDRESS.sub(lambda found: _without_login(found[0]), text)

        def pair(found: re.Match[str]) -> str:
            is_secret = ";" in found.string and is_secret_name(found[1].rstrip())
            return f"{found[1]}={MASK}" if is_secret else found[0]

        masked = mask_free_text(_PAIR.sub(pair, _BEARER.sub(rf"\g<1>{MASK}", public)))
        for secret in self._secrets:
            masked = masked.replace(secret, MASK)
        if masked != public or any(map(_has_login, addresses)):
            self.withheld.append(place)
        return masked


def _without_login(address: str) -> str:
    return without_user_info(address) if _has_login(address) else _USER_NAME.sub("", address)


def _has_login(address: str) -> bool:
    """Return whether the user info of an address is secret, unlike `git@`."""
    return secrets_of_url(address) != secrets_of_url(without_user_info(address))


def _is_secret_property(name: str) -> bool:
    """Return whether a property is secret; a record stores variables among its properties."""
    is_variable = name.startswith(ENVIRONMENT)
    return is_secret_name(name) or (is_variable and _is_secret_variable(name[len(ENVIRONMENT) :]))


def _is_secret_variable(name: str) -> bool:
    return is_secret_name(name) or _SECRET_VARIABLE.search(name) is not None
