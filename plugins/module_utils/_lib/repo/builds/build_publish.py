# SPDX-License-Identifier: GPL-3.0-or-later
"""Publish a build record, and set the build properties of its files [C8.3]."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

from ...core.concurrency import bounded, spread
from ...core.errors import ToolchainError, conflict, invalid, shorten
from ...core.globs import has_wildcards, matcher
from ...core.module.descriptor import Descriptor, writes
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import Option, Positive, Segment
from ...core.plan import Action, Plan, without_none
from ...core.progress import PollInterval
from ...core.secret import clean_url, misplaced_user_info
from ...core.times import moment_of
from ...core.verification import without_effect
from .. import properties, repositories
from ..client import RepoClient
from ..items import listing
from ..items.uploads import common_folder
from ..properties import Properties
from ..service import SERVICE
from . import records
from .build_info import NO_BUILDS
from .publication import Differences, Publication, PublicationPlan, PublicValues, milliseconds
from .published_files import (
    BuildModule,
    GivenText,
    PublishedFile,
    PublishedFileOptions,
    files_of,
    modules_of,
    with_digests,
)
from .records import BuildKey, promotions, shown_record

_WEB = re.compile(r"https?://[^/]", re.IGNORECASE)
#: Parts of a record that a replacement can keep.
KeptPart = Literal["ci_url", "environment", "issues", "modules", "properties", "vcs"]
#: Keys of an entry of `vcs`.
_VCS_KEYS = ("url", "revision", "branch", "message")
#: Maximum seconds to wait until the server returns a new record.
_DELAY_SECONDS = 5.0


@dataclass(frozen=True)
class AffectedIssueOptions:
    """The suboptions of `issues`."""

    key: Annotated[str, Option(secret=False)]
    summary: GivenText = None
    url: GivenText = None


@dataclass(frozen=True)
class BuildPublishOptions:
    """The options of `build_publish`."""

    constraints: ClassVar[dict[str, Any]] = {
        "mutually_exclusive": [("modules", "artifacts")],
        "required_one_of": [("modules", "artifacts")],
    }
    option_rules: ClassVar[tuple[Rule, ...]] = (Rule("keep", requires="replace=true"),)

    build_name: Segment
    build_number: Segment
    project: str | None = None
    modules: Annotated[
        list[dict[str, Any]] | None, Option(empty=False, values="json", private=True)
    ] = None
    artifacts: Annotated[list[PublishedFileOptions] | None, Option(empty=False)] = None
    started: str | None = None
    ci_url: str | None = None
    vcs: Annotated[list[dict[str, Any]] | None, Option(values="text")] = None
    issues: list[AffectedIssueOptions] | None = None
    environment: Annotated[dict[str, Any] | None, Option(values="text", private=True)] = None
    environment_exclude: list[str] | None = None
    properties: Annotated[dict[str, Any] | None, Option(values="text", private=True)] = None
    mark_artifacts: bool = True
    replace: bool = False
    keep: list[KeptPart] | None = None
    parallel: Positive = 4


Place = tuple[str, str]


class BuildProperties:
    """The properties `build.name`, `build.number` and `build.timestamp` of a build's items.

    :param timestamp: start of the build in epoch milliseconds
    """

    def __init__(self, client: RepoClient, name: str, number: str, timestamp: str) -> None:
        self._client = client
        self.wanted: Properties = properties.properties_of(
            {"build.name": name, "build.number": number, "build.timestamp": timestamp}
        )

    def missing(self, files: Sequence[PublishedFile]) -> dict[Place, Properties]:
        """Return the items that lack a build property, with their current build properties.

        Files that are not items of a repository are left out. A file of a virtual repository is
        returned with the repository that contains it.
        """
        found: dict[Place, Properties] = {}
        for repo in dict.fromkeys(file.repo for file in files if file.is_item):
            paths = list(dict.fromkeys(file.path for file in files if file.repo == repo))
            there = self._read(repo, paths)
            lacking = [path for path in paths if not properties.are_set(there[path], self.wanted)]
            # properties cannot be set through a virtual repository, so its members are searched
            members = repositories.members(self._client, repo) if lacking else [repo]
            for path in lacking:
                holder = repo
                if members != [repo]:
                    heads = (key for key in members if listing.head(self._client, key, path))
                    holder = next(heads, repo)
                known = there[path] or {}
                found[holder, path] = {name: known[name] for name in self.wanted if name in known}
        return found

    def _read(self, repo: str, paths: Sequence[str]) -> dict[str, Properties | None]:
        """Return the properties of items by path; `None` if the server does not return properties.

        Items that a query does not find are read one by one: queries do not find items of virtual
        repositories.
        """
        folder, client = common_folder(paths), self._client
        below = None
        if len(paths) > 1 and folder:
            below = properties.read_below(client, repo, folder)
        found: dict[str, Properties | None] = {
            path: below[path] for path in paths if below is not None and path in below
        }
        others = [path for path in paths if path not in found]
        asked = bounded(
            client.connections, lambda path: properties.read(client, repo, path), others
        )
        return {**found, **dict(zip(others, asked, strict=True))}

    def write(self, places: Sequence[Place]) -> None:
        """Set the build properties of items, given by repository and path.

        A concurrent publication of the same build may set another timestamp.
        """

        def write(place: Place) -> None:
            properties.write(self._client, *place, self.wanted, contested=("build.timestamp",))

        spread(self._client.connections, write, places)


class BuildPublishOperation:
    """Publish a record if it is missing or incomplete, and set missing build properties."""

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {"publish": writes("read", unforeseen=("deploy", "annotate"))},
        kind="build",
        name="{project}:{build_name}/{build_number}",
    )

    def __init__(self, task: Task, options: BuildPublishOptions) -> None:
        for option in ("build_name", "build_number"):
            value = getattr(options, option)
            if value != value.strip():
                raise invalid(
                    f"{option} is '{value}', but must not have leading or trailing blanks"
                )
            if has_wildcards(value):
                raise invalid(
                    f"{option} is '{value}', which contains wildcards, but must name a single build"
                )
        self._task, self._options = task, options
        self._name, self._number = options.build_name, options.build_number
        self._key = BuildKey(self._name, self._number, options.project)
        self._label = str(self._key)
        #: Kind and name of the start time that the run has sent.
        self._sent = ("build", *self._key.prediction)
        values = PublicValues()
        if options.artifacts is None:
            self._modules = modules_of(options.modules or [], values, task)
        else:
            artifacts = files_of("artifacts", options.artifacts)
            self._modules = [BuildModule(self._name, "generic", artifacts, ())]
        self._publication = _publication(options, values)
        self._withheld = values.withheld
        if self._withheld:
            task.warn(
                f"{len(self._withheld)} values are left out of the record of {self._label} or"
                f" masked, because they contain secrets: {shorten(', '.join(self._withheld), 400)}"
            )
        self._client = RepoClient(task, connections=options.parallel)

    def plan(self) -> Plan:
        if not self._client.dialect.publishes_builds:
            raise repositories.lacking(self._client, f"publishing {self._label}")
        there = self._read()
        files = [file for module in self._modules for file in module.files]
        known = {file.place: file for file in with_digests(self._client, files)}
        modules = [module.as_dict(known) for module in self._modules]
        publication = replace(self._publication, modules=modules)
        if there is not None:
            publication = publication.keeping(there, self._options.keep or ())
        elif (sent := self._task.created.get(*self._sent)) is not None:
            # the server does not return the record of an earlier task yet [repo-29]: another start
            # time would create a second record
            publication = replace(publication, now=moment_of(sent) or publication.now)
        differences = None if there is None else publication.differences(there)
        if there is not None and differences:
            self._require_replaceable(there, differences)
        sends = there is None or bool(differences)
        record = publication.record(there) if sends else dict(there or {})
        unmarked: dict[Place, Any] = {}
        if self._options.mark_artifacts:
            artifacts = [file for module in self._modules for file in module.artifacts]
            build = self._build_properties(record)
            unmarked = build.missing([known[file.place] for file in artifacts])
        marked = ["/".join(place) for place in unmarked]
        result = {"build": shown_record(record), "marked": marked, "withheld": self._withheld}
        if not sends and not marked:
            return Plan({}, {}, result=result)
        data = PublicationPlan(publication, there, record, sends, unmarked)
        # the existing record may have secrets, which the diff must not show
        before, after = (PublicValues().properties("", side) for side in data.sides())
        if marked:
            wanted = dict(self._build_properties(record).wanted)
            if there is None and publication.started is None:
                del wanted["build.timestamp"]  # the task uses the current time
            current = {
                place: {name: values for name, values in has.items() if name in wanted}
                for place, has in zip(marked, unmarked.values(), strict=True)
            }
            before["marks"], after["marks"] = current, dict.fromkeys(marked, wanted)
        action: Action = "create" if there is None else "update"
        return Plan(before, after, action, result=result, data=data)

    def _read(self) -> Mapping[str, Any] | None:
        """Return the existing build record; `None` without one."""
        try:
            return self._read_record()
        except ToolchainError as error:
            if error.kind != "not_found":
                raise
            if NO_BUILDS not in (error.detail or "").lower():
                # raises if the 404 came from another kind of server
                repositories.listed(self._client)
            return None

    def _read_record(self) -> Mapping[str, Any]:
        return records.read_record(self._client, self._key)

    def _require_replaceable(self, there: Mapping[str, Any], differences: Differences) -> None:
        """Raise `conflict` unless the existing record can be replaced and `replace` is set.

        Warn if the build is promoted, because the promotion copied the files of the old record.
        """
        if "started" in differences.differs:
            raise conflict(
                f"{self._label} already exists with the start time {there.get('started')}: another"
                " start time would create a second record. Omit started, or delete the existing"
                " record with build_record"
            )
        if not self._options.replace:
            raise conflict(
                f"{self._label} already exists, but {differences}. Publish a new build number, or"
                " set replace: true to replace the record and keep its promotions"
            )
        history = promotions(there)
        if history:
            newest = history[-1]
            state = f"promoted to '{newest.repository}'" if newest.repository else "promoted"
            self._task.warn(
                f"{self._label} is {state} with the status '{newest.status}', and this task"
                " replaces its record: promote it again to copy the new files"
            )

    def _build_properties(self, record: Mapping[str, Any]) -> BuildProperties:
        timestamp = milliseconds(record.get("started"))
        return BuildProperties(self._client, self._name, self._number, timestamp)

    def predict(self, plan: Plan) -> None:
        self._client.predictions.add("build", *self._key.prediction, value=plan.data.record)

    def apply(self, plan: Plan) -> Mapping[str, Any]:
        data: PublicationPlan = plan.data
        record = self._send(data) if data.sends else data.record
        try:
            self._build_properties(record).write(list(data.unmarked))
        except ToolchainError as error:
            error.result.setdefault("build", shown_record(record))
            if data.sends:
                error.with_hint("the build record is published")
            raise
        return {"build": shown_record(record)}

    def _send(self, data: PublicationPlan) -> Mapping[str, Any]:
        """Publish the record, verify it, and return it as stored by the server."""
        purpose = f"publishing {self._label}"

        def is_there() -> bool:
            try:
                return not data.publication.differences(self._read_record())
            except ToolchainError as error:
                if error.kind != "not_found":
                    raise
                return False

        self._task.created.add(*self._sent, value=data.record["started"])
        try:
            self._client.write(
                purpose,
                "PUT",
                "api/build",
                query={"project": self._options.project},
                json=without_none(data.record),
                verify=is_there,
            )
        except ToolchainError as error:
            if error.status == 403 and self._options.replace:
                error.with_hint("replacing a record requires the permission to delete")
            raise
        try:
            # server fact [repo-29]: a new record may appear with a delay
            polling = PollInterval(_DELAY_SECONDS, 1.0)
            found = polling.until_found(purpose, self._read_record)
        except ToolchainError as error:
            if error.kind != "not_found":
                raise
            self._task.warn(
                f"{purpose}: the server accepted the record, but does not return it yet"
            )
            return data.record
        lost = data.publication.differences(found)
        if lost.lacks or lost.differs:
            raise without_effect(purpose, f"its record {lost}", build=shown_record(found))
        if lost:
            self._task.warn(f"{purpose}: the server added to the record, which {lost}")
        return found


def _publication(options: BuildPublishOptions, values: PublicValues) -> Publication:
    started = None
    if options.started is not None:
        started = moment_of(options.started)
        if started is None or options.started.isdecimal():
            raise invalid(
                f"started is '{options.started}', but must have the format 2026-01-02T03:04:05.678Z"
            )
    url = None if options.ci_url is None else _public("ci_url", options.ci_url, values)
    if url is not None and _WEB.match(url) is None:
        raise invalid(f"ci_url is '{url}', but must begin with http:// or https://")
    properties = None
    if options.properties is not None:
        texts = _texts("properties", options.properties)
        properties = values.properties("properties", texts)
    vcs = issues = None
    if options.vcs is not None:
        vcs = [_source(f"vcs[{n}]", entry, values) for n, entry in enumerate(options.vcs)]
    if options.issues is not None:
        issues = [_issue(f"issues[{n}]", issue, values) for n, issue in enumerate(options.issues)]
    environment = None
    if options.environment is not None:
        variables = _texts("environment", options.environment)
        excluded = options.environment_exclude or ()
        wrong = next((pattern for pattern in excluded if "[" in pattern), None)
        if wrong is not None:
            raise invalid(
                f"environment_exclude: '{wrong}' contains a bracket, but the only wildcards are *"
                " and ?"
            )
        left_out = [matcher(pattern.lower()) for pattern in excluded]
        wanted = {
            name: value
            for name, value in variables.items()
            if not any(fits(name.lower()) for fits in left_out)
        }
        environment = values.variables("environment", wanted)
    return Publication(
        options.build_name,
        options.build_number,
        (),
        started,
        url,
        vcs,
        issues,
        environment,
        properties,
        exact=options.replace,
    )


def _source(place: str, entry: Mapping[str, Any], values: PublicValues) -> dict[str, Any]:
    """Return a validated entry of `vcs`.

    Ansible cannot validate it, because it does not allow a suboption with the name `message`.
    """
    unknown = sorted(str(name) for name in entry if name not in _VCS_KEYS)
    if unknown:
        raise invalid(f"{place}.{unknown[0]} is unknown: use only {', '.join(_VCS_KEYS)}")
    wrong = next((name for name, value in entry.items() if isinstance(value, (dict, list))), None)
    if wrong is not None:
        raise invalid(f"{place}.{wrong} must be a string")
    texts = {name: str(value) for name, value in entry.items() if value not in (None, "")}
    if not texts.keys() & {"url", "revision"}:
        raise invalid(f"{place}.url is missing: set it to the URL of the source repository")
    url = texts.pop("url", None)
    public: dict[str, Any] = values.properties(place, texts)
    return public if url is None else {**public, "url": _public(f"{place}.url", url, values)}


def _issue(place: str, issue: AffectedIssueOptions, values: PublicValues) -> dict[str, Any]:
    given = {name: value for name, value in vars(issue).items() if value}
    return given | ({"url": values.text(f"{place}.url", issue.url)} if issue.url else {})


def _public(place: str, url: str, values: PublicValues) -> str:
    """Return a URL without user info and other secrets.

    Raises `invalid` if the user info cannot be parsed.
    """
    begin, end = misplaced_user_info(url)
    if "://" in url and end > begin:
        raise invalid(
            f"{place} is {clean_url(url)}: the part before the @ cannot be parsed; remove it"
        )
    return values.text(place, url)


def _texts(option: str, values: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of an option as strings, without `None` values.

    A list is joined by commas, because a build record has a single string per name.
    """
    if any(not str(name).strip() for name in values):
        raise invalid(f"{option} has an empty name: set it, or remove the entry")
    return {
        str(name): ",".join(value) if isinstance(value, list) else str(value)
        for name, value in values.items()
        if value is not None
    }
