# SPDX-License-Identifier: GPL-3.0-or-later
"""Encode, read, set and compare the properties of items.

Server fact [repo-18]: the server parses `name=value,value|name=value`. It splits properties at `|`
and `;`, names from values at `=`, and values at `,`, unless a backslash precedes the separator. It
trims each property, and silently drops a property with two `=`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

from ..core.errors import ToolchainError, error_text, invalid
from ..core.verification import not_saved, without_effect
from . import aql
from .client import RepoClient, item_path, object_of

Properties = Mapping[str, list[str]]

#: Maximum length of the encoded properties in a request: servers and proxies reject addresses of 8
#: KiB and more.
_LONGEST = 6000
#: Maximum number of files that are read without a query.
_FEW = 2
#: Maximum number of folders in a query.
_FOLDERS = 100
_PROPERTY = ["property"]
_SEPARATOR = re.compile(r"([,=|;])")
_FORBIDDEN = re.compile(r"[)(}{\]\[*+^$\\/~`!@#%&<>;=,±§|\s]")


def properties_of(option: Mapping[str, Any] | None) -> dict[str, list[str]]:
    """Return the option `properties` with lists of strings as values, without `None` values.

    Raises `invalid` for values that the server would reject, change or silently drop.
    """
    return {
        str(name): _values(str(name), value)
        for name, value in (option or {}).items()
        if value is not None
    }


def check_name(name: str) -> None:
    """Raise `invalid` for a property name that the server would reject."""
    if name == "":
        raise invalid("a property has an empty name, which the server rejects")
    found = _FORBIDDEN.search(name)
    if found is not None:
        shown = "a blank" if found[0] == " " else repr(found[0])
        raise invalid(
            f"the name of the property '{name}' contains {shown}, which the server rejects"
        )


def _values(name: str, value: Any) -> list[str]:
    check_name(name)
    # the server's parser changes some values unless they are first or last
    values = sorted(dict.fromkeys(texts_of(value)), key=_safe_position)
    if not values:
        raise invalid(f"the property '{name}' has no value: set one, or remove the property")
    if len(values) > 1 and values[-2].endswith("\\"):
        raise invalid(f"the property '{name}' has two values that end with a backslash")
    if _safe_position(values[-1]) == 1:
        raise invalid(
            f"the property '{name}' has a value that ends with a blank, which the server removes"
        )
    return values


def texts_of(value: str | list[str]) -> list[str]:
    """Return the values of a property as a list."""
    return value if isinstance(value, list) else [value]


def _safe_position(value: str) -> int:
    """Return a sort key that puts a value where the server's parser preserves it.

    The parser loses a trailing empty value or blank. A backslash at the end of a value escapes the
    separator that follows.
    """
    if value == "":
        return 0
    if value[-1].isspace() or value[-1] <= " ":
        return 1
    return 3 if value.endswith("\\") else 2


def encode(properties: Properties) -> dict[str, Properties]:
    """Encode properties for the query parameter `properties`.

    Returns the encoded strings, each with the properties that it contains. Usually this is a single
    string. A new string begins if the URL would become too long, or after a value that ends with a
    backslash.
    """
    encoded: dict[str, Properties] = {}
    text, part = "", dict[str, list[str]]()
    for name, values in properties.items():
        entry = f"{_escape(name)}={','.join(_escape(value) for value in values)}"
        joined = f"{text}|{entry}" if part else entry
        if part and (text.endswith("\\") or len(quote(joined, safe="")) > _LONGEST):
            encoded[text] = part
            joined, part = entry, {}
        text, part = joined, {**part, name: values}
    return {**encoded, text: part} if part else encoded


def _escape(text: str) -> str:
    return _SEPARATOR.sub(r"\\\1", text)


def are_set(current: Mapping[str, Any] | None, wanted: Properties) -> bool | None:
    """Return whether `current` has the wanted values, in any order.

    Returns `None` if the current properties are unknown.
    """
    if current is None:
        return None
    return all(set(map(str, current.get(name, []))) == set(wanted[name]) for name in wanted)


def read(client: RepoClient, repo: str, path: str) -> dict[str, list[str]] | None:
    """Return the properties of an existing item; `None` if the server does not return properties.

    In that case no further requests for properties are sent. Server fact [repo-18]: for an item
    without properties the server returns 404 with the message "No properties".
    """
    if not client.reports_properties:
        return None
    response = client.transport.read(
        f"reading the properties of '{repo}/{path}'",
        f"api/storage/{item_path(repo, path)}?properties",
        expect=(200, 400, 404, 405),
    )
    if response.status == 404 and "no properties" in error_text(response.text).lower():
        return {}
    found = None
    if response.status == 200:
        found = object_of(response, "properties").get("properties")
    client.reports_properties = isinstance(found, Mapping)
    if not isinstance(found, Mapping):
        return None
    return {str(name): list(map(str, texts_of(values))) for name, values in found.items()}


def read_below(
    client: RepoClient, repo: str, folder: str, kind: str = "file"
) -> dict[str, dict[str, list[str]]] | None:
    """Read the properties of all items below a folder with a single query.

    :param kind: `file` or `folder`
    :returns: properties by the path of the item; `None` if the server does not support the query
    """
    if not client.dialect.query_by_property:
        return None
    criteria = {"repo": repo, "type": kind, **aql.below(folder)}
    purpose = f"reading the properties below '{repo}/{folder}'"
    rows = aql.ask_if_supported(client, purpose, criteria, _PROPERTY)
    return None if rows is None else _by_path(rows)


def _by_path(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, list[str]]]:
    """Return the properties of query rows, by the path of the item."""
    found: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        known = found.setdefault(aql.path_in(row), {})
        # some servers return a row per property, not a row per item
        for name, values in aql.properties_in(row).items():
            known.setdefault(name, []).extend(values)
    return found


def read_at(client: RepoClient, repo: str, paths: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    """Query the properties of files by path; files that the query does not find are missing.

    Returns nothing for at most two files, because single requests are cheaper then.
    """
    found: dict[str, dict[str, list[str]]] = {}
    folders = sorted({path.rpartition("/")[0] or "." for path in paths})
    if len(paths) > _FEW and client.dialect.query_by_property:
        for start in range(0, len(folders), _FOLDERS):
            some = [{"path": folder} for folder in folders[start : start + _FOLDERS]]
            criteria = {"repo": repo, "type": "file", "$or": some}
            rows = aql.ask_if_supported(
                client, f"reading properties in '{repo}'", criteria, _PROPERTY
            )
            found |= _by_path(rows or [])
    return {path: found[path] for path in paths if path in found}


def predict(client: RepoClient, repo: str, path: str, values: Properties) -> None:
    """Record the properties that an item would have after the task, for later check-mode tasks."""
    client.predictions.add("properties", repo, path, value=dict(values))


def write(
    client: RepoClient,
    repo: str,
    path: str,
    properties: Properties,
    *,
    recursive: bool | None = None,
    contested: Collection[str] = (),
) -> None:
    """Set properties of an item and verify them; other properties keep their values [W4.1].

    :param recursive: whether to set them on the content of a folder too; `None` for a file
    :param contested: names of properties that a concurrent task may set to other values
    :raises ToolchainError: `rejected` if the server dropped a property without an error
    """
    purpose = f"setting properties of '{repo}/{path}'"
    address = f"{client.dialect.properties}/{item_path(repo, path)}"
    for text, part in encode(properties).items():
        client.write(
            purpose,
            "PUT",
            address,
            query={"properties": text, **_reach(client, recursive)},
            verify=partial(_verify, client, repo, path, part),
            repeatable=True,
        )
    after = read(client, repo, path)
    theirs = {name: after[name] for name in contested if after and after.get(name)}
    if are_set(after, {**properties, **theirs}) is False:
        raise _dropped(purpose, properties, after or {})


def _verify(client: RepoClient, repo: str, path: str, wanted: Properties) -> bool | None:
    return are_set(read(client, repo, path), wanted)


def _reach(client: RepoClient, recursive: bool | None) -> dict[str, int]:
    """Return the query parameter `recursive`; the written interface only allows the value 1."""
    if recursive:
        return {"recursive": 1}
    reported = recursive is not None and client.dialect.recursive_by_default
    return {"recursive": 0} if reported else {}


def remove(
    client: RepoClient, repo: str, path: str, names: Sequence[str], *, recursive: bool
) -> None:
    """Remove properties of an item; only the dialect `jfrog` supports this [C1.5].

    Raises `rejected` if the server kept a property without an error.
    """
    purpose = f"removing properties of '{repo}/{path}'"
    query = {"properties": ",".join(names), **_reach(client, recursive)}

    def still_there() -> list[str] | None:
        after = read(client, repo, path)
        return None if after is None else [name for name in names if name in after]

    def are_gone() -> bool | None:
        left = still_there()
        return None if left is None else not left

    address = f"api/storage/{item_path(repo, path)}"
    client.write(purpose, "DELETE", address, query=query, verify=are_gone, repeatable=True)
    left = still_there()
    if left:
        error = without_effect(purpose, f"still has {', '.join(left)}")
        error.kind = "rejected"
        raise error


def _dropped(purpose: str, wanted: Properties, found: Mapping[str, list[str]]) -> ToolchainError:
    lost = [name for name in wanted if set(found.get(name, [])) != set(wanted[name])]
    message = ", ".join(f"{name}={json.dumps(found.get(name, []))}" for name in lost)
    error = not_saved(purpose, lost)
    error.detail = f"the server has {message}"
    return error
