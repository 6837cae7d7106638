# SPDX-License-Identifier: GPL-3.0-or-later
"""Test typos and invalid values against the argument specs of all modules.

Every such value must be rejected or understood as meant. The specs are read from the modules, so
new options are tested automatically.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.basic import PASSWORD_MATCH

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module import (
    input_check,
    runner,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection import options
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.typed_options import (
    argument_spec,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.services import SERVICES
from tests.helpers import in_process
from tests.unit.arguments import given_to_a_module

FOLDER = Path(__file__).parents[2] / "plugins" / "modules"
MODULES = sorted(path.stem for path in FOLDER.glob("*.py"))
TEXTS, NUMBERS = ("str", "path"), ("int", "float")
PRIVATE = {"db_pwd": "canary-db", "host": "canary-host"}
#: A string of which only a parser can find the secret part.
PRIVATE_TEXT = "<project><token>canary-text</token></project>"
REFUSED = object()
#: The placeholder that older versions of Ansible pass for an omitted option.
OMITTED = f"__omit_place_holder__{'0' * 40}"
#: More levels than any code that traverses the data can process.
DEEP_TEXT = '{"a":' * 300 + "1" + "}" * 300
DEEP = json.loads(DEEP_TEXT)
Spec = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Spot:
    """An option at any depth, and its position in the options around it."""

    path: tuple[str | int, ...]
    option: Mapping[str, Any]
    around: Spec

    @property
    def place(self) -> str:
        words = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path)
        return "".join(words).removeprefix(".")


def spots(spec: Spec, path: tuple[str | int, ...] = ()) -> Iterator[Spot]:
    for name, option in spec.items():
        here = (*path, name)
        yield Spot(here, option, spec)
        if option.get("options"):
            entry = (*here, 0) if option["type"] == "list" else here
            yield from spots(option["options"], entry)


def sample(option: Mapping[str, Any]) -> Any:
    """Return a valid value."""
    kind = option.get("type", "str")
    if kind == "list":
        return [sample({**option, "type": option["elements"]})]
    if option.get("choices"):
        return option["choices"][0]
    if option.get("options"):
        return needed(option["options"])
    samples = {"int": 1, "float": 1.5, "bool": True, "dict": {"a": "b"}}
    return samples.get(kind, "word")


def needed(spec: Spec) -> dict[str, Any]:
    return {name: sample(option) for name, option in spec.items() if option.get("required")}


def secrets(spec: Spec) -> dict[str, Any]:
    """Return a value to hide for every option that may hold a secret."""
    found: dict[str, Any] = {}
    for name, option in spec.items():
        if option.get("no_log"):
            found[name] = f"canary-{name}"
        elif option.get("private"):
            shapes = {"dict": dict(PRIVATE), "list": [dict(PRIVATE)]}
            found[name] = shapes.get(option["type"], PRIVATE_TEXT)
        elif option.get("options"):
            inside = {**needed(option["options"]), **secrets(option["options"])}
            found[name] = [inside] if option["type"] == "list" else inside
        elif name == "url":
            found[name] = "http://user:canary-url@host/base"
    return found


def arguments(spec: Spec, spot: Spot, value: Any) -> dict[str, Any]:
    """Return valid options full of secrets, except that one option has the given value."""
    given = {**needed(spec), **secrets(spec)}
    holder: Any = given
    inner = spec
    for number, part in enumerate(spot.path[:-1]):
        if isinstance(part, int):
            holder = holder[part]
            continue
        option = inner[part]
        inner = option["options"]
        inside = {**needed(inner), **secrets(inner)}
        holder[part] = [inside] if isinstance(spot.path[number + 1], int) else inside
        holder = holder[part]
    holder[spot.path[-1]] = value
    return given


def single(option: Mapping[str, Any], value: Any) -> Any:
    """Return the expected result for a single value."""
    if isinstance(value, dict) and option.get("values") == "json":
        return json.dumps(value)
    kind = option.get("type", "str")
    choices = option.get("choices")
    if choices and kind != "list":
        word = str(value).lower() if isinstance(value, bool) else value
        return word if word in choices else REFUSED
    if kind in TEXTS or (kind == "raw" and not isinstance(value, (list, dict))):
        return text(option, value)
    if kind in NUMBERS:
        whole = isinstance(value, int) and not isinstance(value, bool)
        even = isinstance(value, float) and (kind == "float" or value.is_integer())
        return value if whole or even else REFUSED
    return value if kind == "bool" and isinstance(value, bool) else REFUSED


def text(option: Mapping[str, Any], value: Any) -> Any:
    if isinstance(value, str):
        may = option.get("empty", option.get("default") == "")
        as_it_is = option.get("whole") or option.get("no_log")
        value = value if as_it_is else value.removesuffix("\n")
        if value and not value.strip() and not as_it_is:
            return REFUSED
        return value if value.strip() or may else REFUSED
    whole = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if whole else REFUSED


def listed(option: Mapping[str, Any], value: Any) -> Any:
    """Return the expected result for a single value that is given instead of a list."""
    if option["elements"] == "dict" or value == "" or isinstance(value, dict):
        return REFUSED
    entry = single({**option, "type": option["elements"], "empty": False}, value)
    return REFUSED if entry is REFUSED else [entry]


def slips(option: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Yield every invalid or unusual value for an option, with the expected result."""
    kind = option.get("type", "str")
    for value in (1.1, 2.0, True, 7, "", " ", "word\n", {"wrong": "b"}):
        if kind == "list":
            yield value, listed(option, value)
        elif not (kind in ("dict", "raw") and isinstance(value, dict)):
            yield value, REFUSED if kind == "dict" else single(option, value)
    if kind == "list":
        yield from _slips_of_lists(option)
    elif kind == "dict":
        yield from _slips_of_mappings(option)
    elif kind != "raw":
        yield from _slips_of_single_values(option)
    elif option["values"] == "text":
        yield from (([1.1], REFUSED), ({"a": 1.1}, REFUSED), (["a", 7], ["a", "7"]))
    else:
        yield {"a": [1.1]}, {"a": [1.1]}


def _slips_of_single_values(option: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    kind = option.get("type", "str")
    yield ["a"], REFUSED
    if kind in NUMBERS:
        yield from (("nan", REFUSED), ("inf", REFUSED), (float("nan"), REFUSED))
        yield from ((float("inf"), REFUSED), (float("-inf"), REFUSED))
    elif kind in TEXTS:
        yield f"v{OMITTED}", REFUSED
        if not option.get("whole") and not option.get("no_log"):
            yield from (("w\0ord", REFUSED), ("word\u200b", REFUSED), ("\ufeffword", REFUSED))
        if kind == "path":
            yield from ((f"folder/{'ä' * 128}/file", REFUSED), ("folder/" * 600, REFUSED))


def _slips_of_lists(option: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    yield [None], REFUSED
    yield [["a"]], REFUSED
    if option.get("empty") is False:
        yield [], REFUSED
    if option["elements"] == "dict" and "values" in option:
        yield from ((["a"], REFUSED), ({"a": "b"}, REFUSED))
        yield [{"a": 1.1}], REFUSED if option["values"] == "text" else [{"a": 1.1}]
    elif option["elements"] == "dict":
        entry = needed(option["options"])
        yield from ((["a"], REFUSED), (["a=b"], REFUSED), (entry, REFUSED))
        yield [entry, {**entry, "wrong": 1}], REFUSED
    elif option["elements"] == "int":
        yield from (("1, 2", [1, 2]), ([1.5], REFUSED), ([True], REFUSED))
    else:
        yield from (([f"v{OMITTED}"], REFUSED), (["w\0ord"], REFUSED))
        words = list(option.get("choices") or ("ab*", "c"))[:2]
        names = f"{words[0]} , {words[1]}"
        yield f" {names}", [names] if option.get("single") else words
        yield f"{words[0]}\r\n\n {words[1]}\n", words
        listed = f"{words[0]},\n{words[1]}"
        yield listed, [f"{words[0]},", words[1]] if option.get("single") else words
        if not option.get("single"):
            yield f"{words[0]},,", REFUSED
        yield from (([words[0], " "], REFUSED), ([1.1], REFUSED), ([True], REFUSED))
        yield f"['{words[0]}', '{words[1]}']", REFUSED
        if not option.get("choices"):
            yield ["a", 7], ["a", "7"]
        if option["elements"] == "path":
            yield ["a" * 255, "a" * 256], REFUSED


def _slips_of_mappings(option: Mapping[str, Any]) -> Iterator[tuple[Any, Any]]:
    if option.get("empty") is False:
        yield {}, REFUSED
    yield from (("a=b;c=d", REFUSED), ("A=1&B=2", REFUSED), ("word", REFUSED), (["a"], REFUSED))
    if option.get("options"):
        yield {**needed(option["options"]), "wrong": 1}, REFUSED
        return
    yield "a=b, c=1.10", {"a": "b", "c": "1.10"}
    yield DEEP_TEXT, REFUSED
    if option["values"] == "line":
        yield from (({"a": None}, REFUSED), ({"a": " "}, REFUSED), ({"a": ["b"]}, REFUSED))
        yield from (({"a": 1.1}, REFUSED), ({"a": "b\0"}, REFUSED), ({"a": 7}, {"a": "7"}))
    elif option["values"] == "text":
        yield from (({"a": 1.1}, REFUSED), ({"a": ["b", 1.1]}, REFUSED), ('{"a": 1.1}', REFUSED))
        yield from (({"a": {"b": "c"}}, REFUSED), ({"a": [["b"]]}, REFUSED))
        yield {"a": True, "b": 7, "c": None}, {"a": "true", "b": "7", "c": None}
    else:
        yield {"a": 1.1, "b": True}, {"a": 1.1, "b": True}


def options_of(name: str) -> Spec:
    """Return the options of a module, without its connection options."""
    module = importlib.import_module(
        f"ansible_collections.delivery.toolchain.plugins.modules.{name}"
    )
    camel = "".join(part.capitalize() for part in name.split("_"))
    return argument_spec(getattr(getattr(module, name), f"{camel}Options"))


def judged(spec: Spec, spot: Spot, value: Any, right: Any, printed: Any) -> str | None:
    """Return a description of the error if a value is not handled as expected, else None."""
    what = f"{spot.place}: {value!r:.200}"
    # without the options that are not given, because Ansible takes long to check all of them
    given = arguments(spec, spot, value)
    few = {name: one for name, one in spec.items() if name in given or one.get("required")}
    with given_to_a_module(given):
        try:
            params: Any = runner._Module(few).params
        except SystemExit:
            result = json.loads(printed().out)
            if right is not REFUSED:
                return f"{what} is refused: {result['msg']}"
            return _ill_said(spot, result, what)
    if right is REFUSED:
        return f"{what} is taken"
    for part in spot.path:
        params = params[part]
    return None if params == right else f"{what} is taken for {params!r}"


def _ill_said(spot: Spot, result: Mapping[str, Any], what: str) -> str | None:
    if "canary" in json.dumps(result):
        return f"{what} shows a secret: {result}"
    by_ansible = "error" not in result
    if not by_ansible and (result["error"]["kind"] != "invalid" or spot.place not in result["msg"]):
        return f"{what}: {result['msg']}"
    return None if str(spot.path[-1]) in result["msg"] else f"{what}: {result['msg']}"


_known: set[str] = set()


def _is_new(spot: Spot) -> bool:
    """Return whether no module that was judged before has an equal option in an equal place."""
    kind = json.dumps([spot.path[-1], len(spot.path), spot.option], default=str)
    if kind in _known:
        return False
    _known.add(kind)
    return True


def _wrong(spec: Spec, capsys: pytest.CaptureFixture[str]) -> list[str]:
    found = (
        judged(spec, spot, value, right, capsys.readouterr)
        for spot in spots(spec)
        if _is_new(spot)
        for value, right in slips(spot.option)
    )
    return [wrong for wrong in found if wrong is not None]


@pytest.mark.parametrize("name", MODULES)
def test_invalid_option_is_rejected_or_understood(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _wrong(options_of(name), capsys) == []


@pytest.mark.parametrize("service", SERVICES)
def test_invalid_connection_option_is_rejected_or_understood(
    service: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _wrong(options.argument_spec(SERVICES[service]), capsys) == []


@pytest.mark.parametrize("name", MODULES)
def test_deeply_nested_value_is_rejected(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Verify that deep values are rejected: a traversal would reach Python's recursion limit."""
    spec = options_of(name)
    kinds = ("dict", "list", "raw")
    tops = [Spot((name,), option, spec) for name, option in spec.items()]
    chosen = [spot for spot in tops if spot.option.get("type") in kinds]
    found = [judged(spec, spot, DEEP, REFUSED, capsys.readouterr) for spot in chosen]
    assert [wrong for wrong in found if wrong is not None] == []


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"name": "a\ud83d"}, "name"),
        ({"entries": [{}, {"settings": {"a": ["b", "\udc00"]}}]}, "entries[1].settings.a[1]"),
        ({"properties": {"a": {"\ud800": 1}}}, "properties.a"),
    ],
)
def test_half_a_character_is_rejected(value: Any, place: str) -> None:
    with pytest.raises(ToolchainError, match="contains an unpaired surrogate") as caught:
        input_check.require_whole_characters(value)
    assert caught.value.message.startswith(f"{place} contains")
    input_check.require_whole_characters({"a": ["\U0001f600", 1, None, "ü"]})


@pytest.mark.parametrize("name", MODULES)
def test_every_option_names_its_elements(name: str) -> None:
    for spot in spots(options_of(name)):
        kind = spot.option.get("elements") or spot.option.get("type")
        open_ = kind in ("dict", "raw") and not spot.option.get("options")
        assert ("values" in spot.option) is open_, spot.place
        assert spot.option.get("values", "text") in ("text", "line", "json"), spot.place


def test_empty_list_of_entries_is_rejected() -> None:
    """Slips of such lists include an empty one."""
    lists = {name: options_of(name)["entries"] for name in MODULES if "entries" in options_of(name)}
    assert len(lists) > 1
    assert [name for name, option in lists.items() if option.get("empty") is not False] == []


@pytest.mark.parametrize(
    ("name", "given", "warning"),
    [
        ("artifact_deploy", {"repo": "r", "artifacts": []}, "artifacts is empty: no file is"),
        ("tracker_issue_info", {"issues": []}, "issues is empty: no issue is read"),
        ("analysis_info", {"gather": []}, "gather is empty: nothing is read"),
    ],
)
def test_empty_list_of_work_gives_a_warning(name: str, given: dict[str, Any], warning: str) -> None:
    url = {"url": "http://127.0.0.1:1", "retries": 0}
    login = {"username": "u", "ltoken": "0"} if name == "analysis_info" else {}
    done = in_process.run(name, {**url, **login, **given})
    assert done["changed"] is False
    assert warning in json.dumps(done["warnings"])


@pytest.mark.parametrize("name", MODULES)
def test_no_log_of_password_options_is_set(name: str) -> None:
    """Ansible warns in every task about an option with such a name and without `no_log`."""
    named = {one: spec for one, spec in options_of(name).items() if PASSWORD_MATCH.search(one)}
    assert [one for one, spec in named.items() if "no_log" not in spec] == []


@pytest.mark.parametrize("name", MODULES)
def test_omitted_option_counts_as_unset(name: str) -> None:
    spec = options_of(name)
    omitted = {one: OMITTED for one, option in spec.items() if not option.get("required")}
    found = input_check.check_options(spec, {**needed(spec), **omitted})
    assert set(found) == set(needed(spec))
