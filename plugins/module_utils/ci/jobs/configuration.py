# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare the configuration of a job with an expected one by its meaning.

These differences are ignored: the order of attributes and of an object's members, white space
around text, the plugin version of an element, the class of a collection, and a member with its
default that the other side omits. The order of lists counts. Server facts [ci-14, ci-15]: secrets
are encrypted again each time a configuration is saved, and masked for accounts that must not
configure the job, so they cannot be compared.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ...core.secret import MASK
from ..xml_reader import XmlElement, parse, shown, without_declaration, written

#: `{AQAAABAAAAAg...=}`: a value that the server has encrypted.
_ENCRYPTED = re.compile(r"\{[A-Za-z0-9+/]{8,}={0,2}\}")
_SECRET_NAME = re.compile(
    r"(secret|password|passwd|token|passphrase|private_?key|secret_?key|api_?key)s?$",
    re.IGNORECASE,
)
_STARS = re.compile(r"\*{4,}")
#: Stands for a secret that is sent without a comparison.
_RESENT = "(new secret)"
_PLUGIN = "plugin"
#: Classes of collections, of which the server writes the one that it was given.
_COLLECTION = re.compile(r"java\.util\.|(?:[a-z]+-)*(?:list|set|map|array)$|vector$")
#: Members with names that the server makes up.
_GENERATED = frozenset({"randomName"})
_SHORTEST_SECRET = 6
#: Short names under which the server writes the root of some kinds; it reads both names.
_SHORT_ROOTS = {
    "hudson.model.FreeStyleProject": "project",
    "hudson.matrix.MatrixProject": "matrix-project",
    "hudson.maven.MavenModuleSet": "maven2-moduleset",
    "org.jenkinsci.plugins.workflow.job.WorkflowJob": "flow-definition",
}
# Server fact [ci-15]: members that the server writes as true by default. Other omitted members are
# false or empty.
_TRUE_BY_DEFAULT = frozenset({"canRoam", "sandbox", "defaultExcludes", "caseSensitive"})
_NO_SCM = "hudson.scm.NullSCM"

#: An element on the server, and the expected element in its place.
Pair: TypeAlias = "tuple[XmlElement | None, XmlElement | None]"


@dataclass(frozen=True)
class Difference:
    """A difference: an element is `missing` on the server, it is unexpected (`extra`), or its text
    or attributes differ.
    """

    path: str
    kind: Literal["missing", "extra", "changed"]


@dataclass(frozen=True)
class ConfigurationDrift:
    """Normalized configurations: `before` of the server, `after` as expected; secrets are masked.
    `uncompared`: elements with a secret on both sides.
    """

    before: str
    after: str
    differences: tuple[Difference, ...] = ()
    uncompared: tuple[str, ...] = ()

    @property
    def found(self) -> bool:
        return bool(self.differences)


def drift(live: str, expected: str, *, resent: bool = False) -> ConfigurationDrift:
    """Compare two configurations. Raises `UnreadableXml` if a configuration cannot be parsed.

    :param resent: secrets that cannot be compared are differences
    """
    server, user = _comparable(live), _comparable(expected)
    comparison = _Comparison()
    comparison.compare(server, user)
    if resent:
        comparison.resend()
    before, after = shown(server), shown(user)
    return ConfigurationDrift(
        before, after, tuple(comparison.differences), tuple(comparison.uncompared)
    )


def normalized(text: str) -> str:
    """Return a configuration in its normalized form with masked secrets."""
    root = _comparable(text)
    for element in _sealed(root):
        element.text = MASK
    return shown(root)


def kind_of(text: str) -> str:
    """Return the name of the root element, which is the kind of job."""
    return short_root(parse(text).name)


def short_root(name: str) -> str:
    """Return the short name of a root element."""
    return _SHORT_ROOTS.get(name, name)


def is_enabled(text: str) -> bool:
    """Return whether a configuration is that of an enabled job."""
    children = parse(text).children
    return all(child.text.strip() != "true" for child in children if child.name == "disabled")


def with_enabled(text: str, enabled: bool | None) -> str:
    """Return a configuration without its header, enabled or disabled; `None`: unchanged."""
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
    """Return the recognizable secrets in a configuration."""
    elements = parse(text).iterate()
    found = [value for element, holder in elements for value in secret_texts(element, holder)]
    return [value for value in found if len(value) >= _SHORTEST_SECRET and set(value) != {"*"}]


def masked_secrets(text: str) -> list[str]:
    """Return the names of elements with stars instead of a secret: if sent to the server, the stars
    become the secret [ci-14].
    """
    return [
        element.name
        for element, holder in parse(text).iterate()
        if any(_STARS.fullmatch(value) for value in secret_texts(element, holder))
    ]


def _comparable(text: str) -> XmlElement:
    """Return the configuration in its normalized form."""
    root = parse(text)
    root.name = short_root(root.name)
    for element, holder in list(root.iterate()):
        for secret in secret_texts(element, holder):
            if _ENCRYPTED.fullmatch(element.text.strip()) is None:
                element.text = element.text.replace(secret, MASK)
    for element, _holder in list(root.iterate()):
        element.attributes.pop(_PLUGIN, None)
        element.name = element.name.replace("__", "_")
        element.text = element.text.replace("\r\n", "\n").strip()
        _simplify(element)
    return root


def _simplify(element: XmlElement) -> None:
    """Remove what depends on the program that wrote the element [ci-31]: the class of a collection,
    an array within it, and generated names.
    """
    children = [child for child in element.children if child.name not in _GENERATED]
    if not class_of(element):
        element.attributes.pop("class", None)
    if len(children) == 1 and children[0].attributes.get("class") == "string-array":
        children = children[0].children
    element.children = children


def class_of(element: XmlElement) -> str:
    """Return the class of an element; "" for a collection."""
    name = element.attributes.get("class", "")
    return "" if _COLLECTION.match(name) else name


def _sealed(root: XmlElement) -> Iterator[XmlElement]:
    """Yield the elements with a text that the server has encrypted completely."""
    return (each for each, _holder in root.iterate() if _ENCRYPTED.fullmatch(each.text))


def secret_texts(element: XmlElement, holder: XmlElement | None) -> Iterator[str]:
    """Yield the secret parts of an element's own text: encrypted values, or the whole text because
    of the element's name.
    """
    text = element.text.strip()
    of_password = holder is not None and "Password" in holder.name.rpartition(".")[2]
    by_name = _SECRET_NAME.search(element.name.rpartition(".")[2]) is not None
    if text and not element.children and (by_name or (of_password and "Value" in element.name)):
        yield text
    else:
        yield from _ENCRYPTED.findall(text)


class _Comparison:
    """Finds differences, and removes ignored ones from both sides."""

    def __init__(self) -> None:
        self.differences: list[Difference] = []
        self.uncompared: list[str] = []
        self._secrets: list[XmlElement] = []

    def resend(self) -> None:
        """Turn the secrets that cannot be compared into differences."""
        for path in self.uncompared:
            self._add(path, "changed")
        for element in self._secrets:
            element.text = _RESENT
        self.uncompared = []

    def compare(self, live: XmlElement, wanted: XmlElement) -> None:
        if live.name != wanted.name:
            self._add(live.name, "extra")
            self._add(wanted.name, "missing")
        else:
            self._element(live, wanted, "")
        for element in (*_sealed(live), *_sealed(wanted)):
            element.text = MASK

    def _element(self, live: XmlElement, wanted: XmlElement, path: str) -> None:
        if _ENCRYPTED.fullmatch(live.text) and wanted.text:
            live.text = wanted.text = MASK  # whatever the name of the element is
        if _ENCRYPTED.fullmatch(wanted.text) and live.text:
            live.text = wanted.text = MASK
        if live.text != wanted.text or live.attributes != wanted.attributes:
            self._add(path or live.name, "changed")
        elif MASK in live.text:
            self.uncompared.append(path or live.name)
            self._secrets.append(wanted)
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
    """Names for the children of an element, numbered if a name is repeated."""

    def __init__(self, pairs: Iterable[Pair]) -> None:
        names = [(theirs or ours or XmlElement("")).name for theirs, ours in pairs]
        self._repeated = {name for name, count in Counter(names).items() if count > 1}
        self._seen: Counter[str] = Counter()

    def of(self, theirs: XmlElement | None, ours: XmlElement | None) -> str:
        name = (theirs or ours or XmlElement("")).name
        self._seen[name] += 1
        return f"{name}[{self._seen[name]}]" if name in self._repeated else name


def is_list(children: Sequence[XmlElement]) -> bool:
    """Return whether the children are a list: named by class, or all alike; members of an object
    are named by field.
    """
    names = [child.name for child in children]
    return len(set(names)) < len(names) or any("." in name for name in names)


def _by_name(live: Sequence[XmlElement], wanted: Sequence[XmlElement]) -> Iterable[Pair]:
    theirs = {child.name: child for child in live}
    ours = {child.name: child for child in wanted}
    return [(theirs.get(name), ours.get(name)) for name in (theirs | ours)]


def _by_place(live: Sequence[XmlElement], wanted: Sequence[XmlElement]) -> Iterable[Pair]:
    """Pair the common start and the common end of two lists; the elements between are unpaired."""
    most = min(len(live), len(wanted))
    head = next((n for n in range(most) if live[n].name != wanted[n].name), most)
    left = most - head
    tail = next((n for n in range(left) if live[-1 - n].name != wanted[-1 - n].name), left)
    yield from zip(live[:head], wanted[:head], strict=True)
    yield from ((child, None) for child in live[head : len(live) - tail])
    yield from ((None, child) for child in wanted[head : len(wanted) - tail])
    yield from zip(live[len(live) - tail :], wanted[len(wanted) - tail :], strict=True)


def _is_default(element: XmlElement | None) -> bool:
    """Return whether a member of an object has its default."""
    if element is None or element.children or set(element.attributes) - {"class"}:
        return False
    kind = element.attributes.get("class", "")
    if "." in kind and not kind.startswith("java.util.") and kind != _NO_SCM:
        return False
    return element.text in ("", "false") or (
        element.text == "true" and element.name in _TRUE_BY_DEFAULT
    )
