# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep encrypted secrets, and passwords in addresses, out of exported job configurations.

An exported configuration contains the placeholder `(kept by the server)` instead of them. Before
the configuration is saved, the current secret of the job replaces the placeholder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass

from ...core.secret import is_secret_name
from ..xml_reader import (
    KEPT,
    UnreadableXml,
    XmlElement,
    child_of,
    parse,
    put,
    text_of,
    written,
    written_in_lines,
)
from .configuration import (
    SOURCE_ID,
    XmlValue,
    attribute_of,
    class_of,
    drift,
    is_list,
    short_root,
    text_value,
    values_of,
)

_SOURCE, _ID = SOURCE_ID
_BRANCH_SOURCE = "jenkins.branch.BranchSource"
#: Members with the address of a branch source, of different classes.
_PLACE = ("remote", "serverUrl", "apiUri", "repoOwner", "repository", "projectPath", "remoteBase")
#: Members and attributes that tell an object from others of its kind.
_IDENTITY = ("name", "id", "key", "var")
#: Members that say for which server and account a secret is valid.
_ACCOUNT = (*_PLACE, "url", "host", "hostname", "server", "user", "username", "userName")
#: Secrets in a longer text: encrypted values [ci-15] and passwords in URLs, except variables.
_EMBEDDED_SECRET = re.compile(
    r"(?P<before>://[^\s/@:\"'<>]*:)(?P<password>[^\s/@$\"'{}<>]+)(?=@)"
    r"|(?P<sealed>\{AQAA[A-Za-z0-9+/]{8,}={0,2}\})"
)
#: The part of an address that follows its password.
_HOST = re.compile(r"@[^\s/\"'<>]*")
_KEPT_URL = re.compile(
    rf"(?P<before>://[^\s/@:\"'<>]*:){re.escape(KEPT)}(?=(?P<host>{_HOST.pattern}))"
)


def without_secrets(text: str) -> tuple[str, int]:
    """Return a configuration with placeholders for its secrets, and the number of secrets."""
    root, count = parse(text), 0
    for element, parent in root.iterate():
        element.text, found = _without_secrets(element.text, text_value(element, parent))
        count += found
        for name, value in element.attributes.items():
            element.attributes[name], found = _without_secrets(value, attribute_of(element, name))
            count += found
    return (written_in_lines(root), count) if count else (text, 0)


def with_secrets(live: str, text: str) -> tuple[str, list[str]]:
    """Replace the placeholders in a configuration by the server's secrets.

    Returns the configuration, and the names of elements for which the server has no secret.

    :param live: XML of the server
    :param text: XML of the task
    """
    if KEPT not in text:
        return text, []
    server, wanted = parse(live), parse(text)
    if short_root(server.name) == short_root(wanted.name):
        _FILLING.transfer(server, wanted)
    return written_in_lines(wanted), [value.name for value in _marked(wanted)]


def with_own_secrets(text: str, own: str) -> str:
    """Replace the placeholders in an exported configuration by the secrets of another copy.

    A placeholder stays if it is not certain that the other copy has the secret of this element, for
    the same server and account.

    :param own: XML of the copy, for example of a folder of the desired state
    """
    if KEPT not in text:
        return text
    try:
        copy, exported = parse(own), parse(text)
    except UnreadableXml:
        return text
    if short_root(copy.name) != short_root(exported.name):
        return text
    _STRICT_FILLING.transfer(copy, exported)
    return written_in_lines(exported)


def with_kept_secrets(live: str, text: str) -> str:
    """Replace the values in a configuration that the server has encrypted by the server's values.

    A value that has no unambiguous counterpart on the server is left unchanged, for example the
    secret of a new list item.

    :param live: XML of the server
    :param text: XML of the task
    """
    server, wanted = parse(live), parse(text)
    if not any(_encrypted(server)):
        return text
    _KEEPING.transfer(server, wanted)
    return written_in_lines(wanted)


def with_kept_ids(live: str, text: str) -> str:
    """Add the server's ids to the branch sources that have none in a configuration.

    Server fact [ci-29]: the server would generate other ids, and build all branches again.

    :param live: XML of the server
    :param text: XML of the task
    """
    wanted = parse(text)
    ids = {text_of(source, _ID) for source in _sources(wanted)}
    new = [source for source in _sources(wanted) if not text_of(source, _ID)]
    known = [source for source in _sources(parse(live)) if text_of(source, _ID) not in ids]
    for source in new:
        alone = len(new) == len(known) == 1 and class_of(known[0]) == class_of(source)
        own = [other for other in known if alone or _place_of(other) == _place_of(source)]
        if len(own) == 1:
            put(source, _ID, text_of(own[0], _ID))
    return written_in_lines(wanted) if new else text


def _sources(root: XmlElement) -> list[XmlElement]:
    return [
        element
        for element, parent in root.iterate()
        if element.name == _SOURCE and parent is not None and parent.name == _BRANCH_SOURCE
    ]


def _place_of(source: XmlElement) -> tuple[str, ...]:
    """Return the class and the address of a branch source."""
    return class_of(source), *(text_of(source, name) for name in _PLACE)


def may_have_secrets(text: str) -> bool:
    """Return whether a configuration has secrets by their kind or by their names."""
    values = values_of(parse(text))
    return any(value.may_be_secret or _EMBEDDED_SECRET.search(value.text) for value in values)


def has_secret(name: str, text: str) -> bool:
    """Return whether a value with this name contains a secret."""
    by_name = bool(text.strip()) and is_secret_name(name)
    return by_name or _EMBEDDED_SECRET.search(text) is not None


def marked(text: str) -> list[str]:
    """Return the names of the elements that contain a placeholder."""
    return [value.name for value in _marked(parse(text))] if KEPT in text else []


def _marked(root: XmlElement) -> Iterator[XmlValue]:
    return (value for value in values_of(root) if KEPT in value.text)


def _encrypted(root: XmlElement) -> Iterator[XmlValue]:
    return (value for value in values_of(root) if value.is_of_encrypted_kind)


def _without_secrets(text: str, value: XmlValue) -> tuple[str, int]:
    if value.is_of_encrypted_kind or value.hides_secret:
        return KEPT, 1
    return _EMBEDDED_SECRET.subn(_marked_secret, text)


def _with_secrets(value: XmlValue, text: str) -> str:
    """Return a value of the task with the server's secrets instead of its placeholders.

    A placeholder stays if the server hides its secret, or has another number of secrets.
    """
    filled = _with_certain_secrets(value, text)
    secrets = [
        match["password"] or match["sealed"] for match in _EMBEDDED_SECRET.finditer(value.text)
    ]
    return text.replace(KEPT, secrets[0]) if filled.count(KEPT) == len(secrets) == 1 else filled


def _with_certain_secrets(value: XmlValue, text: str) -> str:
    """Return a value with the secrets of another value instead of its placeholders.

    In a longer text, a placeholder stays unless its line or its address has a single secret.
    """
    if text.strip() == KEPT:
        return text if value.hides_secret or not value.text.strip() else value.text
    if KEPT not in text:
        return text
    own = value.text.split("\n")
    lines = _certain((_with_marks(line), line) for line in own)
    passwords = _certain(
        (f"{match['before']}{host[0] if host else ''}", match["password"])
        for match in _EMBEDDED_SECRET.finditer(value.text)
        if match["password"]
        for host in [_HOST.match(value.text, match.end())]
    )
    filled = "\n".join(lines.get(line, line) for line in text.split("\n"))
    return _KEPT_URL.sub(
        lambda url: url["before"] + passwords.get(f"{url['before']}{url['host']}", KEPT), filled
    )


def _certain(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return the values by key, without the keys that have several values."""
    found: dict[str, set[str]] = {}
    for key, value in pairs:
        found.setdefault(key, set()).add(value)
    return {key: values.pop() for key, values in found.items() if len(values) == 1}


@dataclass(frozen=True)
class _Transfer:
    """Sets the values of one configuration from another one, element by element.

    :param choose: returns the value to send for a value of the server and a value of the task
    :param concerns: returns whether an element has secrets, given the elements of the server that
        may be its own
    :param identity: members that are equal in two elements of the same object
    """

    choose: Callable[[XmlValue, str], str]
    concerns: Callable[[XmlElement, Sequence[XmlElement]], bool]
    identity: Sequence[str] = _IDENTITY

    def transfer(
        self, server: XmlElement, wanted: XmlElement, parent: XmlElement | None = None
    ) -> None:
        """Set the values of an element from the server's element, which has this parent."""
        wanted.text = self.choose(text_value(server, parent), wanted.text)
        for name in server.attributes.keys() & wanted.attributes.keys():
            own = wanted.attributes[name]
            wanted.attributes[name] = self.choose(attribute_of(server, name), own)
        in_list = is_list(server.children) or is_list(wanted.children)
        left = list(server.children)
        for child in wanted.children:
            kind = (child.name, class_of(child))
            others = [element for element in left if (element.name, class_of(element)) == kind]
            if others and self.concerns(child, others):
                siblings = wanted.children if in_list else [child]
                other = self._counterpart(others, child, siblings)
                if other is not None:
                    left = [element for element in left if element is not other]
                    self.transfer(other, child, server)

    def _counterpart(
        self, others: Sequence[XmlElement], child: XmlElement, siblings: Sequence[XmlElement]
    ) -> XmlElement | None:
        """Return the server's element that is the same object as an element of the task.

        It is equal except for the secrets, or has the same name, or is the only one of its kind. A
        secret is never moved to another object.
        """
        named = self._named(child)
        equal = [other for other in others if _is_equal(other, child)]
        if len({*map(written, equal)}) == 1 or len(equal) == sum(
            _is_equal(each, child) for each in siblings
        ):
            return equal[0]
        same = []
        for other in others:
            theirs = self._named(other)
            if all(named[name] == theirs[name] for name in named.keys() & theirs.keys()):
                same.append(other)
        alike = [each for each in siblings if each.name == child.name]
        if len(alike) > 1 and named:
            alike = [each for each in alike if self._named(each) == named]
            same = [other for other in same if self._named(other) == named]
        return same[0] if len(same) == 1 and len(alike) == 1 else None

    def _named(self, element: XmlElement) -> dict[str, str]:
        """Return the members that identify an element. An entry of a map begins with its key."""
        if element.name == "entry" and len(element.children) > 1:
            return {"": element.children[0].whole_text()}
        members = ((name, child_of(element, name)) for name in self.identity)
        found = {name: member.text.strip() for name, member in members if member is not None}
        found |= {name: text for name, text in element.attributes.items() if name in self.identity}
        return {name: _with_marks(text) for name, text in found.items() if text}


_FILLING = _Transfer(_with_secrets, lambda child, _others: any(_marked(child)))
_STRICT_FILLING = _Transfer(
    _with_certain_secrets, lambda child, _others: any(_marked(child)), (*_IDENTITY, *_ACCOUNT)
)
_KEEPING = _Transfer(
    lambda value, own: value.text if value.is_of_encrypted_kind and own.strip() else own,
    lambda _child, others: any(any(_encrypted(other)) for other in others),
)


def _is_equal(element: XmlElement, wanted: XmlElement) -> bool:
    """Return whether two elements are equal except for their secrets."""
    one, two = deepcopy(element), deepcopy(wanted)
    for copy in (one, two):
        for child, parent in copy.iterate():
            if not text_value(child, parent).is_of_encrypted_kind:
                child.text = _with_marks(child.text)
    for (own, _above), (other, _parent) in zip(one.iterate(), two.iterate(), strict=False):
        if own.name != other.name:
            continue
        if other.text.strip() == KEPT:
            own.text = KEPT
        for name in own.attributes:
            if other.attributes.get(name, "").strip() == KEPT:
                own.attributes[name] = KEPT
    return not drift(one, two).found


def _with_marks(text: str) -> str:
    return _EMBEDDED_SECRET.sub(_marked_secret, text)


def _marked_secret(secret: re.Match[str]) -> str:
    """Return the placeholder for a secret that is a part of a value."""
    return f"{secret['before'] or ''}{KEPT}"
