# SPDX-License-Identifier: GPL-3.0-or-later
"""Read jobs, builds, parameters and configurations [C3.4].

Used by the module `ci_job_info` and the lookups `ci_build_parameters` and `ci_builds`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from ...core.address import path as path_segment
from ...core.errors import ToolchainError, invalid
from ...core.finding import Finding, sides
from ...core.http.messages import Response, unexpected_body
from ...core.http.transport import Transport
from ...core.json_text import json_objects, member
from ...core.module.descriptor import Descriptor, reads
from ...core.module.rules import Rule
from ...core.module.task import Task
from ...core.module.typed_options import NotNegative, Option
from ...core.plan import Plan, ReadOnly, unchanged
from .. import xml_reader
from ..builds import parameters, records
from ..client import (
    EXTENDED_READ,
    SEES_JOB,
    document_text,
    is_computed,
    is_folder,
    object_of,
    server_of,
)
from ..job_address import Job, JobName, build_segment, job_of
from ..service import SERVICE
from . import configuration
from .kept_secrets import with_secrets
from .parts_of_others import with_server_parts

#: Fields to read for each build in a list [W2.4].
FIELDS = (
    "building",
    "description",
    "displayName",
    "duration",
    "estimatedDuration",
    "fullDisplayName",
    "id",
    "number",
    "queueId",
    "result",
    "timestamp",
    "url",
)
_PARAMETERS = "actions[parameters[*]]"
#: Return values that are null unless they were requested.
_RETURNED = ("job", "builds", "build", "config_xml", "value")
#: Fields to read for each job in a list.
_OF_JOB = "name,fullName,url,_class,color,buildable,jobs[name]{0,1}"
#: Maximum number of folders within each other.
_DEEPEST = 50
#: Expressions that return a string. Server fact [ci-12]: the server rejects them with 403, so the
#: element is requested and its text is extracted here.
_TEXT_OF = re.compile(r"(?:string\((.+)\)|(.+)/text\(\))\Z", re.DOTALL)
#: Messages for an expression that selects no element (403) or several (500).
_INVALID_XPATH = re.compile(r"primitive XPath|matched \d+ nodes", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class CiJobInfoOptions:
    """The options of `ci_job_info`."""

    option_rules: ClassVar[tuple[Rule, ...]] = tuple(
        Rule(name, requires="job")
        for name in ("build", "tree", "depth", "all_builds", "config", "expected_config", "xpath")
    )

    job: JobName | None = None
    build: str | None = None
    tree: str | None = None
    depth: NotNegative | None = None
    all_builds: bool = False
    config: bool = False
    expected_config: Annotated[str | None, Option(private=True)] = None
    xpath: str | None = None


class CiJobInfoOperation(ReadOnly):
    """Reads a job or a build, and compares the configuration of the job; or lists all jobs."""

    descriptor: ClassVar = Descriptor(
        SERVICE,
        {
            **dict.fromkeys(("job", "build", "xpath"), reads(*SEES_JOB)),
            "configuration": reads(*SEES_JOB, EXTENDED_READ),
        },
    )

    def __init__(self, task: Task, options: CiJobInfoOptions) -> None:
        self._task, self._options = task, options
        self._server = server_of(task)
        if options.job is None:
            return
        self._job = job_of(options.job, task.connection.url)
        self._build = None if options.build is None else build_segment(options.build)
        if options.xpath is not None and self._build is None:
            raise invalid("xpath requires build, because it selects an element of a build's XML")
        if options.tree is not None and options.depth is not None:
            raise invalid("tree and depth are mutually exclusive: the server would ignore depth")
        if options.expected_config is not None:
            try:
                secrets = configuration.secrets(options.expected_config)
            except xml_reader.UnreadableXml as error:
                raise invalid(f"cannot compare expected_config: {error}") from None
            for secret in secrets:
                task.hide(secret)  # before a message of the server can contain it
        self._purpose = f"reading the job '{self._job.name}'"

    def plan(self) -> Plan:
        values: dict[str, Any] = dict.fromkeys(_RETURNED)
        if self._options.job is None:
            return unchanged({**values, "parameters": {}, "jobs": list(self._jobs(()))})
        tree = self._options.tree
        query = {"tree": tree, "depth": self._options.depth}
        if self._build is not None:
            path = f"{self._job.path}/{self._build}"
            shown = self._read(path, query)
            actions = json_objects(shown.get("actions"))
            has_them = tree is None or any("parameters" in action for action in actions)
            source = shown if has_them else self._read(path, {"tree": _PARAMETERS})
            values.update(build=shown, parameters=parameters.displayed(source))
            if self._options.xpath is not None:
                values["value"] = self._value(path, self._options.xpath)
        else:
            shown = self._read(self._job.path, query)
            name = "allBuilds" if self._options.all_builds else "builds"
            listed = None if tree is None else shown.get(name, shown.get("allBuilds"))
            if listed is None and not is_folder(shown):
                listed = _read_builds(self._server, self._purpose, self._job, name, FIELDS)
            # the default values of the parameters; `None` for hidden defaults
            defined = parameters.definitions_of(shown) or ()
            defaults = {definition.name: definition.default for definition in defined}
            builds = listed if isinstance(listed, list) else []
            values.update(job=shown, builds=builds, parameters=defaults)
        if self._options.config or self._options.expected_config is not None:
            values.update(self._configuration())
        return unchanged(values)

    def findings(self, plan: Plan, values: Mapping[str, Any]) -> list[Finding]:
        """Return the finding of the job whose configuration was compared."""
        if not self._options.expected_config:
            return []
        name, differs = str(self._options.job), values["config_drift"]
        return [Finding(name, "job", "update", *sides(values)) if differs else Finding(name, "job")]

    def _jobs(self, above: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        """Yield the jobs of a folder and of the folders in it; computed folders have one entry."""
        purpose = f"listing the jobs of {'/'.join(above) or 'the server'}"
        folder = "".join(f"job/{path_segment(name)}/" for name in above)
        response = self._server.read(
            purpose, f"{folder}api/json", query={"tree": f"jobs[{_OF_JOB}]"}
        )
        listed = object_of(response).get("jobs")
        if not isinstance(listed, list):
            raise response.error("protocol", "the response has no list of jobs: check url")
        for shown in listed:
            name = member(shown, "name")
            if not isinstance(name, str) or not name:
                raise unexpected_body(response, "a name of each job")
            names, has_jobs = (*above, name), is_folder(shown)
            fields = {field: shown[field] for field in ("url", "color", "_class") if field in shown}
            yield {"name": "/".join(names), "folder": has_jobs, **fields}
            if has_jobs and not is_computed(shown):
                if len(names) >= _DEEPEST:  # the list would be incomplete
                    raise response.error(
                        "protocol", f"folders are more than {_DEEPEST} levels deep"
                    )
                yield from self._jobs(names)

    def _read(self, path: str, query: Mapping[str, Any]) -> Mapping[str, Any]:
        shown: Mapping[str, Any] = parameters.masked(
            object_of(self._response(f"{path}/api/json", query))
        )
        return shown

    def _response(self, path: str, query: Mapping[str, Any]) -> Response:
        response = self._server.read(self._purpose, path, query=query, expect=(200, 404))
        if response.status == 404 and self._build is not None and "/config.xml" not in path:
            raise records.no_build(self._server, self._purpose, self._job, self._build)
        if response.status == 404:
            raise response.error(
                "not_found",
                "the server returned 404: the job does not exist, or the account cannot see it",
            )
        return response

    def _value(self, path: str, xpath: str) -> str:
        """Return the text of the single element that the XPath expression selects.

        Server facts [ci-12]: the server responds with 404 to an expression without a match, and
        with 500 to several matches. A relative expression starts above the root element, but the
        interface description starts it at the root element. Both are tried.

        Raises `rejected` if the expression selects no element or several.
        """
        wanted = _TEXT_OF.fullmatch(xpath.strip())
        element = xpath.strip() if wanted is None else wanted[1] or wanted[2]
        expressions = [element] if element.startswith(("/", "(")) else [element, f"/*/{element}"]
        for expression in expressions:
            query = {"xpath": expression}
            try:
                response = self._server.read(
                    self._purpose, f"{path}/api/xml", query=query, expect=(200, 404)
                )
            except ToolchainError as error:
                if _INVALID_XPATH.search(error.detail or "") is None:
                    raise
                error.kind = "rejected"
                raise error.with_hint("xpath must select exactly one element") from None
            if response.status == 404:
                continue
            if not response.text.lstrip().startswith("<"):
                return response.text
            try:
                return xml_reader.parse(response.text).whole_text()
            except xml_reader.UnreadableXml:
                raise unexpected_body(response, "an XML element") from None
        raise response.error("not_found", f"xpath matches no element: {xpath}")

    def _configuration(self) -> dict[str, Any]:
        response = self._response(f"{self._job.path}/config.xml", {})
        text = document_text(response)
        try:
            hidden = configuration.secrets(text)
        except xml_reader.UnreadableXml as error:
            message = f"cannot parse the configuration: {error}"
            raise response.error("protocol", message) from None
        for secret in hidden:
            self._task.hide(secret)
        values: dict[str, Any] = {"config_xml": text} if self._options.config else {}
        if self._options.expected_config is not None:
            own = with_server_parts(text, self._options.expected_config)
            expected, _missing = with_secrets(text, own)
            found = configuration.drift(text, expected)
            for secret in found.secrets:
                self._task.hide(secret)
            values["config_drift"] = found.found
            values["diff"] = {"before": found.before, "after": found.after}
        return values


def _read_builds(
    server: Transport,
    purpose: str,
    job: Job,
    name: str,
    fields: Sequence[str],
    *,
    limit_suffix: str = "",
) -> list[Any]:
    """Return the builds of a job, newest first.

    :param name: `builds` or `allBuilds`; the other list is used if the server lacks this one
    :param fields: fields to read for each build
    :param limit_suffix: range for the `tree` query, for example `{0,10}`

    Raises `protocol` if `allBuilds` is requested and the server may have omitted builds.
    """
    names = (name, "allBuilds", "builds")
    for requested in dict.fromkeys((name, "builds")):
        query = {"tree": f"{requested}[{','.join(fields)}]{limit_suffix}"}
        response = server.read(purpose, f"{job.path}/api/json", query=query)
        shown = object_of(response)
        found = next(((key, shown[key]) for key in names if shown.get(key) is not None), None)
        if found is not None:
            break
    else:
        raise response.error("protocol", "the response does not contain the builds of the job")
    list_name, builds = found
    if not isinstance(builds, list):
        raise response.error("protocol", f"{list_name} in the response is not a list")
    if name == "allBuilds" and list_name == "builds" and len(builds) >= records.NEWEST:
        raise response.error(
            "protocol",
            f"the server does not support allBuilds. It returned only the newest {len(builds)}"
            " builds; older builds may exist",
        )
    return [parameters.masked(build) for build in json_objects(builds)]


@dataclass(frozen=True, kw_only=True)
class BuildParametersOptions:
    """Options of the lookup `ci_build_parameters`."""

    job: JobName
    build: str


def build_parameters(task: Task, options: BuildParametersOptions) -> dict[str, Any]:
    """Return the parameters of a build by name, for the lookup `ci_build_parameters`."""
    job = job_of(options.job, task.connection.url)
    segment = build_segment(options.build)
    server, purpose = server_of(task), f"reading build {segment} of the job '{job.name}'"
    response = records.build_response(server, purpose, job, segment, _PARAMETERS)
    shown = object_of(response)
    actions = json_objects(shown.get("actions"))
    listed = [entry for action in actions for entry in json_objects(action.get("parameters"))]
    if "actions" not in shown or not all("name" in entry for entry in listed):
        raise response.error("protocol", "the response does not contain the build parameters")
    return parameters.displayed(shown)


@dataclass(frozen=True, kw_only=True)
class BuildListOptions:
    """Options of the lookup `ci_builds`."""

    job: JobName
    fields: list[str]
    limit: NotNegative | None = None
    all_builds: bool = False


def build_list(task: Task, options: BuildListOptions) -> list[dict[str, Any]]:
    """Return the builds of a job, newest first, for the lookup `ci_builds`."""
    limit = options.limit
    if not options.fields:
        raise invalid("fields is empty: list the fields to read from a build")
    job = job_of(options.job, task.connection.url)
    more = options.all_builds or (limit is not None and limit > records.NEWEST)
    name = "allBuilds" if more else "builds"
    limit_suffix = "" if limit is None else f"{{0,{limit}}}"
    purpose = f"reading the builds of the job '{job.name}'"
    return _read_builds(
        server_of(task), purpose, job, name, options.fields, limit_suffix=limit_suffix
    )[:limit]
