# SPDX-License-Identifier: GPL-3.0-or-later
"""Compares the configuration of a job with an expected one, by what it means.

Neither the order of attributes and of an object's members, nor white space around texts, nor the
version of the plugin that an element comes from, nor a member that is there with its default and
left out on the other side makes a difference; the order in lists does. Server facts [ci-14, ci-15]:
secrets are encrypted anew each time that a configuration is saved, and masked for accounts that may
not configure the job, so that they cannot be compared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ...core.secret import MASK
from ..xml_reader import XmlElement, parse, shown, without_declaration, written

#: C({AQAAABAAAAAg...=}): a value that the server has encrypted.
_ENCRYPTED = re.compile(r"\{[A-Za-z0-9+/]{8,}={0,2}\}")
_SECRET_NAME = re.compile(
    r"(secret|password|passwd|token|passphrase|private_?key|secret_?key|api_?key)s?$",
    re.IGNORECASE,
)
_STARS = re.compile(r"\*{4,}")
_PLUGIN = "plugin"
_SHORTEST_SECRET = 6
#: The server writes the root of some kinds under a short name, and reads the long one as well.
_SHORT_ROOTS = {
    "hudson.model.FreeStyleProject": "project",
    "hudson.matrix.MatrixProject": "matrix-project",
    "hudson.maven.MavenModuleSet": "maven2-moduleset",
    "org.jenkinsci.plugins.workflow.job.WorkflowJob": "flow-definition",
}
# Server fact [ci-15]: what is written although nobody has said it. A member that is left out is
# false, or empty, but for these.
_TRUE_BY_DEFAULT = frozenset({"canRoam", "sandbox", "defaultExcludes", "caseSensitive"})
_NO_SCM = "hudson.scm.NullSCM"

#: An element on the server, and the one that is expected in its place.
Pair: TypeAlias = "tuple[XmlElement | None, XmlElement | None]"


@dataclass(frozen=True)
class Difference:
    """Where two configurations differ: an element is C(missing) on the server, it is there beyond
    what is expected (C(extra)), or it has another text or other attributes.
    """

    path: str
    kind: Literal["missing", "extra", "changed"]


@dataclass(frozen=True)
class ConfigurationDrift:
    """C(before) is the configuration of the server, C(after) the one that is expected, both without
    what makes no difference; secrets are masked. C(uncompared): where both have a secret.
    """

    before: str
    after: str
    differences: tuple[Difference, ...] = ()
    uncompared: tuple[str, ...] = ()

    @property
    def found(self) -> bool:
        return bool(self.differences)


def drift(live: str, expected: str) -> ConfigurationDrift:
    """Compare two configurations; C(UnreadableXml) if one of them is not readable."""
    server, user = _comparable(live), _comparable(expected)
    comparison = _Comparison()
    comparison.whole(server, user)
    before, after = shown(server), shown(user)
    return ConfigurationDrift(
        before, after, tuple(comparison.differences), tuple(comparison.uncompared)
    )


def normalized(text: str) -> str:
    """A configuration in the form in which it is compared and shown, secrets masked."""
    root = _comparable(text)
    for element in _sealed(root):
        element.text = MASK
    return shown(root)


def kind_of(text: str) -> str:
    """The name of the root element, which says what kind of job it is."""
    return short_root(parse(text).name)


def short_root(name: str) -> str:
    """The short name of a root element."""
    return _SHORT_ROOTS.get(name, name)


def with_enabled(text: str, enabled: bool | None) -> str:
    """A configuration, without its header, of a job that is enabled or disabled; C(None): as the
    text has it.
    """
    root = parse(text)
    switch = next((child for child in root.children if child.name == "disabled"), None)
    disabled = switch is not None and switch.text.strip() == "true"
    if enabled is None or disabled is not enabled:
        return without_declaration(text)
    if switch is None:
        switch = XmlElement("disabled")
        root.children.append(switch)
    switch.text = "false" if enabled else "true"
    return written(root)


def secrets(text: str) -> list[str]:
    """The secret values in a configuration, those that can be told from other text."""
    elements = parse(text).iterate()
    found = [value for element, holder in elements for value in secret_texts(element, holder)]
    return [value for value in found if len(value) >= _SHORTEST_SECRET and set(value) != {"*"}]


def masked_secrets(text: str) -> list[str]:
    """The names of elements that hold stars in place of a secret: sent to the server, the stars
    become the secret [ci-14].
    """
    return [
        element.name
        for element, holder in parse(text).iterate()
        if any(_STARS.fullmatch(value) for value in secret_texts(element, holder))
    ]


def _comparable(text: str) -> XmlElement:
    """The configuration in the one form in which it is compared and shown."""
    root = parse(text)
    root.name = short_root(root.name)
    for element, holder in list(root.iterate()):
        for secret in secret_texts(element, holder):
            if _ENCRYPTED.fullmatch(element.text.strip()) is None:
                element.text = element.text.replace(secret, MASK)
    for element, _holder in root.iterate():
        element.attributes.pop(_PLUGIN, None)
        element.text = element.text.replace("\r\n", "\n").strip()
    return root


def _sealed(root: XmlElement) -> Iterator[XmlElement]:
    """The elements whose whole text the server has encrypted."""
    return (each for each, _holder in root.iterate() if _ENCRYPTED.fullmatch(each.text))


def secret_texts(element: XmlElement, holder: XmlElement | None) -> Iterator[str]:
    """The secret parts of an element's own text: what is encrypted, or all of it by its name."""
    text = element.text.strip()
    of_password = holder is not None and "Password" in holder.name.rpartition(".")[2]
    by_name = _SECRET_NAME.search(element.name.rpartition(".")[2]) is not None
    if text and not element.children and (by_name or (of_password and "Value" in element.name)):
        yield text
    else:
        yield from _ENCRYPTED.findall(text)


class _Comparison:
    """Finds what differs, and takes out of both sides what makes no difference."""

    def __init__(self) -> None:
        self.differences: list[Difference] = []
        self.uncompared: list[str] = []

    def whole(self, live: XmlElement, wanted: XmlElement) -> None:
        if live.name != wanted.name:
            self._add(live.name, "extra")
            self._add(wanted.name, "missing")
        else:
            self._element(live, wanted, "")
        for element in (*_sealed(live), *_sealed(wanted)):
            element.text = MASK

    def _element(self, live: XmlElement, wanted: XmlElement, path: str) -> None:
        if _ENCRYPTED.fullmatch(live.text) and wanted.text:
            live.text = wanted.text = MASK  # whatever the name of the element says
        if _ENCRYPTED.fullmatch(wanted.text) and live.text:
            live.text = wanted.text = MASK
        if live.text != wanted.text or live.attributes != wanted.attributes:
            self._add(path or live.name, "changed")
        elif MASK in live.text:
            self.uncompared.append(path or live.name)
        in_list = is_list(live.children) or is_list(wanted.children)
        pair = _by_place if in_list else _by_name
        self._children(live, wanted, list(pair(live.children, wanted.children)), path, in_list)

    def _children(
        self,
        live: XmlElement,
        wanted: XmlElement,
        pairs: Sequence[tuple[XmlElement | None, XmlElement | None]],
        path: str,
        in_list: bool,
    ) -> None:
        live.children, wanted.children = [], []
        place = _Places(pairs)
        for theirs, ours in pairs:
            here = f"{path}/{place.of(theirs, ours)}".lstrip("/")
            if theirs is not None and ours is not None:
                self._element(theirs, ours, here)
            elif not in_list and _is_default(theirs or ours):
                continue
            else:
                self._add(here, "missing" if theirs is None else "extra")
            live.children += [theirs] if theirs is not None else []
            wanted.children += [ours] if ours is not None else []

    def _add(self, path: str, kind: Literal["missing", "extra", "changed"]) -> None:
        self.differences.append(Difference(path, kind))


class _Places:
    """Names for the children of an element: with a number where the name is there twice."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        names = [(theirs or ours or XmlElement("")).name for theirs, ours in pairs]
        self._repeated = {name for name, count in Counter(names).items() if count > 1}
        self._seen: Counter[str] = Counter()

    def of(self, theirs: XmlElement | None, ours: XmlElement | None) -> str:
        name = (theirs or ours or XmlElement("")).name
        self._seen[name] += 1
        return f"{name}[{self._seen[name]}]" if name in self._repeated else name


def is_list(children: Sequence[XmlElement]) -> bool:
    """Entries are named by their classes, or alike; members of an object by its fields."""
    names = [child.name for child in children]
    return len(set(names)) < len(names) or any("." in name for name in names)


def _by_name(live: Sequence[XmlElement], wanted: Sequence[XmlElement]) -> Iterable[Pair]:
    theirs = {child.name: child for child in live}
    ours = {child.name: child for child in wanted}
    return [(theirs.get(name), ours.get(name)) for name in (theirs | ours)]


def _by_place(live: Sequence[XmlElement], wanted: Sequence[XmlElement]) -> Iterable[Pair]:
    """What both begin with and what both end with belongs together; what is between does not."""
    most = min(len(live), len(wanted))
    head = next((n for n in range(most) if live[n].name != wanted[n].name), most)
    left = most - head
    tail = next((n for n in range(left) if live[-1 - n].name != wanted[-1 - n].name), left)
    yield from zip(live[:head], wanted[:head], strict=True)
    yield from ((child, None) for child in live[head : len(live) - tail])
    yield from ((None, child) for child in wanted[head : len(wanted) - tail])
    yield from zip(live[len(live) - tail :], wanted[len(wanted) - tail :], strict=True)


def _is_default(element: XmlElement | None) -> bool:
    """Whether it makes no difference that a member of an object is there."""
    if element is None or element.children or set(element.attributes) - {"class"}:
        return False
    kind = element.attributes.get("class", "")
    if "." in kind and not kind.startswith("java.util.") and kind != _NO_SCM:
        return False
    return element.text in ("", "false") or (
        element.text == "true" and element.name in _TRUE_BY_DEFAULT
    )
