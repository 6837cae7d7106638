# SPDX-License-Identifier: GPL-3.0-or-later
"""The private parts of Ansible: each may be gone in another core; then it is said, not thrown."""

from __future__ import annotations

import importlib
from typing import Any

import pytest
from ansible.module_utils import basic
from ansible.module_utils.common import warnings
from ansible.release import __version__

from ansible_collections.delivery.toolchain.plugins.plugin_utils import ansible_internals

NEW = tuple(int(number) for number in __version__.split(".")[:2]) >= (2, 19)
NAMES = (
    *ansible_internals.COMMON,
    *(ansible_internals.SINCE_2_19 if NEW else ansible_internals.BEFORE_2_19),
)
ARGUMENTS = {"name": "Developer"}


def _owner(name: str) -> tuple[Any, str]:
    """What a private part belongs to, and its name there."""
    module, _colon, path = name.partition(":")
    owner: Any = importlib.import_module(module)
    *outer, last = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    return owner, last


@pytest.mark.parametrize("name", NAMES)
def test_a_part_that_is_gone_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    owner, last = _owner(name)
    if last == "CONTROLLER_TO_MODULE":  # members of an enumeration cannot be taken away
        owner, last = importlib.import_module("ansible.module_utils.common.json"), "Direction"
    monkeypatch.delattr(owner, last)
    with pytest.raises(ansible_internals.Missing, match=last):
        ansible_internals.find()


def test_a_function_that_takes_something_else_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions among the parts; ansible-core 2.16 has none of them."""
    ansible_internals.find()
    for name in NAMES:
        if name.endswith(("_BuiltModule", "get_module_encoder", "_exception")):
            with monkeypatch.context() as patch:
                patch.setattr(*_owner(name), lambda: None)
                with pytest.raises(ansible_internals.Missing):
                    ansible_internals.find()


@pytest.mark.parametrize("name", ["_global_warnings", "_global_deprecations"])
def test_a_collection_that_cannot_be_emptied_is_missing(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(warnings, name, ())
    with pytest.raises(ansible_internals.Missing):
        ansible_internals.find()


def test_a_generation_that_is_none_of_this_core_is_missing() -> None:
    """A core that says to be new, or old, and is not."""
    if NEW:
        internals = ansible_internals.find("2.16.0")
        assert len(internals.built("#!python", "path")) == 4
    else:
        with pytest.raises(ansible_internals.Missing):
            ansible_internals.find("2.19.0")


@pytest.mark.parametrize("optional", ["_PARSED_MODULE_ARGS", "remove_values"])
def test_what_is_only_put_back_may_be_gone(monkeypatch: pytest.MonkeyPatch, optional: str) -> None:
    monkeypatch.delattr(basic, optional, raising=False)
    with ansible_internals.find().ready_for(ARGUMENTS):
        assert not hasattr(basic, optional)
    assert not hasattr(basic, optional)


def test_all_is_as_before_after_a_module() -> None:
    before = dict(vars(basic))
    with ansible_internals.find().ready_for(ARGUMENTS):
        assert basic._load_params() == ARGUMENTS
        warnings.warn("a warning of the module")
    assert vars(basic) == before
    assert not warnings._global_warnings
