# SPDX-License-Identifier: GPL-3.0-or-later
"""Word the findings of modules [C9].

A finding describes a compared object. It has `kind`, `name`, `action`, `text`, `before`, `after`
and `status`, which is `ok`, `drift`, `failed`, `unmanaged` or `unknown`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Finding = dict[str, Any]

#: Kinds of findings about rules and scripts, which are no objects of a desired state.
RULED = ("item", "build", "trash", "script", "java", "server", "task")
#: Beginnings of texts before and after a write. The first that fits counts.
_WRITTEN = {
    "missing": "created",
    "differs in": "updated",
    "differs": "updated",
    "not wanted": "deleted",
}
#: Kinds of objects that are compared as XML with one element per line.
_XML_KINDS = ("credential", "job", "node", "view")
#: A tag at the beginning of a line. Values contain no `<` and `>`.
_TAG = re.compile(r"\s*<(?P<close>/?)(?P<name>[\w.:-]+)[^>]*?(?P<empty>/?)>")
_MOST_PATHS = 3


def _finding(kind: str, name: Any, action: str, text: str, status: str, **sides: Any) -> Finding:
    return {
        "kind": kind,
        "name": str(name),
        "action": action,
        "text": f"{kind} {name}: {text}",
        "before": sides.get("before"),
        "after": sides.get("after"),
        "status": status,
    }


def wanted(kind: str, name: Any) -> Finding:
    """Return the finding of an object in its desired state."""
    return _finding(kind, name, "none", "as wanted", "ok")


def missing(kind: str, name: Any, after: Any = None) -> Finding:
    """Return the finding of an object that must be created."""
    return _finding(kind, name, "create", "missing", "drift", after=after)


def unwanted(kind: str, name: Any, before: Any = None, *, why: str = "") -> Finding:
    """Return the finding of an object that must be deleted."""
    text = f"not wanted, {why}" if why else "not wanted"
    return _finding(kind, name, "delete", text, "drift", before=before)


def different(kind: str, name: Any, text: str, before: Any = None, after: Any = None) -> Finding:
    """Return the finding of an object that must be updated.

    :param text: describes the difference; of XML, the changed elements follow by path
    """
    if kind in _XML_KINDS:
        text = _with_paths(text, before, after)
    return _finding(kind, name, "update", text, "drift", before=before, after=after)


def _with_paths(text: str, before: Any, after: Any) -> str:
    """Return the text of a finding with the paths of changed elements of a configuration."""
    names = ["config"]
    is_whole = text == "differs"
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        names = list(before)
        before, after = before.get("config"), after.get("config")
    if not (is_whole or text == differing(names)):
        return text
    if not (isinstance(before, str) and isinstance(after, str)):
        return text
    paths = _changed_paths(before, after) or ([] if is_whole else ["config"])
    return differing(each for name in names for each in (paths if name == "config" else [name]))


def _changed_paths(before: str, after: str) -> list[str]:
    """Return the paths of the outermost elements that differ, at most three."""
    one, two = (Counter(_placed_lines(side)) for side in (before, after))
    paths: list[str] = []
    for path, _line in (one - two) + (two - one):
        if path and not any(f"{path}/".startswith(f"{known}/") for known in paths):
            paths.append(path)
    return paths[:_MOST_PATHS]


def _placed_lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield the path of the element of each line, without the root element, and the line."""
    above: list[str] = []
    for line in text.splitlines():
        tag = _TAG.match(line)
        if tag is not None and not tag["close"]:
            above.append(tag["name"])
        yield "/".join(above[1:] or above), line
        is_closed = above and (line.endswith(f"</{above[-1]}>") or (tag and tag["empty"]))
        if is_closed:
            above.pop()


def differing(names: Iterable[str]) -> str:
    """Return the text of a finding for an object that differs in the given fields."""
    fields = ", ".join(names)
    return f"differs in {fields}" if fields else "differs"


def done(finding: Mapping[str, Any]) -> str:
    """Return the text of a finding after its object has been created, updated or deleted."""
    start = f"{finding['kind']} {finding['name']}: "
    text = str(finding["text"]).removeprefix(start)
    for planned, written in _WRITTEN.items():
        if text.startswith(planned):
            return f"{start}{written}{text.removeprefix(planned)}"
    return str(finding["text"])


def failed(kind: str, name: Any, text: str) -> Finding:
    """Return the finding of an object that could not be read or written."""
    reason = text.removeprefix(f"the {kind} '{name}': ")
    return _finding(kind, name, "none", reason, "failed")


def unmanaged_object(kind: str, name: Any, why: str = "") -> Finding:
    """Return the finding of an object that the desired state does not name."""
    return _finding(kind, name, "none", f"not managed{why}", "unmanaged")


def not_compared(kind: str, name: Any, text: str) -> Finding:
    """Return the finding of an object whose state the run does not know.

    :param text: the reason
    """
    return _finding(kind, name, "none", text, "unknown")


def with_unknown(finding: Finding, unknown: Iterable[str]) -> Finding:
    """Return a finding of an object of which some fields could not be compared.

    :param unknown: names of the fields
    """
    named = ", ".join(unknown)
    if not named or finding["action"] not in ("none", "update") or finding["status"] == "failed":
        return finding
    kind, name = finding["kind"], finding["name"]
    if finding["status"] == "ok":
        return _finding(kind, name, "none", f"cannot compare {named}", "unknown")
    return {**finding, "text": f"{finding['text']}; cannot compare {named}"}


def with_unsupported(finding: Finding, sentences: Iterable[str]) -> Finding:
    """Return a finding of an object of which the server cannot hold some parts.

    :param sentences: a sentence for each part
    """
    text = "; ".join(map(str, sentences))
    if not text or finding["status"] == "failed" or finding["action"] == "delete":
        return finding
    if finding["status"] == "ok":
        return _finding(finding["kind"], finding["name"], "none", text, "unknown")
    return {**finding, "text": f"{finding['text']}; {text}"}


def of_java_version(result: Mapping[str, Any]) -> list[Finding]:
    """Return the finding of the Java of the CI server, if the supported versions are known.

    The role `ci_baseline` reads the version with a script.
    """
    supported = [int(version) for version in result.get("supported") or []]
    java = str(result.get("java") or "").removeprefix("1.")
    if not supported:
        return []
    if java.isdecimal() and int(java) in supported:
        return [wanted("java", java)]
    release, versions = result.get("release"), " or ".join(map(str, supported))
    text = f"release {release} requires Java {versions}"
    return [different("java", java, text, {"java": java}, {"java": versions})]
