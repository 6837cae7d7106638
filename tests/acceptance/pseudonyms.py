# SPDX-License-Identifier: GPL-3.0-or-later
"""Replace everything private in exchanges with a server by pseudonyms of the same shape.

Every word, number and date is replaced, unless `tests/strangers/interfaces.yml` or a route of the sandbox
defines it as a part of the interface, or it is a value of the acceptance suite. Pseudonyms have no
vowels.
"""

from __future__ import annotations

import ast
import hashlib
import html
import importlib
import json
import random
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date, timedelta
from email import message_from_bytes
from email.utils import collapse_rfc2231_value, format_datetime, parsedate_to_datetime
from functools import cache
from math import isfinite
from typing import Any
from urllib.parse import parse_qsl, quote, unquote, urlencode

import yaml

from sandbox.context import Context
from sandbox.store import Store
from tools.tree import ROOT

#: In a recording: the address of the server, and the text in the place of a secret.
SERVER, LEFT_OUT = "https://server.invalid", "left-out"
_SECRET = re.compile(
    r"(?i)pass(word|phrase|wd)|secret|token(value)?$|auth|cookie|crumb$|credential"
    r"|signature|session|(private|api|access)_?key|^(sig|hash)$"
)
_DATE = r"(?<!\d)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?=\D|$)"
_TIME = r"(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?(?![^\W_]))?"
_MARKUP = re.compile(
    r"(?s)(?P<head><!DOCTYPE html>|<\?xml version=.1\.[01].(?: encoding=.UTF-8.)? ?\?>)"
    r"|<!\[CDATA\[(?P<cdata>.*?)\]\]>|<(?P<end>/?)(?P<tag>[^\s<>/!?]+)(?P<more>[^<>]*)>"
    r"|(?P<text><?[^<]*)"
)
_ATTRIBUTE = re.compile(r"""(?s)([^\s=<>"']+)\s*=\s*(["'])(.*?)\2|(\s+|[^\s=]+|=)""")
_DIGEST = re.compile(r"(?i)[0-9a-f]{8,}")
_VERSION = re.compile(r"(?:([A-Za-z]+)[/(])?\d{1,4}(?:\.\d{1,4}){0,2}\)?(?: \d{5,9})?")
_KINDS = {
    "dates": re.compile(_DATE),
    "digests and ids": re.compile(r"(?i)(sha\d+:)?[0-9a-f-]{32,}$"),
    "addresses": re.compile(r"https?://|[\w-]+(\.[\w-]+){2,}(:\d+)?$"),
    "e-mails": re.compile(r"[^\s@]+@[^\s@]+$"),
    "numbers": re.compile(r"-?[\d.]+$"),
    "keys": re.compile(r"[A-Z][A-Z0-9_]+(-\d+)?$"),
    "names": re.compile(r"\S+$"),
    "texts": re.compile(r""),
}


class Interface:
    """The parts that the interface of a service defines.

    :param service: name of the service
    """

    def __init__(self, service: str) -> None:
        data = yaml.safe_load((ROOT / "tests" / "strangers" / "interfaces.yml").read_text("utf-8"))

        def listed(key: str) -> frozenset[str]:
            return frozenset({*data["all"].get(key, ()), *data[service].get(key, ())})

        self.values, self.counts, self.versions = map(listed, ("values", "counts", "versions"))
        self.queries, self.headers, self.segments = map(listed, ("queries", "headers", "segments"))
        self.names = listed("words") | frozenset(_names(service))
        played = importlib.import_module(f"sandbox.{service}").SERVICE(Context(Store(None)))
        paths = {re.sub(r"{\w+:path}", "{*}", route.path) for route in played.routes()}
        paths |= listed("paths")
        self._paths = [path.split("/")[1:] for path in sorted(paths)]
        self._has_jobs = service == "ci"

    def defines(self, segments: Sequence[str]) -> list[bool]:
        """Return, for each segment of a path, whether the interface defines it."""
        best = [False] * len(segments)
        for start in range(len(segments)):
            before = [False] * start
            while self._has_jobs and segments[len(before) : -1][:1] == ["job"]:
                before += [True, False]
            for path in self._paths:
                found = [*before, *(_fit(path, segments[len(before) :]) or ())]
                # the context path of a server may be unknown
                if len(found) == len(segments) and sum(found) > max(sum(best), int(start > 0)):
                    best = found
        return best


#: Returns the interface of a service.
interface_of = cache(Interface)


def _fit(path: Sequence[str], segments: Sequence[str]) -> list[bool] | None:
    """Return which segments are those of a path of the interface; None if it is another path."""
    if "{*}" in path:
        place, more = path.index("{*}"), len(segments) - len(path) + 1
        path = [*path[:place], *["{}"] * more, *path[place + 1 :]]
    if len(path) != len(segments):
        return None
    pairs = list(zip(path, segments, strict=True))
    if any(one != segment and not one.startswith("{") for one, segment in pairs):
        return None
    return [not one.startswith("{") for one, _segment in pairs]


def _names(service: str) -> Iterator[str]:
    """Yield the strings in the code of a service, and the words in those that are no sentences."""
    own = {"tracker": ["atlassian"], "wiki": ["atlassian"]}.get(service, [])
    library = ROOT / "plugins" / "module_utils" / "_lib"
    for folder in (ROOT / "sandbox" / service, *(library / name for name in (service, *own))):
        for file in folder.rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text("utf-8"))):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    yield node.value
                    if not re.search(r"\s", node.value):
                        yield from re.findall(r"\w+", node.value)
                    yield from re.findall(r"(?<=<)[\w.:-]+|[\w.:-]+(?==[\"'])", node.value)


class Pseudonyms:
    """The pseudonyms of a recording.

    :param interface: interface of the service
    :param url: address of the server
    :param own: strings of the acceptance suite, which are kept if they are a whole value
    :param prefix: beginning of the names of the suite, which is kept everywhere
    :param private: names that are replaced in expressions, too
    """

    def __init__(
        self,
        interface: Interface,
        *,
        url: str,
        own: Collection[str] = (),
        prefix: str,
        private: Collection[str] = (),
    ) -> None:
        self.interface, self._url, self._prefix = interface, url.rstrip("/"), prefix
        self._random = random.SystemRandom()
        self._days = -self._random.randint(500, 3000)
        self._made: dict[str, str] = {}
        self._taken: set[str] = set()
        #: The values that were replaced, by kind, and the numbers of those that were left out.
        self.replaced: dict[str, set[str]] = {kind: set() for kind in _KINDS}
        self.left_out: Counter[str] = Counter()
        self._own = {*own, "true", "false"}
        for kind in ("md5", "sha1", "sha256"):
            self._own |= {hashlib.new(kind, one.encode()).hexdigest() for one in own}
        self._names = self.interface.names | self._own
        self._private = {word for each in private for word in re.findall(r"\w+|\S+", each)}
        self._parts = re.compile(rf"{re.escape(prefix)}|{_DATE}{_TIME}|[^\W_]+|[^\x00-\x7f]")

    # strings

    def text(self, text: str) -> str:
        """Replace each word of a text."""
        if text in self._own or (text.isdigit() and len(text) < 3):
            return text
        made = self._parts.sub(lambda found: self._part(found[0]), text)
        if made != text:
            kind = next(kind for kind, pattern in _KINDS.items() if pattern.match(text))
            self.replaced[kind].add(text)
        return made

    def _expression(self, text: str) -> str:
        """Replace the words of an expression that are no names of the interface, nor in such."""

        def part(found: re.Match[str]) -> str:
            known = found[0] in self._names - self._private
            return found[0] if found[1] or known else self.text(found[0])

        return re.sub(r"(\{\d{0,3},\d{0,3}\})|\w+(?:-\w+)*|[^\x00-\x7f]", part, text)

    def _part(self, part: str) -> str:
        if part in (self._prefix, "md5", "sha1", "sha256"):
            return part
        if re.match(_DATE, part):
            moved = "2000-01-01"
            with suppress(ValueError, OverflowError):
                moved = str(date.fromisoformat(part[:10]) + timedelta(days=self._days))
            return moved + part[10:]
        if not part.isalnum():
            return "\u2022"
        key = part.lower() if part.isascii() else part
        if key not in self._made:
            self._made[key] = self._pseudonym(key)
        made = self._made[key]
        return "".join(
            new.upper() if old.isupper() and old.isascii() else new
            for old, new in zip(part, made, strict=True)
        )

    def _pseudonym(self, word: str) -> str:
        """Return an unused word of the same shape."""
        letters = "bcdf" if _DIGEST.fullmatch(word) else "bcdfghjklmnpqrstvwxz"
        digits = "0123456789"
        pools = [
            (letters if one.isalpha() else digits) if one.isascii() else "\u00f8" for one in word
        ]
        if word[0] in digits[1:]:  # a number stays one of this length
            pools[0] = digits[1:]
        for _attempt in range(200):
            made = "".join(map(self._random.choice, pools))
            if made not in self._taken and made != word:
                break
        self._taken.add(made)
        return made

    # values and their places

    def value(self, value: Any, name: str = "") -> Any:
        """Replace a value in JSON. `name` is the member that it belongs to."""
        if isinstance(value, Mapping):
            known = self.interface.values | self.interface.versions
            made = {}
            for key, each in value.items():
                place = f"{name}.{key}"
                made[self.name(key)] = self.value(each, place if place in known else key)
            return made
        if isinstance(value, list | tuple):
            return [self.value(each, name) for each in value]
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return self.string(value, name)
        if self._is_secret(name):
            return 0
        if isinstance(value, float):
            return float(self.text(f"{abs(value):f}")) if isfinite(value) else 0.0
        if abs(value) < 100 or name in self.interface.counts:
            return value
        if 10**12 <= value < 4 * 10**12:
            self.replaced["dates"].add(str(value))
            return value + self._days * 86_400_000
        return int(self.text(str(abs(value)))) * (1 if value > 0 else -1)

    def name(self, name: str) -> str:
        """Replace the name of a member, parameter or element that the interface does not define."""
        return name if name in self._names else self.text(name)

    def _is_secret(self, name: str) -> bool:
        found = _SECRET.search(name) is not None
        self.left_out[name if name in self.interface.names else "others"] += found
        return found

    def string(self, text: str, name: str = "") -> str:
        """Replace a string. `name` is the member, header or element that it belongs to."""
        if self._is_kept(text, name):
            return text
        if self._is_secret(name):
            return LEFT_OUT
        if name == "header.link":
            target = re.search("<(.*?)>", text)
            return f'<{self.string(target[1] if target else "")}>; rel="next"'
        if name in self.interface.queries:
            return self._expression(text)
        if name in ("header.date", "header.last-modified"):
            with suppress(ValueError):
                moved = parsedate_to_datetime(text) + timedelta(self._days)
                return format_datetime(moved, usegmt=True)
        if re.match(r"https?://\S+$", text):
            return self._url_of(text)
        if re.match(r"/\S*$", text):
            return self.path(text)
        with suppress(ValueError):
            if text[:1] in ("{", "["):
                return json.dumps(self.value(json.loads(text), name))
        return self.markup(text) if "<" in text and ">" in text else self.text(text)

    def _is_kept(self, text: str, name: str) -> bool:
        """Return whether the interface defines the value of a member."""
        interface = self.interface
        if name in interface.versions and (version := _VERSION.fullmatch(text)):
            return version[1] is None or version[1] in interface.names
        is_name = name in interface.values and text in interface.names
        return is_name or (name in interface.counts and text.isdigit())

    def _url_of(self, text: str) -> str:
        rest = text.removeprefix(self._url)
        if rest != text and rest[:1] in ("", "/", "?"):
            return SERVER + (self.path(rest) if rest.startswith("/") else self.text(rest))
        scheme, _mark, more = text.partition("://")
        host, slash, path = more.partition("/")
        user, at, host = host.rpartition("@")
        self.left_out["logins in addresses"] += bool(at and user)
        return f"{scheme}://{self.text(host)}{self.path(slash + path) if slash else ''}"

    def path(self, text: str) -> str:
        """Replace the segments of a path, and its query, that the interface does not define."""
        path, mark, query = text.partition("?")
        segments = path.split("/")[1:]
        pairs = zip(segments, self.interface.defines(segments), strict=True)
        made = "".join(f"/{one if kept else self._segment(one)}" for one, kept in pairs)
        return f"{made}{mark}{self.query(query)}"

    def _segment(self, segment: str) -> str:
        inner = unquote(segment)
        if inner in self.interface.segments:
            return segment
        twice = "%" in inner and inner != segment
        return quote(self._segment(inner) if twice else self.text(inner), safe="$:,;=@!()*'+&")

    def query(self, query: str) -> str:
        """Replace the values of a query or a form."""
        pairs = parse_qsl(query, keep_blank_values=True)
        return urlencode([(self.name(name), self.string(value, name)) for name, value in pairs])

    def markup(self, text: str) -> str:
        """Replace the content of XML or HTML, and the names that the interface does not define."""
        made, element = "", ""
        for found in _MARKUP.finditer(text):
            if found["tag"]:
                element = "" if found["end"] else found["tag"]
                more = _ATTRIBUTE.sub(self._attribute, found["more"])
                made += f"<{found['end']}{self.name(found['tag'])}{more}>"
            elif found["cdata"] is not None:
                made += f"<![CDATA[{self.text(found['cdata'])}]]>"
            elif found["head"] or not found[0].strip():
                made += found[0]
            elif found[0].startswith("<"):
                made += self.text(found[0])
            else:
                made += html.escape(self.string(html.unescape(found[0]), element), quote=False)
        return made

    def _attribute(self, found: re.Match[str]) -> str:
        if found[4]:
            return self.text(found[4])
        value = self.string(html.unescape(found[3]), found[1])
        return f"{self.name(found[1])}={found[2]}{html.escape(value)}{found[2]}"

    def headers(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the headers that matter, with their values replaced."""
        lower = {name.lower(): value for name, value in headers.items()}
        kept = {name: value for name, value in lower.items() if name in self.interface.headers}
        self.left_out["headers"] += len(lower) - len(kept)
        return {name: self.string(value, f"header.{name}") for name, value in kept.items()}

    def body(self, data: bytes, kind: str, path: str) -> dict[str, Any]:
        """Replace a body. The only key of the result names its form.

        :param kind: media type
        """
        ((form, found),) = parsed(data, kind).items()
        if form == "parts":
            return {form: [self._form_part(part) for part in found]}
        if form == "text" and path in self.interface.queries:
            return {form: self._expression(found)}
        if form == "form":
            return {form: self.query(found)}
        return {form: found if form == "bytes" else self.value(found, path.rpartition("/")[2])}

    def _form_part(self, part: Any) -> dict[str, Any]:
        name = collapse_rfc2231_value(part.get_param("name", "", "content-disposition"))
        content = self.body(part.get_payload(decode=True), part.get_content_type(), "")
        if self._is_secret(name):
            content = {"text": LEFT_OUT}
        return {"name": self.name(name), "file": self.text(part.get_filename("")), **content}


def parsed(data: bytes, kind: str) -> dict[str, Any]:
    """Return a body under the name of its form: bytes, form, parts, json, lines or text."""
    if "multipart/" in kind:
        whole = message_from_bytes(f"Content-Type: {kind}\r\n\r\n".encode() + data)
        if whole.is_multipart():
            return {"parts": [part for part in whole.walk() if not part.is_multipart()]}
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return {"bytes": len(data)}
    if "x-www-form-urlencoded" in kind:
        return {"form": text}
    with suppress(ValueError):
        return {"json": json.loads(text)}
    with suppress(ValueError):
        return {"lines": [json.loads(line) for line in text.splitlines() if line.strip()]}
    return {"text": text}
