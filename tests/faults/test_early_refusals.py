# SPDX-License-Identifier: GPL-3.0-or-later
"""Verify that odd values are rejected before the first request, unless only a read shows that they
are invalid [C1.6].
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from sandbox.client import Sandbox
from tests.helpers import connections, forked
from tests.helpers.cases import CASES, MODULES, connection_options, first_arguments, seed, settings
from tests.unit.test_slips import REFUSED, Spot, options_of, slips, spots

FLAVOUR = "real"
TEXTS = ("..", "a//b", "/", "*", "a?b#c", "a\tb", "%2F")
#: The texts that an option gets, in turn.
_TEXTS_EACH = 3
#: Messages about what only the server knows.
READ = re.compile(
    "has a wildcard in its name: set the name of one object"  # unless an object has this name
    "|contains wildcards, but must name a single version"
    "|is a pattern, but each build must be listed by its number"
    "|this (severity|status|state) does not exist in the project"
    "|the task's account .* would (lose|no longer)"
    "|would be deleted, but max_deletions is|max_deletions is [0-9]+, but .* would be removed|would delete .*, more than max_deletions"
    "|the input '.*' \\(.*\\) (needs|has no parameter)"
    "|would have no resources|of '.*' would be empty"
    "|the tracker has (no field|only the types)"
    "|\\* does not match slashes, write"
)


def odd(option: Mapping[str, Any], number: int) -> Iterator[Any]:
    """Yield values that the type of an option takes. `number` is that of the option."""
    kind = option.get("type", "str")
    turns = range(number * _TEXTS_EACH, (number + 1) * _TEXTS_EACH)
    words = () if option.get("choices") else [TEXTS[turn % len(TEXTS)] for turn in turns]
    if kind in ("int", "float"):
        yield from (0, -1, 10**9)
    elif kind == "list" and option["elements"] in ("str", "path"):
        yield from (*([word] for word in words), ["same", "same"])
    elif kind in ("list", "dict"):
        yield from (value for value, right in slips(option) if right is not REFUSED)
        yield [] if kind == "list" else {}
    elif kind in ("str", "path", "raw"):
        yield from words


def changed(given: Mapping[str, Any], spot: Spot, value: Any) -> dict[str, Any] | None:
    """Return the arguments with another value at a spot; `None` if they have no such spot."""
    found: dict[str, Any] = {**given}
    holder: Any = found
    for part in spot.path[:-1]:
        inner = holder[part] if isinstance(part, int) else holder.get(part)
        if not inner or not isinstance(inner, (list, dict)):
            return None
        holder[part] = [*inner] if isinstance(inner, list) else {**inner}
        holder = holder[part]
    holder[spot.path[-1]] = value
    return found


@pytest.fixture(scope="module")
def server(fresh: Callable[[str], Sandbox]) -> Sandbox:
    return fresh(FLAVOUR)


def refused_late(name: str, server: Sandbox, folder: Path) -> Iterator[str]:
    """Yield the values of a module that are rejected as invalid after a request."""
    service = CASES[name]["service"]
    login = connections.connection(service, server.urls[service])
    given = {**first_arguments(name), **login, **connection_options(name, FLAVOUR)}
    chosen = [
        (f"{spot.place} {value!r:.80}", arguments)
        for number, spot in enumerate(spots(options_of(name)))
        for value in odd(spot.option, number)
        if (arguments := changed(given, spot, value)) is not None
    ]
    assert chosen or not options_of(name)
    with forked.worker(folder) as run_module:
        for what, arguments in chosen:
            result = run_module(name, {**forked.rendered(arguments), "_ansible_check_mode": True})
            is_invalid = result.get("error", {}).get("kind") == "invalid"
            if is_invalid and result["http"]["requests"] and not READ.search(result["msg"]):
                yield f"{what}: {result['msg']}"


@pytest.mark.parametrize("name", MODULES)
def test_invalid_value_is_rejected_before_any_request(
    name: str, server: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)  # before another read
    server.reset(settings(name), seed(name))
    late = list(refused_late(name, server, tmp_path))
    assert not late, "\n".join(late)
