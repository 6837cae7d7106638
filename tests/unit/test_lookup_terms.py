# SPDX-License-Identifier: GPL-3.0-or-later
"""Test lookups that are called without a term."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import lookups

ROOT = Path(__file__).resolve().parents[2]
#: The lookup `wiki_page` may take options instead of a term.
LOOKUPS = sorted({path.stem for path in (ROOT / "plugins/lookup").glob("*.py")} - {"wiki_page"})


@pytest.mark.parametrize("name", LOOKUPS)
def test_lookup_without_term_says_what_it_needs(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lookups, "set_options", lambda *given: None)
    monkeypatch.setattr(LookupBase, "set_options", lambda *given, **more: None)
    module = importlib.import_module(
        f"ansible_collections.delivery.toolchain.plugins.lookup.{name}"
    )
    # until ansible-core 2.18, Ansible wraps other errors of a lookup and repeats the message
    with pytest.raises(AnsibleLookupError, match="called without a term: specify "):
        module.LookupModule().run([], variables={})


def test_line_break_after_a_term_is_removed() -> None:
    terms = lookups.string_terms(["1002\n", ["app/2.1.0\r\n"]])
    assert terms == ["1002", "app/2.1.0"]
