# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert permissions from and to the formats of both APIs, and compute their changes [repo-43].

A resource is a dict. `targets` is a list of dicts with `repo`, `includes` and `excludes`; `users`
and `groups` are dicts of lists of actions, by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ...core.errors import invalid

Part = dict[str, Any]

#: Managed resources: their names in Access, and in the older API.
RESOURCES = {"artifact": "repo", "build": "build", "release_bundle": "releaseBundle"}
#: Actions, and their names in the older API.
_OLD_ACTIONS = {
    **{name: name for name in ("read", "write", "annotate", "delete", "manage")},
    "scan": "managedXrayMeta",
    "execute": "distribute",
}
_NEW_ACTIONS = {old.lower(): new for new, old in _OLD_ACTIONS.items()}
ACTIONS = tuple(_OLD_ACTIONS)
_ALL = ["**"]


def from_access(row: Mapping[str, Any]) -> dict[str, Part]:
    """Return the managed resources of a permission in a response of Access, by name."""
    return {
        name: {
            "targets": _targets(
                (repo, target.get("include_patterns"), target.get("exclude_patterns"))
                for repo, target in _mapping(found.get("targets")).items()
            ),
            **_principals(found.get("actions")),
        }
        for name, found in _mapping(row.get("resources")).items()
        if name in RESOURCES and isinstance(found, Mapping)
    }


def from_older(row: Mapping[str, Any]) -> dict[str, Part]:
    """Return the managed resources of a permission in a response of the older API, by name."""
    found = {name: row.get(old) for name, old in RESOURCES.items()}
    return {
        name: {
            "targets": _targets(
                (repo, resource.get("include-patterns"), resource.get("exclude-patterns"))
                for repo in resource.get("repositories") or ()
            ),
            **_principals(resource.get("actions")),
        }
        for name, resource in found.items()
        if isinstance(resource, Mapping)
    }


def to_access(part: Part) -> dict[str, Any]:
    """Return a resource in the format of Access."""
    actions = {
        kind: {name: [action.upper() for action in names] for name, names in part[kind].items()}
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
    """Return a resource in the format of the older API.

    Raises `invalid` if its targets have different patterns, which that API cannot store.

    :param name: name of the resource for the message
    """
    first, *others = part["targets"]
    patterns = (first["includes"], first["excludes"])
    if any((other["includes"], other["excludes"]) != patterns for other in others):
        raise invalid(
            f"resources.{name}.targets have different patterns, which the older API of this server"
            " cannot store: create separate permissions"
        )
    actions = {
        kind: {
            principal: [_OLD_ACTIONS.get(action, action) for action in names]
            for principal, names in part[kind].items()
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
    """Return targets, sorted by repository.

    :param rows: repository, include patterns and exclude patterns. The server returns `**` if no
        include pattern is set
    """
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
    return {kind: _actions_by_name(_mapping(found.get(kind))) for kind in ("users", "groups")}


def _actions_by_name(rows: Mapping[str, Any]) -> dict[str, list[str]]:
    """Return sorted actions by the name of the user or group; names without actions are dropped."""
    every = {
        name: {
            _NEW_ACTIONS.get(str(action).lower(), str(action).lower()) for action in actions or ()
        }
        for name, actions in rows.items()
    }
    return {name: sorted(every[name]) for name in sorted(every) if every[name]}


def changed(current: Part | None, options: Mapping[str, Any], mode: str) -> Part | None:
    """Return a resource after the change; `None` if it has no targets, users and groups left.

    :param current: the resource before the change; `None` if the permission does not have it
    :param options: wanted `targets`, `users` and `groups`; those that are `None` are not changed
    :param mode: `exact` replaces them, `add` and `remove` change their entries
    """
    before = current or {"targets": [], "users": {}, "groups": {}}
    after = dict(before)
    if options.get("users") is not None:  # the server stores their names in lower case
        users = {name.lower(): actions for name, actions in options["users"].items()}
        options = {**options, "users": users}
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
    targets = {} if mode == "exact" else {record["repo"]: record for record in before}
    for record in options:
        repo = record["repo"]
        if mode == "remove":
            targets.pop(repo, None)
            continue
        known = targets.get(repo)
        includes, excludes = list(record.get("includes") or ()), list(record.get("excludes") or ())
        if known is not None:
            includes += known["includes"] if includes else ()
            includes, excludes = includes or known["includes"], [*excludes, *known["excludes"]]
        targets[repo] = {"repo": repo, "includes": includes, "excludes": excludes}
    return _targets(
        (record["repo"], record["includes"], record["excludes"]) for record in targets.values()
    )


def _changed_principals(
    before: Mapping[str, list[str]], options: Mapping[str, Any], mode: str
) -> dict[str, list[str]]:
    if mode == "exact":
        return _actions_by_name(options)
    after = {name: set(actions) for name, actions in before.items()}
    for name, actions in _actions_by_name(options).items():
        current = after.get(name, set())
        after[name] = current | set(actions) if mode == "add" else current - set(actions)
    return _actions_by_name(after)
