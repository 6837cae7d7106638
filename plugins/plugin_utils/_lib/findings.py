# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert results of modules to findings [C9].

A finding describes a compared object. It has `kind`, `name`, `action`, `text`, `before`, `after`
and `status`, which is `ok`, `drift`, `failed`, `unmanaged` or `unknown`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from ...module_utils._lib.core import json_text
from ...module_utils._lib.core.object_names import object_name
from . import kinds

Result = Mapping[str, Any]
Finding = dict[str, Any]

#: Kinds of findings about rules and scripts, which are no objects of a desired state.
RULED = ("item", "build", "trash", "script", "java", "server", "task")
#: Maximum number of findings for the items of a cleanup. One more finding contains the number of
#: all other items.
MAX_ITEMS = 1000
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


def without_file(kind: str, name: Any, *, marked: bool) -> Finding:
    """Return the finding of a page of a tree that has no file.

    :param marked: whether the tree wrote the page, so it may delete the page
    """
    why = ", because no file of its tree describes it"
    return unmanaged_object(kind, name, f"{why}; prune of the tree deletes it" if marked else why)


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


def of_analysis_config(result: Result) -> Iterator[Finding]:
    """Yield findings for planned, failed and unchanged objects."""
    errors = {
        (entry["kind"], entry["name"]): (entry.get("error") or {}).get("msg") or "failed"
        for entry in result.get("applied") or []
        if not entry["ok"]
    }
    unknown = {
        (kinds.singular(entry["kind"]), entry["name"]): entry["fields"]
        for entry in result.get("unknown") or []
    }
    planned = set()
    for entry in result.get("plan") or []:
        key = (entry["kind"], entry["name"])
        kind = kinds.singular(entry["kind"])
        planned.add((kind, entry["name"]))
        found = failed(kind, entry["name"], errors[key]) if key in errors else _of_plan(entry)
        yield with_unknown(found, unknown.pop((kind, entry["name"]), ()))
    left = (result.get("counts") or {}).get("unchanged") or 0
    for (kind, name), fields in list(unknown.items())[:left]:
        yield with_unknown(wanted(kind, name), fields)
    named = (obj for obj in _listed(result) if obj not in planned and obj not in unknown)
    yield from _unchanged(max(0, left - len(unknown)), named)


def _of_plan(entry: Mapping[str, Any]) -> Finding:
    kind, name, changes = kinds.singular(entry["kind"]), entry["name"], entry["changes"]
    before = {change["field"]: change.get("before") for change in changes}
    after = {change["field"]: change.get("after") for change in changes}
    if entry["action"] == "create":
        return missing(kind, name, after)
    if entry["action"] == "delete":
        return unwanted(kind, name, before)
    return different(kind, name, differing(before), before, after)


#: The options that identify an entry, by list option of `analysis_config`.
LISTS = {kind.list: kind.key for kind in kinds.KINDS if kind.module == "analysis_config"}


def _listed(result: Result) -> Iterator[tuple[str, str]]:
    """Yield kind and name of each object in the lists that the result contains."""
    for option, keys in LISTS.items():
        for entry in result.get(option) or []:
            yield kinds.singular(option), object_name(keys, entry)


def _unchanged(count: int, objects: Iterable[tuple[str, str]]) -> Iterator[Finding]:
    """Yield findings for `count` unchanged objects, with numbers if there are too few names.

    :param objects: pairs of kind and name
    """
    known = [obj for obj, _number in zip(objects, range(count), strict=False)]
    for kind, name in known:
        yield wanted(kind, name)
    for number in range(len(known), count):
        yield wanted("object", number + 1)


def of_artifact_cleanup(result: Result) -> Iterator[Finding]:
    """Yield findings for the items that a cleanup deletes, and for those that a rule keeps."""
    deleted = result.get("deleted") or []
    for item in deleted[:MAX_ITEMS]:
        before = {key: item.get(key) for key in ("size", "created")}
        yield unwanted("item", f"{item['repo']}/{item['path']}", before, why=item["reason"])
    rest = len(deleted) - MAX_ITEMS
    if rest > 0:
        yield unwanted("item", f"{rest} more", {"count": rest})
    for item in result.get("kept") or []:
        yield wanted("item", f"{item['repo']}/{item['path']}")


def of_build_retention(result: Result) -> Iterator[Finding]:
    """Yield findings for discarded builds, and for those that are kept."""
    project = result.get("project")
    name = f"{project}:{result['build_name']}" if project else result.get("build_name", "")
    for number in result.get("discarded") or []:
        yield unwanted("build", f"{name}/{number}", why="too old or too many")
    for number in result.get("kept") or []:
        yield wanted("build", f"{name}/{number}")


def of_artifact_trash(result: Result) -> Iterator[Finding]:
    """Yield a finding for each repository with items in the trash, or for a path in the trash."""
    name = "/".join(result[key] for key in ("repo", "path") if result.get(key))
    name = name or result.get("state") or "trash"
    if not result.get("changed"):
        yield wanted("trash", name)
        return
    before, after = (side if isinstance(side, Mapping) else {} for side in sides(result))
    left = after.get("children") or ()
    # only the diff of the whole trash lists repositories
    repositories = [key for key in before.get("children") or () if key not in left]
    for repository in repositories or [name]:
        yield unwanted("trash", repository, why="the trash contains items from it")


def of_ci_plugin_info(result: Result) -> Iterator[Finding]:
    """Yield findings for the plugins of a baseline or a lock file."""
    found: dict[str, Finding] = {}
    required = result.get("required") or {}
    entries = [] if isinstance(required, dict) else required
    versions = required if isinstance(required, dict) else {}
    versions = {**versions, **{entry["name"]: entry.get("version") for entry in entries}}
    for name in result.get("missing") or []:
        after = {"version": versions[name] or "any"} if name in versions else None
        found[name] = missing("plugin", name, after)
    for plugin in [*(result.get("outdated") or []), *(result.get("newer") or [])]:
        found[plugin["name"]] = _other_version(
            plugin["name"], plugin["installed"], plugin["required"]
        )
    for name in result.get("inactive") or []:
        found.setdefault(name, _switched(name, "disabled or not loaded", enabled=True))
    for plugin in result.get("unwanted") or []:
        found[plugin["name"]] = (
            unwanted("plugin", plugin["name"], {"version": plugin["installed"]})
            if plugin["state"] == "absent"
            else _switched(plugin["name"], "enabled, but should be disabled", enabled=False)
        )
    for name in result.get("extra") or []:
        found[name] = unwanted("plugin", name, why="it is not in the lock file")
    yield from found.values()
    names = list(versions)
    if result.get("lock_file"):
        names = [plugin["short_name"] for plugin in result.get("plugins") or []]
    yield from (wanted("plugin", name) for name in names if name not in found)


def _other_version(name: str, there: Any, version: Any) -> Finding:
    text = f"is {there}, but should be {version}"
    return different("plugin", name, text, {"version": there}, {"version": version})


def _switched(name: str, text: str, *, enabled: bool) -> Finding:
    return different("plugin", name, text, {"enabled": not enabled}, {"enabled": enabled})


def of_ci_plugin(result: Result) -> Iterator[Finding]:
    """Yield findings for plugins, except for dependencies that are installed automatically."""
    for plugin in result.get("plugins") or []:
        if plugin.get("implied"):
            continue
        name, action = plugin["name"], plugin["action"]
        if action == "installed":
            yield missing("plugin", name, {"version": plugin.get("after")})
        elif action == "updated":
            yield _other_version(name, plugin.get("before"), plugin.get("after"))
        elif action == "removed":
            yield unwanted("plugin", name, {"version": plugin.get("before")})
        elif action == "enabled":
            yield _switched(name, "disabled or not loaded", enabled=True)
        elif action == "disabled":
            yield _switched(name, "enabled, but should be disabled", enabled=False)
        else:
            yield wanted("plugin", name)


def of_ci_script(result: Result) -> Iterator[Finding]:
    """Yield the finding of a script."""
    name = result.get("name", "")
    if result.get("changed"):
        yield different("script", name, "would change something", *sides(result))
    else:
        yield wanted("script", name)


def of_java_version(result: Result) -> Iterator[Finding]:
    """Yield a finding for the Java of the CI server, if the supported versions are known."""
    supported = [int(version) for version in result.get("supported") or []]
    java = str(result.get("java") or "").removeprefix("1.")
    if not supported:
        return
    if java.isdecimal() and int(java) in supported:
        yield wanted("java", java)
        return
    release, versions = result.get("release"), " or ".join(map(str, supported))
    text = f"release {release} requires Java {versions}"
    yield different("java", java, text, {"java": java}, {"java": versions})


def sides(result: Result) -> tuple[Any, Any]:
    """Return `before` and `after` of a diff, with `None` for empty values."""
    diff = result.get("diff")
    if not isinstance(diff, Mapping):
        return None, None
    return _side(diff.get("before")), _side(diff.get("after"))


def _side(shown: Any) -> Any:
    """Return `before` or `after` of a diff. A JSON string is parsed."""
    if isinstance(shown, str) and shown.startswith("{"):
        with suppress(ValueError):
            shown = json_text.loads(shown)
    return shown or None


#: Readers by module. `java_version` names the script that the role `ci_baseline` runs.
READERS: Mapping[str, Callable[[Result], Iterator[Finding]]] = {
    "analysis_config": of_analysis_config,
    "artifact_cleanup": of_artifact_cleanup,
    "artifact_trash": of_artifact_trash,
    "build_retention": of_build_retention,
    "ci_plugin": of_ci_plugin,
    "ci_plugin_info": of_ci_plugin_info,
    "ci_script": of_ci_script,
    "java_version": of_java_version,
}


def compared(result: Result, module: str) -> list[Finding]:
    """Return a finding for each object in the result of a module, also for unchanged objects."""
    return list(READERS[module](result))
