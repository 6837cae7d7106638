# SPDX-License-Identifier: GPL-3.0-or-later
"""Keep encrypted secrets, and passwords in addresses, out of exported job configurations.

An exported configuration contains the placeholder `(kept by the server)` instead of them. Before
the configuration is saved, the current secret of the job replaces the placeholder.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy

from ...core.secret import is_secret_name
from ..xml_reader import XmlElement, parse, put, written_in_lines
from ..xml_reader import text_of as xml_text
from .configuration import (
    KEPT,
    SOURCE_ID,
    XmlValue,
    attribute_of,
    class_of,
    drift,
    is_list,
    short_root,
    text_of,
    values_of,
)

#: Returns the value to send for a value of the server and a value of the task.
_Choose = Callable[[XmlValue, str], str]
#: Returns whether an element has secrets, given the elements of the server that may be its own.
_Concerns = Callable[[XmlElement, Sequence[XmlElement]], bool]

_SOURCE, _ID = SOURCE_ID
_BRANCH_SOURCE = "jenkins.branch.BranchSource"
#: Members with the address of a branch source, of different classes.
_PLACE = ("remote", "serverUrl", "apiUri", "repoOwner", "repository", "projectPath", "remoteBase")
#: Secrets in a longer text: encrypted values [ci-15] and passwords in URLs, except variables.
_EMBEDDED_SECRET = re.compile(
    r"(?P<before>://[^\s/@:\"'<>]*:)(?P<password>[^\s/@$\"'{}<>]+)(?=@)"
    r"|(?P<sealed>\{AQAA[A-Za-z0-9+/]{8,}={0,2}\})"
)


def without_secrets(text: str) -> tuple[str, int]:
    """Return a configuration with placeholders for its secrets, and the number of secrets."""
    root = parse(text)
    count = _remove_secrets(root)
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
        _transfer(server, wanted, None, _with_secrets, lambda child, _others: any(_marked(child)))
    return written_in_lines(wanted), [value.name for value in _marked(wanted)]


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
    _transfer(
        server,
        wanted,
        None,
        lambda value, own: value.text if value.is_of_encrypted_kind and own.strip() else own,
        lambda _child, others: any(any(_encrypted(other)) for other in others),
    )
    return written_in_lines(wanted)


def with_kept_ids(live: str, text: str) -> str:
    """Add the server's ids to the branch sources that have none in a configuration.

    Server fact [ci-29]: the server would generate other ids, and build all branches again.

    :param live: XML of the server
    :param text: XML of the task
    """
    wanted = parse(text)
    ids = {xml_text(source, _ID) for source in _sources(wanted)}
    new = [source for source in _sources(wanted) if not xml_text(source, _ID)]
    known = [source for source in _sources(parse(live)) if xml_text(source, _ID) not in ids]
    for source in new:
        alone = len(new) == len(known) == 1 and class_of(known[0]) == class_of(source)
        own = [other for other in known if alone or _place_of(other) == _place_of(source)]
        if len(own) == 1:
            put(source, _ID, xml_text(own[0], _ID))
    return written_in_lines(wanted) if new else text


def _sources(root: XmlElement) -> list[XmlElement]:
    return [
        element
        for element, parent in root.iterate()
        if element.name == _SOURCE and parent is not None and parent.name == _BRANCH_SOURCE
    ]


def _place_of(source: XmlElement) -> tuple[str, ...]:
    """Return the class and the address of a branch source."""
    return class_of(source), *(xml_text(source, name) for name in _PLACE)


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


def _remove_secrets(root: XmlElement) -> int:
    """Replace the secrets by placeholders. Return the number of secrets."""
    count = 0
    for element, parent in root.iterate():
        element.text, found = _without_secrets(element.text, text_of(element, parent))
        count += found
        for name, text in element.attributes.items():
            element.attributes[name], found = _without_secrets(text, attribute_of(element, name))
            count += found
    return count


def _without_secrets(text: str, value: XmlValue) -> tuple[str, int]:
    if value.is_of_encrypted_kind or value.hides_secret:
        return KEPT, 1
    return _EMBEDDED_SECRET.subn(_marked_secret, text)


def _with_secrets(value: XmlValue, text: str) -> str:
    """Return a value of the task with the server's secrets instead of its placeholders.

    A placeholder stays if the server hides its secret, or has another number of secrets.
    """
    if text.strip() == KEPT:
        return text if value.hides_secret or not value.text.strip() else value.text.strip()
    secrets = [
        match["password"] or match["sealed"] for match in _EMBEDDED_SECRET.finditer(value.text)
    ]
    parts = text.split(KEPT)
    if len(parts) != len(secrets) + 1:
        return text
    return parts[0] + "".join(map("".join, zip(secrets, parts[1:], strict=True)))


def _transfer(
    server: XmlElement,
    wanted: XmlElement,
    parent: XmlElement | None,
    choose: _Choose,
    concerns: _Concerns,
) -> None:
    """Set the values of an element from the server's element, which has this parent."""
    wanted.text = choose(text_of(server, parent), wanted.text)
    for name in server.attributes.keys() & wanted.attributes.keys():
        wanted.attributes[name] = choose(attribute_of(server, name), wanted.attributes[name])
    in_list = is_list(server.children) or is_list(wanted.children)
    left = list(server.children)
    for child in wanted.children:
        kind = (child.name, class_of(child))
        others = [element for element in left if (element.name, class_of(element)) == kind]
        if others and concerns(child, others):
            other = _counterpart(others, child, wanted.children) if in_list else others[0]
            if other is not None:
                left = [element for element in left if element is not other]
                _transfer(other, child, server, choose, concerns)


def _counterpart(
    others: Sequence[XmlElement], child: XmlElement, siblings: Sequence[XmlElement]
) -> XmlElement | None:
    """Return the server's list item that corresponds to an item of the task.

    It must be equal except for the secrets, or the only item of its kind. A secret is never moved
    to another item.
    """
    wanted = _with_marked_parts(child)
    same = (element for element in others if not drift(_with_marked_parts(element), wanted).found)
    found = next(same, None)
    if found is not None:
        return found
    only = len(others) == 1 and [sibling.name for sibling in siblings].count(child.name) == 1
    return others[0] if only else None


def _with_marked_parts(element: XmlElement) -> XmlElement:
    """Return a copy of an element with placeholders for secrets that are a part of a value."""
    copy = deepcopy(element)
    for child, parent in copy.iterate():
        if not text_of(child, parent).is_of_encrypted_kind:
            child.text = _EMBEDDED_SECRET.sub(_marked_secret, child.text)
    return copy


def _marked_secret(secret: re.Match[str]) -> str:
    """Return the placeholder for a secret that is a part of a value."""
    return f"{secret['before'] or ''}{KEPT}"
