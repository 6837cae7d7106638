# SPDX-License-Identifier: GPL-3.0-or-later
"""Permissions in one shape for both interfaces, and their changes [repo-43]."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...core.errors import invalid

Part = dict[str, Any]

#: Resources that are managed, by their names in Access and in the older interface.
RESOURCES = {"artifact": "repo", "build": "build", "release_bundle": "releaseBundle"}
#: Actions by their names in the older interface.
_OLD_ACTIONS = {
    **{name: name for name in ("read", "write", "annotate", "delete", "manage")},
    "scan": "managedXrayMeta",
    "execute": "distribute",
}
_NEW_ACTIONS = {old.lower(): new for new, old in _OLD_ACTIONS.items()}
ACTIONS = tuple(_OLD_ACTIONS)
_ALL = ["**"]


def from_access(row: Mapping[str, Any]) -> dict[str, Part]:
    """Return the managed resources of a permission that Access shows."""
    return {
        name: {
            "targets": _targets(
                (repo, one.get("include_patterns"), one.get("exclude_patterns"))
                for repo, one in _mapping(found.get("targets")).items()
            ),
            **_principals(found.get("actions")),
        }
        for name, found in _mapping(row.get("resources")).items()
        if name in RESOURCES and isinstance(found, Mapping)
    }


def from_older(row: Mapping[str, Any]) -> dict[str, Part]:
    """Return the managed resources of a permission that the older interface shows."""
    found = {name: row.get(old) for name, old in RESOURCES.items()}
    return {
        name: {
            "targets": _targets(
                (repo, one.get("include-patterns"), one.get("exclude-patterns"))
                for repo in one.get("repositories") or ()
            ),
            **_principals(one.get("actions")),
        }
        for name, one in found.items()
        if isinstance(one, Mapping)
    }


def to_access(part: Part) -> dict[str, Any]:
    """Return a resource as Access takes it."""
    actions = {
        kind: {name: [one.upper() for one in held] for name, held in part[kind].items()}
        for kind in ("users", "groups")
    }
    targets = {
        target["repo"]: {
            "include_patterns": target["includes"],
            "exclude_patterns": target["excludes"],
        }
        for target in part["targets"]
    }
    return {"actions": actions, "targets": targets}


def to_older(name: str, part: Part) -> dict[str, Any]:
    """Return a resource as the older interface takes it, with the same patterns for all targets."""
    first, *others = part["targets"]
    patterns = (first["includes"], first["excludes"])
    if any((other["includes"], other["excludes"]) != patterns for other in others):
        raise invalid(
            f"resources.{name}.targets have different patterns, which the older interface of this"
            " server cannot store: create separate permissions"
        )
    actions = {
        kind: {
            who: [_OLD_ACTIONS.get(one, one) for one in held] for who, held in part[kind].items()
        }
        for kind in ("users", "groups")
    }
    return {
        "include-patterns": first["includes"],
        "exclude-patterns": first["excludes"],
        "repositories": [target["repo"] for target in part["targets"]],
        "actions": actions,
    }


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _targets(rows: Iterable[tuple[str, Any, Any]]) -> list[dict[str, Any]]:
    """Return targets by repository. An empty list of includes comes back as `**`."""
    found = {
        repo: {
            "repo": repo,
            "includes": sorted(set(includes or [])) or _ALL,
            "excludes": sorted({exclude for exclude in excludes or [] if exclude}),
        }
        for repo, includes, excludes in rows
    }
    return [found[repo] for repo in sorted(found)]


def _principals(actions: Any) -> Part:
    found = _mapping(actions)
    return {kind: _held(_mapping(found.get(kind))) for kind in ("users", "groups")}


def _held(rows: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return the actions by name, in order; names without any action are left out."""
    every = {
        name: {_NEW_ACTIONS.get(str(one).lower(), str(one).lower()) for one in held or ()}
        for name, held in rows.items()
    }
    return {name: sorted(every[name]) for name in sorted(every) if every[name]}


def changed(current: Part | None, options: Mapping[str, Any], mode: str) -> Part | None:
    """Return a resource after the change; `None` if it has no members left.

    :param options: `targets` (entries with `repo`, `includes`, `excludes`), `users` and `groups`;
        a member that is `None` is not changed
    :param mode: `exact`, `add` or `remove`
    """
    before = current or {"targets": [], "users": {}, "groups": {}}
    after = dict(before)
    if options.get("users") is not None:  # the server writes their names in lower case
        options = {**options, "users": {who.lower(): one for who, one in options["users"].items()}}
    if options.get("targets") is not None:
        after["targets"] = _changed_targets(before["targets"], options["targets"], mode)
    for kind in ("users", "groups"):
        if options.get(kind) is not None:
            named = {
                name.lower() if kind == "users" else name: v for name, v in options[kind].items()
            }
            after[kind] = _changed_principals(before[kind], named, mode)
    return after if after["targets"] or after["users"] or after["groups"] else None


def _changed_targets(
    before: list[dict[str, Any]], options: Iterable[Mapping[str, Any]], mode: str
) -> list[dict[str, Any]]:
    held = {} if mode == "exact" else {record["repo"]: record for record in before}
    for record in options:
        repo = record["repo"]
        if mode == "remove":
            held.pop(repo, None)
            continue
        known = held.get(repo)
        includes, excludes = list(record.get("includes") or ()), list(record.get("excludes") or ())
        if known is not None:
            includes += known["includes"] if includes else ()
            includes, excludes = includes or known["includes"], [*excludes, *known["excludes"]]
        held[repo] = {"repo": repo, "includes": includes, "excludes": excludes}
    return _targets(
        (record["repo"], record["includes"], record["excludes"]) for record in held.values()
    )


def _changed_principals(
    before: Mapping[str, list[str]], options: Mapping[str, Any], mode: str
) -> dict[str, list[str]]:
    if mode == "exact":
        return _held(options)
    after = {name: set(held) for name, held in before.items()}
    for name, actions in _held(options).items():
        held = after.get(name, set())
        after[name] = held | set(actions) if mode == "add" else held - set(actions)
    return _held(after)
