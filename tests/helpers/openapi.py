# SPDX-License-Identifier: GPL-3.0-or-later
"""Judge exchanges with the tracker and the wiki by OpenAPI documents.

The documents are those of `tests/strangers/openapi`, which describe only what the modules use, or
those of the vendor: docs/interfaces/documents.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import jsonschema
from ansible.module_utils.common.yaml import yaml_load
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

FOLDER = Path(__file__).resolve().parents[1] / "strangers" / "openapi"
_ROOT = "urn:document"
#: Editions of the servers: pattern of the title of a document, and the prefix of its paths.
EDITIONS: dict[str, Sequence[tuple[str, str]]] = {
    "tracker-dc": [(r"Jira .*Data Center", "/rest")],
    "tracker-cloud": [(r"Jira Cloud", "")],
    "wiki-dc": [(r"Confluence Data Center", "")],
    "wiki-cloud": [
        (r"Confluence Cloud.* v2\b", "/wiki/api/v2"),
        (r"Confluence Cloud(?!.* v2\b)", ""),
    ],
}
#: Members of a schema that limit nothing.
_NOTES = frozenset(
    (
        "default",
        "deprecated",
        "description",
        "discriminator",
        "example",
        "examples",
        # booleans in OpenAPI 3.0, numbers in JSON schema
        "exclusiveMaximum",
        "exclusiveMinimum",
        "externalDocs",
        "format",
        "nullable",
        "readOnly",
        "title",
        "writeOnly",
        "xml",
    )
)
_PARTS = ("allOf", "anyOf", "oneOf")
#: Maximum number of characters of a message about a value.
_LONGEST = 240

Exchange = Mapping[str, Any]


class Document:
    """An OpenAPI document.

    :param prefix: prefix of its paths on a server
    """

    def __init__(self, data: dict[str, Any], prefix: str) -> None:
        self.data, self.prefix = data, prefix
        self.title, self.version = (str(data["info"][name]) for name in ("title", "version"))
        components = data.get("components", {}).get("schemas", {})
        self._registries = {
            side: Registry().with_resource(
                _ROOT,
                Resource.from_contents(
                    {
                        "components": {
                            "schemas": {
                                name: self._converted(schema, side, part=True)
                                for name, schema in components.items()
                            }
                        }
                    },
                    default_specification=DRAFT202012,
                ),
            )
            for side in ("readOnly", "writeOnly")
        }
        self._paths = [
            (re.compile(re.sub(r"\\\{.*?\\\}", "[^/]+", re.escape(path))), path)
            for path in sorted(data["paths"], key=lambda path: path.count("{"))
        ]

    def operation(self, method: str, path: str) -> Operation | None:
        """Return the operation of a request, or `None` if the document lacks it."""
        if not path.startswith(self.prefix):
            return None
        for pattern, template in self._paths:
            item = self.data["paths"][template]
            if pattern.fullmatch(path.removeprefix(self.prefix)) and method.lower() in item:
                return Operation(self, f"{method} {template}", item, item[method.lower()])
        return None

    def resolved(self, node: Any) -> Any:
        """Follow the references of a node."""
        while isinstance(node, dict) and "$ref" in node:
            found: Any = self.data
            for part in node["$ref"].removeprefix("#/").split("/"):
                found = found[part.replace("~1", "/").replace("~0", "~")]
            node = found
        return node

    def errors(self, value: Any, schema: Any, side: str) -> Iterator[str]:
        """Yield the errors of a value.

        :param side: the mark of members that this side need not have: `readOnly` in a request
        """
        validator = jsonschema.Draft202012Validator(
            self._converted(schema, side), registry=self._registries[side]
        )
        for error in validator.iter_errors(value):
            place = re.sub(r"\[\d+\]", "[]", error.json_path)
            yield from (f"{place}: {message}" for message in _messages(error))

    def _converted(self, schema: Any, side: str, *, part: bool = False) -> Any:
        """Return a schema as JSON schema, in which objects have only the declared members.

        :param part: a part of an object, which does not know the members of the other parts
        """
        if not isinstance(schema, dict):
            return schema
        made = {name: value for name, value in schema.items() if name not in _NOTES}
        if "$ref" in made:
            made["$ref"] = _ROOT + made["$ref"]
        for name in ("items", "additionalProperties"):
            if name in made:
                made[name] = self._converted(made[name], side)
        made |= self._members(made, side)
        for name in _PARTS:
            if name in made:
                made[name] = [self._converted(each, side, part=True) for each in made[name]]
        if "oneOf" in made:  # open objects match several alternatives
            made["anyOf"] = [*made.get("anyOf", []), *made.pop("oneOf")]
        if not part and self._is_record(schema):
            made["unevaluatedProperties"] = False
        return {"anyOf": [made, {"type": "null"}]} if schema.get("nullable") else made

    def _members(self, schema: Mapping[str, Any], side: str) -> dict[str, Any]:
        """Return the converted members of an object, and those that it requires."""
        properties = schema.get("properties")
        if not properties:
            return {}
        required = [
            name
            for name in schema.get("required", [])
            if not self.resolved(properties.get(name, {})).get(side)
        ]
        converted = {name: self._converted(value, side) for name, value in properties.items()}
        return {"properties": converted, "required": required}

    def _is_record(self, schema: Any, depth: int = 0) -> bool:
        """Return whether a schema declares its members, and allows no others."""
        schema = self.resolved(schema)
        if not isinstance(schema, dict) or depth > 9 or schema.get("additionalProperties"):
            return False
        parts = [each for name in _PARTS for each in schema.get(name, [])]
        if parts:
            known = [self._is_record(each, depth + 1) for each in parts]
            return all(known) or ("properties" in schema and any(known))
        return bool(schema.get("properties"))


def _messages(error: jsonschema.ValidationError) -> list[str]:
    """Return the messages of an error without the value, which differs between exchanges."""
    if error.validator == "type":
        return [f"is not of type {error.validator_value!r}"]
    if error.validator == "unevaluatedProperties":
        return [f"the member {name} is unknown" for name in re.findall("'(.*?)'", error.message)]
    return [error.message[:_LONGEST]]


@dataclass(frozen=True)
class Operation:
    """An operation of a document, and the path that it belongs to."""

    document: Document
    name: str
    item: Mapping[str, Any]
    data: Mapping[str, Any]

    def departures(self, exchange: Exchange) -> Iterator[str]:
        """Yield the differences between an exchange and the document."""
        if self.data.get("deprecated"):
            yield "the operation is deprecated"
        yield from self._query(exchange)
        yield from self._body(exchange)
        yield from self._response(exchange)

    def _query(self, exchange: Exchange) -> Iterator[str]:
        known = {
            parameter["name"]: parameter
            for parameter in map(
                self.document.resolved,
                [*self.item.get("parameters", []), *self.data.get("parameters", [])],
            )
            if parameter["in"] == "query"
        }
        sent = dict(parse_qsl(exchange["query"], keep_blank_values=True))
        yield from (f"the parameter {name} is unknown" for name in sent if name not in known)
        for name, parameter in known.items():
            schema = self.document.resolved(parameter.get("schema", {}))
            if parameter.get("required") and name not in sent:
                yield f"the parameter {name} is missing"
            elif name in sent and not _is_valid(sent[name], schema):
                yield f"the parameter {name} has the value {sent[name]!r}"

    def _body(self, exchange: Exchange) -> Iterator[str]:
        declared = self.document.resolved(self.data.get("requestBody", {}))
        content = declared.get("content", {})
        kind = exchange["headers"].get("content-type", "").partition(";")[0]
        if not exchange["body_bytes"]:
            if declared.get("required"):
                yield "the body is missing"
        elif kind not in content and "*/*" not in content:
            yield f"a body of the type {kind} is not declared"
        elif "json" in kind and exchange["body"] is not None:
            schema = content.get(kind, content.get("*/*", {})).get("schema", {})
            for error in self.document.errors(json.loads(exchange["body"]), schema, "readOnly"):
                yield f"request {error}"

    def _response(self, exchange: Exchange) -> Iterator[str]:
        responses = self.data.get("responses", {})
        status = exchange["served"]
        if status is None or status >= 400 or not responses:
            return
        declared = self.document.resolved(responses.get(str(status), responses.get("default")))
        if declared is None:
            yield f"response status {status} is not declared"
            return
        content = declared.get("content", {})
        if status < 300 and exchange["response"] and content:
            schema = next(iter(content.values())).get("schema", {})
            value = json.loads(exchange["response"])
            for error in self.document.errors(value, schema, "writeOnly"):
                yield f"response {error}"


def _is_valid(text: str, schema: Mapping[str, Any]) -> bool:
    kind, values = schema.get("type"), schema.get("enum")
    if kind in ("integer", "number"):
        return re.fullmatch(r"-?\d+", text) is not None
    if kind == "boolean":
        return text in ("true", "false")
    return values is None or text in values


@dataclass(frozen=True)
class Documents:
    """The documents of a folder, and the departures from them that are known.

    :param known: pattern of a departure, and the reason for it
    :param are_own: whether they are those of this repository, which have no such departures
    """

    editions: Mapping[str, Sequence[Document]]
    known: Mapping[str, str]
    are_own: bool

    def departures(self, edition: str, exchanges: Iterable[Exchange]) -> list[str]:
        """Return the differences between exchanges and the documents, except known ones."""
        found = {
            line
            for exchange in exchanges
            # files have the addresses that the server returns, not addresses of the interface
            if exchange["path"].startswith(("/rest/", "/api/"))
            for line in self._lines(edition, exchange)
        }
        return sorted(
            line for line in found if not any(re.search(known, line) for known in self.known)
        )

    def _lines(self, edition: str, exchange: Exchange) -> Iterator[str]:
        path = exchange["path"]
        if edition == "wiki-cloud":
            path = f"/wiki{path}"
        elif edition.startswith("tracker"):
            version = "3" if edition == "tracker-cloud" else "2"
            path = re.sub(r"^/rest/api/(latest|2)/", f"/rest/api/{version}/", path)
        named = (each.operation(exchange["method"], path) for each in self.editions[edition])
        found = [
            [f"{edition} {each.name}: {departure}" for departure in each.departures(exchange)]
            for each in named
            if each is not None
        ]
        missing = f"{edition} {exchange['method']} {path}: the documents have no such operation"
        # of several documents with an operation, the one of the interface that was used
        yield from min(found, key=len, default=[missing])


@cache
def load(folder: Path) -> Documents:
    """Return the documents of a folder, by edition."""
    data = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    editions = {
        edition: [
            Document(each, prefix)
            for title, prefix in titles
            for each in data
            if re.search(title, each.get("info", {}).get("title", ""))
        ]
        for edition, titles in EDITIONS.items()
    }
    known = yaml_load((FOLDER / "known.yml").read_text(encoding="utf-8"))
    are_own = folder == FOLDER
    return Documents(editions, {} if are_own else known, are_own)


def is_about_sandbox(departure: str) -> bool:
    """Return whether a departure is one of a response, not of a request."""
    return ": response " in departure


def edition_of(case: Mapping[str, Any]) -> str | None:
    """Return the edition of the server that a contract case talks to, or `None`."""
    kind = "cloud" if case.get("settings", {}).get("deployment") == "Cloud" else "dc"
    edition = f"{case.get('service')}-{kind}"
    return edition if edition in EDITIONS else None
