# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare two XML configurations of a job by their meaning.

The comparison ignores the order of attributes and of an object's members, white space around text,
plugin versions, classes of collections, and members with default values that only one configuration
contains. The order of a list counts.

Server facts [ci-14, ci-15]: secrets cannot be compared, because each save encrypts them again. They
are masked for accounts that may not configure the job.

Server fact [ci-15]: the class of an element decides whether the server encrypts a value. Its name
does not: `injectGlobalPasswords` is a boolean, and the `token` of some triggers is stored as it is.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, TypeAlias

from ...core.module.task import Task
from ...core.plan import Change, Plan
from ...core.secret import MASK, is_secret_name
from ...core.verification import not_taken
from ..xml_reader import (
    KEPT,
    XmlElement,
    added_child,
    child_of,
    parse,
    shown,
    text_of,
    without_declaration,
    written,
)
from . import parts_of_others

#: Key for the text of an element, in mappings whose other keys are names of attributes.
TEXT = ""
#: Minimum length of a secret that is masked everywhere. A shorter one may occur in other words.
SHORTEST = 6
#: Value that the server has encrypted. It begins with a version and the length of a vector.
_ENCRYPTED = re.compile(r"\{AQAA[A-Za-z0-9+/]{8,}={0,2}\}")
#: What the server shows instead of an encrypted value to accounts without permission [ci-14].
_HIDDEN = "*" * 8
_STARS = re.compile(r"\*{4,}")
#: Booleans, numbers, enumerations and references to variables, which are no secrets.
_NO_SECRET = re.compile(r"true|false|[+-]?\d+(\.\d+)?|[A-Z]+(_[A-Z]+)*|\$\w+|[$#]\{[^{}]*\}|%\w+%")
# Server fact [ci-15]: members that these classes encrypt. The packages are left out, because an
# alias may replace them.
_ENCRYPTED_MEMBERS = {
    "PasswordParameterDefinition": ("defaultValue",),
    "EnvInjectPasswordEntry": ("value",),
    "GitLabPushTrigger": ("secretToken",),
    "GogsProjectProperty": ("gogsSecret",),
    "BapSshCredentials": ("secretPassphrase",),
    "varPasswordPair": ("password",),
    "VarPasswordPair": ("password",),
    "StringCredentialsImpl": ("secret",),
    "UsernamePasswordCredentialsImpl": ("password",),
    "BasicSSHUserPrivateKey": ("passphrase",),
    "DirectEntryPrivateKeySource": ("privateKey",),
    "CertificateCredentialsImpl": ("password",),
    "UploadedKeyStoreSource": ("uploadedKeystoreBytes",),
    "FileCredentialsImpl": ("secretBytes",),
}
_OF_CLASS = frozenset(
    (cls, member) for cls, members in _ENCRYPTED_MEMBERS.items() for member in members
)


class XmlValue(NamedTuple):
    """Text of an element or value of an attribute.

    :param name: name of the element or attribute
    :param holder: class of the object that has this member
    """

    text: str
    name: str
    holder: str

    @property
    def is_encrypted(self) -> bool:
        """Return whether the whole value is encrypted, or hidden because it is."""
        text = self.text.strip()
        return _ENCRYPTED.fullmatch(text) is not None or text == _HIDDEN

    @property
    def is_of_encrypted_kind(self) -> bool:
        """Return whether the server encrypts the whole value."""
        known = (self.holder, self.name) in _OF_CLASS or self.name == "hudson.util.Secret"
        return self.text.strip() not in ("", KEPT) and (known or self.is_encrypted)

    @property
    def may_be_secret(self) -> bool:
        """Return whether the whole value is a secret by its kind or its name."""
        text = self.text.strip()
        by_name = is_secret_name(self.name.rpartition(".")[2])
        is_other = text in ("", KEPT) or _NO_SECRET.fullmatch(text) is not None
        return self.is_of_encrypted_kind or (by_name and not is_other)

    @property
    def hides_secret(self) -> bool:
        """Return whether asterisks replace the value."""
        text = self.text.strip()
        return text == _HIDDEN or (_STARS.fullmatch(text) is not None and self.may_be_secret)

    @property
    def shown(self) -> str:
        """Return the value for a diff, without secrets."""
        return MASK if self.may_be_secret else without_encrypted(self.text)

    def secrets(self) -> Iterator[str]:
        """Yield the secrets in the value that output must not contain."""
        text = self.text.strip()
        if not self.may_be_secret:
            yield from _ENCRYPTED.findall(text)
        elif len(text) >= SHORTEST and not _STARS.fullmatch(text):
            yield text


def text_value(element: XmlElement, parent: XmlElement | None) -> XmlValue:
    """Return the text of an element; "" if the element has children."""
    holder = "" if parent is None else parent.attributes.get("class") or parent.name
    return XmlValue("" if element.children else element.text, element.name, _simple(holder))


def attribute_of(element: XmlElement, name: str) -> XmlValue:
    return XmlValue(element.attributes[name], name, _simple(element.name))


def value_of(element: XmlElement, name: str, parent: XmlElement | None = None) -> XmlValue:
    """Return the attribute with this name, or for `TEXT` the text."""
    return text_value(element, parent) if name == TEXT else attribute_of(element, name)


def set_value(element: XmlElement, name: str, text: str) -> None:
    """Set the attribute with this name, or for `TEXT` the text."""
    if name == TEXT:
        element.text = text
    else:
        element.attributes[name] = text


def mask_value(element: XmlElement, name: str) -> None:
    """Mask the attribute with this name, or for `TEXT` the text, unless it is empty."""
    if value_of(element, name).text.strip():
        set_value(element, name, MASK)


def values_of(root: XmlElement) -> Iterator[XmlValue]:
    """Yield all texts and attributes."""
    for element, parent in root.iterate():
        yield text_value(element, parent)
        yield from (attribute_of(element, name) for name in element.attributes)


def mask(root: XmlElement) -> None:
    """Mask the secrets, for a diff."""
    for element, parent in root.iterate():
        if not element.children:
            element.text = text_value(element, parent).shown
        for name in element.attributes:
            element.attributes[name] = attribute_of(element, name).shown


def without_encrypted(text: str) -> str:
    """Return a string with masked encrypted values."""
    return _ENCRYPTED.sub(MASK, text)


def _simple(name: str) -> str:
    """Return the name of a class without package and outer class."""
    return re.split(r"[.$]|_-", name)[-1]


#: Replaces a changed secret in the diff.
_NEW_SECRET = "(new secret)"
_PLUGIN = "plugin"
#: Classes of collections. The server keeps the class with which the configuration was written.
_COLLECTION = re.compile(r"java\.util\.|(?:[a-z]+-)*(?:list|set|map|array)$|vector$")
# Server fact [ci-15]: a build adds these actions, which remember what its Jenkinsfile has set.
_OF_BUILDS = frozenset(
    {"DeclarativeJobAction", "DeclarativeJobPropertyTrackerAction", "JobPropertyTrackerAction"}
)
#: Elements with random values that the server generates.
_GENERATED = frozenset({"randomName"})
#: Short names of root elements, which the server writes. It also reads the class names.
_SHORT_ROOTS = {
    "hudson.model.FreeStyleProject": "project",
    "hudson.matrix.MatrixProject": "matrix-project",
    "hudson.maven.MavenModuleSet": "maven2-moduleset",
    "org.jenkinsci.plugins.workflow.job.WorkflowJob": "flow-definition",
}
#: Short roots of the kinds of jobs with the member `canRoam`.
_ROAMING = frozenset({"project", "matrix-project", "maven2-moduleset"})
# Server fact [ci-15]: members that are true if they are missing. Others are false or empty.
_TRUE_BY_DEFAULT = frozenset({"defaultExcludes", "caseSensitive", "followSymlinks"})
# Server fact [ci-15]: members that the server adds, by their name and class. They are defaults if
# they contain only these values, empty values, and references to the owner.
_NO_CLEANUP = {"pruneDeadBranches": "true", "daysToKeep": "-1", "numToKeep": "-1"}
_SCRIPT = {"scriptPath": "Jenkinsfile"}
_ADDED = {
    ("icon", "StockFolderIcon"): {},
    ("icon", "MetadataActionFolderIcon"): {},
    ("orphanedItemStrategy", "DefaultOrphanedItemStrategy"): _NO_CLEANUP,
    ("workDirSettings", ""): {"internalDir": "remoting"},
    ("factory", "WorkflowBranchProjectFactory"): _SCRIPT,
}
# Server fact [ci-41]: a launcher from a form and one from a configuration get different values.
_EITHER = ("workDirSettings", "disabled")
#: Id of a branch source, which the server generates.
SOURCE_ID = ("source", "id")
_DISCARDER = "jenkins.model.BuildDiscarderProperty"
_LITERAL = re.compile(r"true|false|[+-]?\d+(\.\d+)?")
_NO_SCM = "hudson.scm.NullSCM"

#: A configuration, as a document or parsed.
Xml: TypeAlias = "XmlElement | str"
#: Element on the server and expected element; `None` if one of the configurations lacks it.
Pair: TypeAlias = "tuple[XmlElement | None, XmlElement | None]"
_Kind: TypeAlias = Literal["missing", "extra", "changed"]


@dataclass(frozen=True)
class Difference:
    """A difference between the server's and the expected configuration.

    :param path: path of the element, for example `scm/userRemoteConfigs/url[2]`
    :param kind: `missing` if the server lacks the element, `extra` if the element is not expected,
        `changed` if its text or attributes differ
    :param digest: digest of both values; "" if one of them may be a secret
    """

    path: str
    kind: _Kind
    digest: str = ""


@dataclass(frozen=True)
class ConfigurationDrift:
    """Result of a comparison.

    :param before: normalized configuration of the server with masked secrets
    :param after: normalized expected configuration with masked secrets
    :param uncompared: paths of elements that contain a secret in both configurations
    :param secrets: expected values that the server has encrypted
    """

    before: str
    after: str
    differences: tuple[Difference, ...] = ()
    uncompared: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()

    @property
    def found(self) -> bool:
        return bool(self.differences)

    @property
    def sides(self) -> tuple[str, str]:
        """Return both configurations for a plan. They are equal if there is no difference."""
        return self.before, self.after if self.found else self.before

    def paths(self, *kinds: str) -> list[str]:
        """Return the paths of the differences of these kinds, by default of all."""
        return [found.path for found in self.differences if not kinds or found.kind in kinds]

    def without_known(self, known: Mapping[str, str]) -> ConfigurationDrift:
        """Return the comparison without differences that no write removes.

        :param known: digests of such differences by path
        """
        left = (
            each
            for each in self.differences
            if not each.digest or known.get(each.path) != each.digest
        )
        return replace(self, differences=tuple(left))

    def kept(self, before: ConfigurationDrift | None) -> dict[str, str]:
        """Return the digests of the differences after a write that was without effect, by path.

        :param before: comparison before the write; `None` for a new object, whose other elements
            the server has added
        """
        found = (
            each
            for each in self.differences
            if (each.kind == "extra" if before is None else each in before.differences)
        )
        return {each.path: each.digest for each in found if each.digest}

    def left(self, before: str | None, *kinds: str) -> tuple[Change, ...]:
        """Return the changes that a write has left undone.

        All differences count if the configuration is the same as before the write, otherwise those
        of these kinds: the server may have added what only the server has.

        :param before: `before` of the comparison before the write; `None` for a new object
        """
        paths = self.paths() if self.before == before else self.paths(*kinds)
        return tuple(Change(path, None, None) for path in paths)


def drift(live: Xml, expected: Xml, *, resent: bool = False) -> ConfigurationDrift:
    """Compare two configurations. Raises `UnreadableXml` if a configuration cannot be parsed.

    :param live: configuration of the server
    :param expected: configuration of the task
    :param resent: whether secrets, which cannot be compared, count as differences
    """
    server, user = _comparable(live), _comparable(expected)
    comparison = _Comparison(server, user, resent=resent)
    secrets = comparison.mask(server, user)
    return ConfigurationDrift(
        shown(server),
        shown(user),
        tuple(comparison.differences),
        tuple(comparison.uncompared),
        tuple(secrets),
    )


def normalized(source: Xml) -> str:
    """Return the normalized form of a configuration with masked secrets, for a diff."""
    root = _comparable(source)
    mask(root)
    return shown(root)


def compared(live: XmlElement | None, wanted: XmlElement) -> tuple[str | None, str]:
    """Return both configurations for a plan. They are equal if they have the same meaning."""
    return (None, normalized(wanted)) if live is None else drift(live, wanted).sides


def left_of(
    done: Plan,
    fields: Plan,
    found: ConfigurationDrift,
    *kinds: Literal["missing", "changed"],
    known: Mapping[str, str] | None = None,
) -> Plan:
    """Return the plan for what a write has left undone, with the paths in the configuration.

    :param done: plan of the write, with the field `config`
    :param fields: plan for the other fields that the write has left undone
    :param found: differences after the write, which become `data` of the plan
    :param kinds: differences that count if the server has changed the configuration
    :param known: digests of differences that no write removes, by path
    """
    left = found.without_known(known or {}).left(done.before.get("config"), *kinds)
    changes = (*fields.changes, *left)
    before = {**fields.before, "config": found.before}
    return Plan(before, done.after, "update" if changes else "none", changes, data=found)


def without_kept(task: Task, kind: str, name: str, found: ConfigurationDrift) -> ConfigurationDrift:
    """Return the comparison without the remembered differences, which no write removes [C11.1].

    The server adds some elements to each configuration, changes some, and does not take others. A
    write without effect shows that, and its differences are remembered. A warning names those that
    are wanted and that the server does not take.

    :param kind: kind of the object, such as `view`
    """
    left = found.without_known(task.server_values.known(kind, name))
    out = [each for each in found.differences if each not in left.differences]
    lost = [each.path for each in out if each.kind != "extra"]
    if lost:
        task.warn(not_taken(f"the {kind} '{name}'", lost))
    return left


def kind_of(text: str) -> str:
    """Return the kind of a job: the short name of the configuration's root element."""
    return short_root(parse(text).name)


def short_root(name: str) -> str:
    """Return the short name of a root element, for example `project`."""
    return _SHORT_ROOTS.get(name, name)


def is_enabled(text: str) -> bool:
    """Return whether a configuration describes an enabled job."""
    children = parse(text).children
    return all(child.text.strip() != "true" for child in children if child.name == "disabled")


def is_pinned(text: str) -> bool:
    """Return whether a configuration pins the job to the built-in node by leaving out `canRoam`.

    Server fact [ci-15]: a missing `canRoam` is false. Kinds without this member run anywhere.
    """
    root = parse(text)
    names = {child.name for child in root.children}
    return short_root(root.name) in _ROAMING and names.isdisjoint({"canRoam", "assignedNode"})


def with_enabled(text: str, enabled: bool | None) -> str:
    """Return a configuration without XML declaration that enables or disables the job.

    :param enabled: state of the job; `None` leaves the state unchanged
    """
    root = parse(text)
    disabled = text_of(root, "disabled") == "true"
    if enabled is None or disabled is not enabled:
        return without_declaration(text)
    added_child(root, "disabled").text = "false" if enabled else "true"
    return written(root)


def secrets(text: str) -> list[str]:
    """Return the secrets in a configuration that are recognizable by their kind or name."""
    return [secret for value in values_of(parse(text)) for secret in value.secrets()]


def masked_secrets(text: str) -> list[str]:
    """Return the names of elements that have asterisks instead of a secret.

    Server fact [ci-14]: a configuration with asterisks overwrites the secret with them.
    """
    values = values_of(parse(text))
    return [value.name for value in values if value.hides_secret]


def _comparable(source: Xml) -> XmlElement:
    """Return the normalized tree of a configuration."""
    root = parse(source) if isinstance(source, str) else deepcopy(source)
    parts_of_others.remove(root)
    root.name = short_root(root.name)
    for element, _holder in list(root.iterate()):
        element.attributes.pop(_PLUGIN, None)
        element.name = element.name.replace("__", "_")
        element.text = _normal_text(element)
        # the class of a collection, an inner array and generated elements depend on the program
        # that wrote the configuration [ci-31]
        children = [child for child in element.children if child.name not in _GENERATED]
        if not class_of(element):
            element.attributes.pop("class", None)
        if len(children) == 1 and children[0].attributes.get("class") == "string-array":
            children = children[0].children
        element.children = children
    rotator = child_of(root, "logRotator")
    if rotator is not None:
        # server fact [ci-15]: the server moves the rule that deletes old builds into the properties
        rotator.name = "strategy"
        rotator.attributes.setdefault("class", "hudson.tasks.LogRotator")
        root.children.remove(rotator)
        properties = added_child(root, "properties")
        if child_of(properties, _DISCARDER) is None:
            properties.children.append(XmlElement(_DISCARDER, children=[rotator]))
    actions = child_of(root, "actions")
    if actions is not None:
        actions.children = [
            each for each in actions.children if _simple(each.name) not in _OF_BUILDS
        ]
    return root


def _normal_text(element: XmlElement) -> str:
    """Return the text of an element without layout: outer blanks with a line break, and all outer
    blanks of numbers, booleans and elements with children. Other blanks are part of the value.
    """
    text = element.text.replace("\r\n", "\n")
    value = text.strip()
    if element.children or _LITERAL.fullmatch(value):
        return value
    outer = text.partition(value)[::2] if value else ("", text)
    before, after = ("" if "\n" in blanks else blanks for blanks in outer)
    return before + value + after


def class_of(element: XmlElement) -> str:
    """Return the attribute `class` of an element, or "" for a collection."""
    name = element.attributes.get("class", "")
    return "" if _COLLECTION.match(name) else name


class _ValuePair(NamedTuple):
    """A value with different strings in two elements: the text, or an attribute with this name."""

    live: XmlElement
    wanted: XmlElement
    name: str


class _Comparison:
    """Compares two element trees, and removes ignored differences from both.

    :param resent: whether secrets, which cannot be compared, count as differences
    """

    def __init__(self, live: XmlElement, wanted: XmlElement, *, resent: bool) -> None:
        self.differences: list[Difference] = []
        self.uncompared: list[str] = []
        self._resent = resent
        #: Values with differences, and secrets that cannot be compared.
        self._changed: list[_ValuePair] = []
        self._secrets: list[_ValuePair] = []
        if live.name == wanted.name:
            self._element(live, wanted, None, "")
        else:
            self._add(live.name, "extra", live, None)
            self._add(wanted.name, "missing", None, wanted)

    def mask(self, live: XmlElement, wanted: XmlElement) -> list[str]:
        """Mask the secrets in both trees. Return the values that the server has encrypted."""
        found = []
        for pair in (*self._secrets, *self._changed):
            if value_of(pair.live, pair.name).is_encrypted:
                found.append(value_of(pair.wanted, pair.name).text.strip())
                mask_value(pair.wanted, pair.name)
        for root in (live, wanted):
            mask(root)
        for pair in self._changed:
            shown = value_of(pair.wanted, pair.name).text
            if shown == value_of(pair.live, pair.name).text:
                new = shown.replace(MASK, _NEW_SECRET)
                set_value(pair.wanted, pair.name, new)
        return [text for text in found if len(text) >= SHORTEST]

    def _element(
        self, live: XmlElement, wanted: XmlElement, parent: XmlElement | None, path: str
    ) -> None:
        """Compare two elements. `parent` is the parent of the expected element."""
        changed: list[_ValuePair] = []
        secrets: list[_ValuePair] = []
        shared = live.attributes.keys() & wanted.attributes.keys()
        names = [] if live.text == wanted.text else [TEXT]
        names += [key for key in sorted(shared) if live.attributes[key] != wanted.attributes[key]]
        for name in names:
            pair = _ValuePair(live, wanted, name)
            is_secret = not self._resent and _is_secret(pair, parent)
            (secrets if is_secret else changed).append(pair)
        if changed or live.attributes.keys() != wanted.attributes.keys():
            own, other = (XmlElement(e.name, e.attributes, [], e.text) for e in (live, wanted))
            self._add(path or live.name, "changed", own, other)
        elif secrets:
            self.uncompared.append(path or live.name)
        self._changed.extend(changed)
        self._secrets.extend(secrets)
        in_list = is_list(live.children) or is_list(wanted.children)
        if in_list:
            pairs = list(_pairs_by_position(live.children, wanted.children))
        else:
            mine, theirs = ({c.name: c for c in each.children} for each in (live, wanted))
            pairs = [(mine.get(name), theirs.get(name)) for name in mine | theirs]
        live.children, wanted.children = [], []
        for here, (server_child, wanted_child) in zip(_paths(path, pairs), pairs, strict=True):
            if server_child is not None and wanted_child is not None:
                self._element(server_child, wanted_child, wanted, here)
            elif not in_list and (
                _is_default(server_child or wanted_child)
                or (server_child is not None and _is_added(server_child, live.name))
            ):
                continue  # a member that one configuration lacks, but that makes no difference
            else:
                kind: _Kind = "missing" if server_child is None else "extra"
                self._add(here, kind, server_child, wanted_child)
            live.children += [server_child] if server_child is not None else []
            wanted.children += [wanted_child] if wanted_child is not None else []

    def _add(
        self, path: str, kind: _Kind, live: XmlElement | None, wanted: XmlElement | None
    ) -> None:
        elements = [each for each in (live, wanted) if each is not None]
        values = [value for each in elements for value in values_of(each)]
        digest = ""
        if not any(value.may_be_secret or next(value.secrets(), "") for value in values):
            text = json.dumps([kind, *map(shown, elements)])
            digest = hashlib.sha256(text.encode()).hexdigest()
        self.differences.append(Difference(path, kind, digest))


def _is_secret(pair: _ValuePair, parent: XmlElement | None) -> bool:
    """Return whether a value differs only because the server has encrypted it."""
    live = value_of(pair.live, pair.name, parent)
    wanted = value_of(pair.wanted, pair.name, parent)
    if live.is_of_encrypted_kind:
        return bool(wanted.text.strip())
    shown = map(without_encrypted, (live.text, wanted.text))
    return len(set(shown)) == 1


def _paths(parent: str, pairs: Sequence[Pair]) -> Iterator[str]:
    """Yield the paths of an element's children: the names, with numbers for repeated names."""
    names = [(live or wanted or XmlElement("")).name for live, wanted in pairs]
    counts, seen = Counter(names), Counter[str]()
    for name in names:
        seen[name] += 1
        number = f"[{seen[name]}]" if counts[name] > 1 else ""
        yield f"{parent}/{name}{number}".lstrip("/")


def is_list(children: Sequence[XmlElement]) -> bool:
    """Return whether elements are the items of a list and not the members of an object.

    List items have class names or repeated names; members have the names of fields.
    """
    names = [child.name for child in children]
    return len(set(names)) < len(names) or any("." in name for name in names)


def _pairs_by_position(live: Sequence[XmlElement], wanted: Sequence[XmlElement]) -> Iterable[Pair]:
    """Pair the items at the common start and end of two lists. Items in between have no partner."""
    most = min(len(live), len(wanted))
    head = next((n for n in range(most) if live[n].name != wanted[n].name), most)
    left = most - head
    tail = next((n for n in range(left) if live[-1 - n].name != wanted[-1 - n].name), left)
    yield from zip(live[:head], wanted[:head], strict=True)
    yield from ((child, None) for child in live[head : len(live) - tail])
    yield from ((None, child) for child in wanted[head : len(wanted) - tail])
    yield from zip(live[len(live) - tail :], wanted[len(wanted) - tail :], strict=True)


def _is_default(element: XmlElement | None) -> bool:
    """Return whether a member of an object has its default value."""
    if element is None or element.children or set(element.attributes) - {"class"}:
        return False
    kind = element.attributes.get("class", "")
    if "." in kind and not kind.startswith("java.util.") and kind != _NO_SCM:
        return False
    return element.text in ("", "true" if element.name in _TRUE_BY_DEFAULT else "false")


def _is_added(element: XmlElement, holder: str) -> bool:
    """Return whether the server adds this member with its default value."""
    if element.name == "owner" and "reference" in element.attributes:
        return True
    if (holder, element.name) == SOURCE_ID or parts_of_others.VIEWS in (holder, element.name):
        return True
    if element.name in parts_of_others.VIEW_MEMBERS and _simple(holder).endswith("View"):
        return True
    if holder == "factory" and {element.name: element.text} == _SCRIPT:
        return True
    values = _ADDED.get((element.name, _simple(element.attributes.get("class", ""))))
    inner = (child for child, parent in element.iterate() if parent is not None)
    return values == {
        child.name: child.text
        for child in inner
        if "." in child.name
        or (child.text not in ("", "false") and (element.name, child.name) != _EITHER)
    }
