# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the parts of a body that the cloud cannot hold."""

from __future__ import annotations

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.formats.cloud_limits import (
    MACROS,
    of_body,
)


@pytest.mark.parametrize("name", MACROS)
def test_macro_without_a_counterpart_is_named_once(name: str) -> None:
    macro = f"<ac:structured-macro ac:schema-version='1' ac:name=\"{name}\"/>"
    assert of_body(f"<p>{macro}</p>{macro}") == [
        f"Confluence Cloud has no macro {name}: {MACROS[name]}"
    ]


def test_code_comments_and_other_macros_are_no_macros_without_a_counterpart() -> None:
    other = '<ac:structured-macro ac:name="code"><ac:plain-text-body><![CDATA['
    assert of_body(f'{other}<ac:macro ac:name="gallery"/>]]></ac:plain-text-body>') == []
    assert of_body('<!-- <ac:macro ac:name="gallery"/> -->gallery') == []
    assert of_body(None) == []
    assert of_body("<ac:macro ac:name='Gallery'/>") != []


def test_user_keys_are_listed() -> None:
    body = '<ri:user ri:userkey="ff81"/><ri:user ri:username="a"/><ri:user ri:userkey="ff80"/>'
    assert of_body(body) == [
        "Confluence Cloud has no user keys: add ff81, ff80 to desired_state_accounts"
    ]


def test_long_body_takes_linear_time() -> None:
    for text in ("<![CDATA[", "<!--", "<ac:macro ", "<ac:macro ac:name=' "):
        assert of_body(text * 50_000) == []
