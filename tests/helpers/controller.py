# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulate the part of the AWX API that the playbook `awx_setup` uses.

The simulation stores objects, finds them by fields and links them. It rejects the same requests as
AWX 24: a survey or a credential type of another form, a playbook that is missing from the project,
and a wrong token. With `GATEWAY` it responds only to addresses of the gateway of Ansible Automation
Platform, and returns such addresses.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from jinja2 import StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

TOKEN = "controller-token-1234567890"
#: The path of the API of AWX, and that of the same API behind the gateway. The controller also
#: writes it into the addresses of its responses (awx/api/versioning.py).
AWX = "/api/"
GATEWAY = "/api/controller/"
_TYPES = {
    "credential_types": "credential_type",
    "credentials": "credential",
    "execution_environments": "execution_environment",
    "inventories": "inventory",
    "job_templates": "job_template",
    "notification_templates": "notification_template",
    "organizations": "organization",
    "projects": "project",
    "schedules": "schedule",
    "workflow_approval_templates": "workflow_approval_template",
    "workflow_job_template_nodes": "workflow_job_template_node",
    "workflow_job_templates": "workflow_job_template",
}
_UNIFIED = ("job_templates", "projects", "workflow_job_templates")
_LINKS = (
    *("always_nodes", "credentials", "failure_nodes", "instance_groups", "labels"),
    *("notification_templates_approvals", "notification_templates_error", "success_nodes"),
)
_KINDS = {"text", "textarea", "multiplechoice", "multiselect", "integer", "float", "password"}
_PLAYBOOKS = Path(__file__).resolve().parents[2] / "playbooks"

Response = tuple[int, Any]


class Refused(Exception):
    """Content of an AWX response with status 400."""


@dataclass
class Store:
    """The objects of the controller by kind, and the write requests.

    `api` is the path that all addresses begin with.
    """

    api: str = f"{AWX}v2/"
    objects: dict[str, dict[int, dict[str, Any]]] = field(
        default_factory=lambda: {kind: {} for kind in _TYPES}
    )
    links: dict[tuple[str, int, str], list[int]] = field(default_factory=dict)
    surveys: dict[int, Any] = field(default_factory=dict)
    writes: list[tuple[str, str]] = field(default_factory=list)
    number: int = 0

    def add(self, kind: str, data: Mapping[str, Any]) -> dict[str, Any]:
        """Store a new object with the fields that AWX adds."""
        self.number += 1
        url = f"{self.api}{kind}/{self.number}/"
        related = {"survey_spec": f"{url}survey_spec/"}
        self.objects[kind][self.number] = {
            "scm_revision": "",
            "summary_fields": {},
            "enabled": True,
            "related": related,
            **dict(data),
            "id": self.number,
            "url": url,
            "type": _TYPES[kind],
        }
        return self.objects[kind][self.number]

    def named(self, kind: str, name: str) -> dict[str, Any]:
        """Return the only object with this name."""
        (found,) = [record for record in self.objects[kind].values() if record["name"] == name]
        return found

    def names(self, kind: str) -> list[str]:
        return [record["name"] for record in self.objects[kind].values()]

    def find(self, kind: str, wanted: Mapping[str, str]) -> list[dict[str, Any]]:
        kinds = _UNIFIED if kind == "unified_job_templates" else (kind,)
        return [
            record
            for one in kinds
            for record in self.objects[one].values()
            if all(str(record.get(name)) == value for name, value in wanted.items())
        ]

    def response(self, method: str, path: str, wanted: Mapping[str, str], data: Any) -> Response:
        """Return the response of the controller to a request."""
        if not path.startswith(self.api):
            return 404, {"detail": "Not found."}
        kind, _slash, rest = path.removeprefix(self.api).strip("/").partition("/")
        if method != "GET":
            self.writes.append((method, path))
        if kind not in (*_TYPES, "unified_job_templates"):
            return 404, {"detail": "Not found."}
        if not rest:
            return self._collection(method, kind, wanted, data)
        number, _slash, part = rest.partition("/")
        known = self.objects[kind].get(int(number))
        if known is None:
            return 404, {"detail": "Not found."}
        return self._part(method, kind, known, part, data) if part else self._one(kind, known, data)

    def _collection(self, method: str, kind: str, wanted: Mapping[str, str], data: Any) -> Response:
        if method == "GET":
            found = self.find(kind, wanted)
            return 200, {"count": len(found), "next": None, "previous": None, "results": found}
        self._check(kind, data)
        return 201, self.add(kind, data)

    def _one(self, kind: str, known: dict[str, Any], data: Any) -> Response:
        if data is not None:
            self._check(kind, {**known, **data})
            known.update(data)
        return 200, known

    def _part(
        self, method: str, kind: str, known: dict[str, Any], part: str, data: Any
    ) -> Response:
        number = int(known["id"])
        if part == "survey_spec" and kind == "job_templates":
            if method == "GET":
                return 200, self.surveys.get(number, {})
            _check_survey(data)
            self.surveys[number] = data
            return 200, {}
        if part == "create_approval_template" and kind == "workflow_job_template_nodes":
            made = self.add("workflow_approval_templates", data)
            known["unified_job_template"] = made["id"]
            known["related"]["unified_job_template"] = made["url"]
            return 201, made
        if part in _LINKS and kind != "workflow_approval_templates":
            return self._link(method, (kind, number, part), data)
        return 404, {"detail": "Not found."}

    def _link(self, method: str, place: tuple[str, int, str], data: Any) -> Response:
        linked = self.links.setdefault(place, [])
        if method == "GET":
            return 200, {"count": len(linked), "next": None, "results": [{"id": n} for n in linked]}
        if data.get("disassociate"):
            linked.remove(data["id"])
        else:
            linked.append(data["id"])
        return 204, None

    def _check(self, kind: str, data: Mapping[str, Any]) -> None:
        if kind == "credential_types":
            _check_credential_type(data["inputs"], data["injectors"])
        if kind == "job_templates":
            playbooks = {f"playbooks/{path.name}" for path in _PLAYBOOKS.glob("*.yml")}
            if data["playbook"] not in playbooks:
                raise Refused({"playbook": ["Playbook not found for project."]})


def _check_survey(survey: Mapping[str, Any]) -> None:
    if not (isinstance(survey.get("name"), str) and isinstance(survey.get("description"), str)):
        raise Refused({"error": "Field 'name' or 'description' is missing from survey spec."})
    variables = [question["variable"] for question in survey["spec"]]
    if len(variables) != len(set(variables)) or not variables:
        raise Refused({"error": "'variable' duplicated in survey question, or none there."})
    for question in survey["spec"]:
        limits = [question.get("min"), question.get("max")]
        choices = question.get("choices")
        if (
            question["type"] not in _KINDS
            or not isinstance(question["required"], bool)
            or not isinstance(question["question_name"], str)
            or any(limit is not None and not isinstance(limit, int) for limit in limits)
            or (question["type"] == "multiplechoice" and not choices)
        ):
            raise Refused({"error": f"survey question {question['variable']}"})


def _check_credential_type(inputs: Mapping[str, Any], injectors: Mapping[str, Any]) -> None:
    allowed = {"type", "format", "choices", "id", "label", "help_text", "multiline", "secret"}
    for one in inputs["fields"]:
        if set(one) - allowed - {"ask_at_runtime", "default"} or one["id"] == "tower":
            raise Refused({"inputs": [f"{one}"]})
        text_only = {"choices", "multiline", "format", "secret"} & set(one)
        if one["type"] == "boolean" and (text_only or not isinstance(one.get("default"), bool)):
            raise Refused({"inputs": [f"not allowed for a boolean: {one}"]})
    if set(inputs["required"]) - {one["id"] for one in inputs["fields"]}:
        raise Refused({"inputs": ["a required field is not there"]})
    try:
        inject(inputs, injectors, {one["id"]: "EXAMPLE" for one in inputs["fields"]}, strict=True)
    except Exception as error:
        raise Refused({"injectors": [str(error)]}) from error


def inject(
    inputs: Mapping[str, Any],
    injectors: Mapping[str, Any],
    values: Mapping[str, Any],
    *,
    strict: bool = False,
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the environment variables and files that a credential with these values injects into a
    job.

    A file is named after its template. A boolean without a value has its default.
    """
    defaults = {one["id"]: one["default"] for one in inputs["fields"] if "default" in one}
    names = {name: name.partition(".")[2] for name in injectors.get("file", {})}
    tower = {"filename": {part: f"/files/{part}" for part in names.values()}}
    space = {**defaults, **values, "tower": tower}
    undefined: dict[str, Any] = {"undefined": StrictUndefined} if strict else {}
    render = ImmutableSandboxedEnvironment(**undefined).from_string
    files = {
        tower["filename"][part]: render(injectors["file"][name]).render(space)
        for name, part in names.items()
    }
    return {name: render(text).render(space) for name, text in injectors["env"].items()}, files


class Controller:
    """The simulated AWX on a free port, with the default organization and inventory of AWX."""

    def __init__(self, path: str = AWX) -> None:
        self.store = Store(f"{path}v2/")
        for kind, name in (
            ("organizations", "Default"),
            ("organizations", "Delivery"),
            ("inventories", "Demo Inventory"),
            ("inventories", "Toolchain"),
            ("credentials", "staging repo"),
        ):
            self.store.add(kind, {"name": name})
        product = "AWX" if path == AWX else "Red Hat Ansible Automation Platform"
        handler = _handler(self.store.response, product)
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Controller:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(
    response: Callable[[str, str, Mapping[str, str], Any], Response], product: str
) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def _serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            data = json.loads(self.rfile.read(length)) if length else None
            address = urlsplit(self.path)
            if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                self._say(401, {"detail": "Authentication credentials were not provided."})
                return
            try:
                status, found = response(
                    self.command, address.path, dict(parse_qsl(address.query)), data
                )
            except Refused as refused:
                status, found = 400, refused.args[0]
            self._say(status, found)

        def _say(self, status: int, found: Any) -> None:
            body = b"" if found is None else json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("X-API-Product-Name", product)
            self.send_header("X-API-Product-Version", "24.6.1")
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PATCH = do_DELETE = _serve  # noqa: N815 - names of http.server

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name is inherited
            """Suppress the request log."""

    return Handler
