# SPDX-License-Identifier: GPL-3.0-or-later
"""Send the requests of a recording to the sandbox, and compare the responses of both."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode
from xml.etree import ElementTree

import requests
import yaml

from tests.acceptance.pseudonyms import Interface, interface_of, parsed
from tests.helpers import connections

_SUITES = Path(__file__).resolve().parents[1] / "acceptance"
_SAFE = "/$:,;=@!()*'+&"
_IDENTIFIERS = ("id", "key", "name", "uri", "number", "title")
_TYPES = {bool: "boolean", int: "number", float: "number", str: "string", type(None): "null"}
#: Maximum number of seconds between two requests.
_LONGEST_PAUSE = 5.0
Record = Mapping[str, Any]


def label(record: Record, interface: Interface) -> str:
    """Return the method and the path of a request, without the names of objects."""
    path = record["path"].partition("?")[0]
    segments = path.split("/")[1:] if path.startswith("/") else []
    defined = zip(segments, interface.defines(segments), strict=True)
    action = re.match(r"(?:.*&)?action=(\w+)", record.get("body", {}).get("form", ""))
    made = "".join(f"/{segment if kept else '{}'}" for segment, kept in defined) or "another host"
    return f"{record['method']} {made}{f' {action[1]}' if action else ''}"


def members(record: Record, interface: Interface) -> dict[str, set[str]]:
    """Return the types of each member of a response."""
    found: dict[str, set[str]] = {}

    def visit(value: Any, place: str) -> None:
        if isinstance(value, ElementTree.Element):
            kind, inside = "element", [(each.tag, each) for each in value]
        elif isinstance(value, dict):
            kind, inside = "object", list(value.items())
        elif isinstance(value, list):
            kind, inside = "list", [("[]", each) for each in value]
        else:
            kind, inside = _TYPES[type(value)], []
        found.setdefault(place, set()).add(kind)
        for name, each in inside:
            known = name if name == "[]" or name in interface.names else "*"
            visit(each, f"{place}{known if known == '[]' or not place else f'.{known}'}")

    ((form, value),) = record.get("response", {"nothing": None}).items()
    if form == "text" and str(value).lstrip().startswith("<"):
        with suppress(ElementTree.ParseError):
            form, value = "xml", ElementTree.fromstring(re.sub(r"^<\?.*?\?>", "", value))
    if form in ("json", "lines", "xml"):
        visit(value, "")
        found[""] = {f"{form} {kind}" for kind in found.get("", ())}
    else:
        found[""] = {form}
    return found


def rendered(body: Mapping[str, Any]) -> bytes:
    """Return the bytes of a recorded body."""
    ((form, value),) = body.items()
    if form == "bytes":
        return bytes(value)
    if form == "json":
        return json.dumps(value).encode()
    if form == "lines":
        return "".join(f"{json.dumps(each)}\n" for each in value).encode()
    return str(value).encode()


class Comparison:
    """Sends the requests of a recording to the sandbox, in their order, and compares.

    `differences`: pairs of a request and a difference, in order.
    """

    def __init__(self, recording: Sequence[Record], urls: Mapping[str, str]) -> None:
        head = recording[0]
        self._service = head["service"]
        self._url, self._login = urls[self._service], connections.LOGINS[self._service]
        suite = yaml.safe_load((_SUITES / f"{head['suite']}.yml").read_text("utf-8"))
        #: Values of the recording, and those of the sandbox for the same.
        mine = {**suite["sandbox"], "account": self._login.get("username", "")}
        self._known = {text: mine[name] for name, text in head["values"].items()}
        self._interface = interface_of(self._service)
        self._session = requests.Session()
        self._session.trust_env = False
        self.differences: dict[tuple[str, str], None] = {}
        before = None
        for record in recording:
            if record.get("path", "").startswith("/"):
                # a module that waits for the server asks it again and again
                time.sleep(0 if before is None else min(record["begun"] - before, _LONGEST_PAUSE))
                self._compare(record)
            before = record.get("begun")

    def _compare(self, record: Record) -> None:
        """Send a request with the objects of the sandbox, and compare the responses."""
        method, (path, mark, query) = record["method"], record["path"].partition("?")
        target = f"{quote(self._swapped(unquote(path)), safe=_SAFE)}{mark}{self._form(query)}"
        headers = dict(record["headers"])
        body = self._swapped(record.get("body", {"bytes": 0}))
        files = [
            (part["name"], (part["file"] or None, rendered(_content(part))))
            for part in body.get("parts", ())
        ]
        data = b"" if files else rendered(body)
        for name in ("content-length", *(["content-type"] if files else [])):
            headers.pop(name, None)
        if "form" in body:
            login = {"user": self._login.get("username"), "ltoken": self._login.get("ltoken")}
            data = self._form(body["form"], login if self._service == "analysis" else {}).encode()
        if "token" in self._login:
            headers["authorization"] = f"Bearer {self._login['token']}"
        user = (self._login.get("username", ""), self._login.get("password", ""))
        request = requests.Request(
            method, self._url + target, headers, files, data, auth=user if user[1] else None
        )
        response = self._session.send(request.prepare(), allow_redirects=False, timeout=60)
        mine: dict[str, Any] = {
            "status": response.status_code,
            "response_headers": {k.lower(): v for k, v in response.headers.items()},
        }
        if response.content:
            mine["response"] = parsed(response.content, "")
        which = label(record, self._interface)
        self.differences |= {(which, each): None for each in self._found(record, mine)}
        if record["status"] != mine["status"]:
            return
        self._learn(record.get("response"), mine.get("response"))
        # from the end, because the context paths may differ
        locations = (each["response_headers"].get("location", "") for each in (record, mine))
        self._learn(*(location.split("/")[::-1] for location in locations))

    def _found(self, record: Record, mine: Record) -> Iterator[str]:
        if record["status"] != mine["status"]:
            yield f"status {record['status']}, of the sandbox {mine['status']}"
            return
        known = self._interface.headers - {"content-length", "date"}
        lower = mine["response_headers"].keys() & known
        for name in sorted(lower ^ (record["response_headers"].keys() & known)):
            yield f"header {name}, {'only' if name in lower else 'not'} of the sandbox"
        theirs, own = (members(each, self._interface) for each in (record, mine))
        for place in sorted({*theirs, *own}):
            here, there = (", ".join(sorted(each.get(place, ()))) for each in (theirs, own))
            parent = place.rpartition(".")[0]
            if here != there and not place:
                yield f"body: {here}, of the sandbox {there}"
            # empty lists, null and names of objects depend on the data
            depends = "*" in place or (place.endswith("[]") and "" in (here, there))
            comparable = theirs.get(parent, set()) & own.get(parent, set()) - {"null"}
            if (
                place
                and comparable
                and not depends
                and here != there
                and "null" not in (here, there)
            ):
                yield f"`{place}`: {here or 'missing'}, of the sandbox {there or 'missing'}"
        yield from self._orders(record.get("response"), mine.get("response"), "")

    def _swapped(self, value: Any) -> Any:
        """Return a value with the objects of the sandbox instead of those of the recording."""
        if isinstance(value, dict):
            return {name: self._swapped(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self._swapped(each) for each in value]
        if isinstance(value, str) and self._known:
            texts = "|".join(map(re.escape, sorted(self._known, key=len, reverse=True)))
            return re.sub(
                rf"(?<![^\W_])(?:{texts})(?![^\W_])", lambda hit: self._known[hit[0]], value
            )
        swapped = self._known.get(str(value), "")
        return int(swapped) if isinstance(value, int) and swapped.isdigit() else value

    def _form(self, text: str, login: Mapping[str, Any] | None = None) -> str:
        pairs = parse_qsl(text, keep_blank_values=True)
        swapped = {name: self._swapped(value) for name, value in pairs}
        return urlencode({**swapped, **(login or {})})

    def _learn(self, theirs: Any, mine: Any) -> None:
        """Note which values of the sandbox are in the places of those of the recording."""
        if isinstance(theirs, dict) and isinstance(mine, dict):
            for name in theirs.keys() & mine.keys():
                self._learn(theirs[name], mine[name])
        elif isinstance(theirs, list) and isinstance(mine, list):
            named = {_identifier(each): each for each in mine}
            for number, each in enumerate(theirs):
                same = named.get(self._known.get(_identifier(each), _identifier(each)))
                self._learn(each, mine[number] if same is None and number < len(mine) else same)
        elif isinstance(theirs, str | int) and isinstance(mine, str | int):
            text = str(theirs)
            if text != str(mine) and re.fullmatch(r"\S{3,}", text) and not isinstance(theirs, bool):
                self._known[text] = str(mine)

    def _orders(self, theirs: Any, mine: Any, place: str) -> Iterator[str]:
        """Yield the lists whose common objects have another order."""
        if isinstance(theirs, dict) and isinstance(mine, dict):
            for name in sorted(theirs.keys() & mine.keys()):
                yield from self._orders(theirs[name], mine[name], f"{place}.{name}")
        elif isinstance(theirs, list) and isinstance(mine, list):
            names = [
                [self._known.get(_identifier(each), _identifier(each)) for each in theirs],
                [_identifier(each) for each in mine],
            ]
            common = set(names[0]) & set(names[1]) - {""}
            first, second = ([one for one in each if one in common] for each in names)
            if first != second:
                yield f"`{place.partition('.')[2].partition('.')[2]}[]`: another order"


def _content(part: Record) -> Record:
    """Return the body of a part of a multipart form."""
    return {form: value for form, value in part.items() if form not in ("name", "file")}


def _identifier(value: Any) -> str:
    """Return what names an object in a list."""
    found = value if isinstance(value, dict) else {"id": value}
    return next((str(found[name]) for name in _IDENTIFIERS if name in found), "")
