# SPDX-License-Identifier: GPL-3.0-or-later
"""Encode, read, set and compare the properties of items.

Server fact [repo-18] (the parser): entries are split at `|` and `;`, name and values at `=`, values
at `,`, unless a backslash precedes. Entries are trimmed, and an entry with two `=` is dropped
silently.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any
from urllib.parse import quote

from ..core.errors import ToolchainError, error_text, invalid
from ..core.http.messages import Response
from . import aql
from .client import RepoClient, item_path, object_of

Properties = Mapping[str, list[str]]

#: Maximum length of the encoded properties in a request: servers and proxies reject addresses of 8
#: KiB and more.
_LONGEST = 6000
#: Number of items up to which each is read on its own, and of folders in a query.
_FEW, _FOLDERS = 2, 100
_PROPERTY = ["property"]
_SEPARATOR = re.compile(r"([,=|;])")
_FORBIDDEN = re.compile(r"[)(}{\]\[*+^$\\/~`!@#%&<>;=,±§|\s]")


def properties_of(option: Mapping[str, Any] | None) -> dict[str, list[str]]:
    """Return the values of an option `properties` as lists of strings, without entries that are
    `None`.

    Raises `invalid` for values that the server would reject, change or drop silently.
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
    # some values must be first or last to survive the server's parser: see `_rank`
    values = sorted(dict.fromkeys(texts_of(value)), key=_rank)
    if not values:
        raise invalid(f"the property '{name}' has no value: set one, or remove the property")
    if len(values) > 1 and values[-2].endswith("\\"):
        raise invalid(f"the property '{name}' has two values that end with a backslash")
    if _rank(values[-1]) == 1:
        raise invalid(
            f"the property '{name}' has a value that ends with a blank, which the server removes"
        )
    return values


def texts_of(value: str | list[str]) -> list[str]:
    """Return the value of a property, a string or a list of strings, as a list."""
    return value if isinstance(value, list) else [value]


def _rank(value: str) -> int:
    """Return the position in an entry: a trailing empty value or blank is lost, and a final
    backslash escapes the separator.
    """
    if value == "":
        return 0
    if value[-1].isspace() or value[-1] <= " ":
        return 1
    return 3 if value.endswith("\\") else 2


def encode(properties: Properties) -> dict[str, Properties]:
    """Return the strings for `properties=`, usually a single string, with the properties that they
    set.

    A string ends before the address becomes too long, and after a value that ends with a backslash.
    """
    found: dict[str, Properties] = {}
    text, part = "", dict[str, list[str]]()
    for name, values in properties.items():
        entry = f"{_escape(name)}={','.join(_escape(value) for value in values)}"
        joined = f"{text}|{entry}" if part else entry
        if part and (text.endswith("\\") or len(quote(joined, safe="")) > _LONGEST):
            found[text] = part
            joined, part = entry, {}
        text, part = joined, {**part, name: values}
    return {**found, text: part} if part else found


def _escape(text: str) -> str:
    return _SEPARATOR.sub(r"\\\1", text)


def are_set(current: Mapping[str, Any] | None, wanted: Properties) -> bool | None:
    """Return whether `current` has the wanted values in any order; `None` if it is unknown."""
    if current is None:
        return None
    return all(set(map(str, current.get(name, []))) == set(wanted[name]) for name in wanted)


def read(client: RepoClient, repo: str, path: str) -> dict[str, list[str]] | None:
    """Return the properties of an existing item; `None` if the server does not support this.

    An unsupported request is sent only once.
    Server fact [repo-18]: an item without properties is a 404 with a message.
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
    found = _of_response(response) if response.status == 200 else None
    client.reports_properties = found is not None
    return found


def _of_response(response: Response) -> dict[str, list[str]] | None:
    found = object_of(response, "properties").get("properties")
    if not isinstance(found, Mapping):
        return None
    return {
        str(name): [str(value) for value in (values if isinstance(values, list) else [values])]
        for name, values in found.items()
    }


def read_below(
    client: RepoClient, repo: str, folder: str, kind: str = "file"
) -> dict[str, dict[str, list[str]]] | None:
    """Return the properties of all items of this `kind` below a folder with a single query; `None`
    if the server does not support that.
    """
    if not client.dialect.query_by_property:
        return None
    criteria: dict[str, Any] = {"repo": repo, "type": kind}
    if folder:
        criteria["$or"] = [{"path": folder}, {"path": {"$match": f"{folder}/*"}}]
    purpose = f"reading the properties below '{repo}/{folder}'"
    rows = aql.ask_if_supported(client, purpose, criteria, _PROPERTY)
    return None if rows is None else _by_path(rows)


def _by_path(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, list[str]]]:
    """Return the properties of the items in rows, by path."""
    found: dict[str, dict[str, list[str]]] = {}
    for row in rows:
        parent = "" if row.get("path") in (".", None) else f"{row['path']}/"
        known = found.setdefault(f"{parent}{row.get('name')}", {})
        # a server may send a row per property
        for name, values in aql.properties_in(row).items():
            known.setdefault(name, []).extend(values)
    return found


def read_at(client: RepoClient, repo: str, paths: Sequence[str]) -> dict[str, dict[str, list[str]]]:
    """Return the properties of those of many files that queries find."""
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
    """In check mode, remember the properties that the task would leave at an item."""
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
    """Set properties of an item and verify them; its other properties are kept.

    :param recursive: whether the content of a folder gets them too; `None` for a file
    :param contested: properties that another task may set to another value at the same time
    :raises ToolchainError: `rejected` if the server reported success and dropped a property

    Written interface [W4.1].
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
    """Return the query for the scope of a change. The written interface only has `1`."""
    if recursive:
        return {"recursive": 1}
    reported = recursive is not None and client.dialect.recursive_by_default
    return {"recursive": 0} if reported else {}


def remove(
    client: RepoClient, repo: str, path: str, names: Sequence[str], *, recursive: bool
) -> None:
    """Remove properties of an item. Raises `rejected` if the server keeps a property.

    Interface contract [C1.5]: only some servers support this.
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
        message = f"the server reported success but still has {', '.join(left)}"
        raise ToolchainError("rejected", f"{purpose}: {message}")


def _dropped(purpose: str, wanted: Properties, found: Mapping[str, list[str]]) -> ToolchainError:
    lost = [name for name in wanted if set(found.get(name, [])) != set(wanted[name])]
    message = ", ".join(f"{name}={json.dumps(found.get(name, []))}" for name in lost)
    return ToolchainError(
        "rejected",
        f"{purpose}: the server reported success but did not save {', '.join(lost)}",
        detail=f"the server has {message}",
    )
