# SPDX-License-Identifier: GPL-3.0-or-later
"""Test values of fields: the encoding in requests, and the equality of two values."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.input_check import (
    Place,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.accounts import (
    Accounts,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.issues.documents import (
    is_blank,
    plain_lines,
    same_document,
    text_of,
    to_document,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.issues.field_values import (
    missing,
    same,
    sent,
    shown,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.issues.text_format import (
    TextFormat,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker.projects import (
    project_objects,
)

PLACE = Place("fields.x")


@given(st.text(st.sampled_from("ab- \n\r\t*é")))
def test_plain_text_equals_its_document(text: str) -> None:
    document = to_document(text)
    assert text_of(to_document(text_of(document))) == text_of(document)
    assert same_document(document, to_document(plain_lines(text)))
    assert text_of(document).split() == text.split()


def test_text_is_extracted_from_a_document() -> None:
    def node(kind: str, *content: Any) -> dict[str, Any]:
        return {"type": kind, "content": list(content)}

    def words(text: str) -> dict[str, str]:
        return {"type": "text", "text": text}

    items = (node("listItem", node("paragraph", words(text))) for text in "ab")
    document = node("doc", node("heading", words("Head")), node("bulletList", *items), None)
    assert text_of(document).split() == ["Head", "a", "b"]
    assert text_of(None) == text_of(5) == ""


SAME: list[tuple[Any, Any]] = [
    ("a\r\nb \n", "a\nb"),
    ("größe", "gro\u0308ße"),
    (None, ""),
    (None, None),
    ([], None),
    (5.0, 5),
    ({"id": "10001", "name": "1.0", "self": "x"}, {"name": "1.0"}),
    ({"id": "10001", "name": "High"}, {"name": "high"}),
    ({"id": "10001"}, {"id": 10001}),
    ({"value": "A", "child": {"value": "B", "id": "1"}}, {"value": "A", "child": {"value": "B"}}),
    ([{"name": "b"}, {"name": "a"}], [{"name": "a"}, {"name": "b"}]),
    (["b", "a"], ["a", "b"]),
    (to_document("a"), "a"),
    (to_document(""), None),
]
DIFFERENT: list[tuple[Any, Any]] = [
    ("a", "b"),
    ("a", "A"),
    ("a", None),
    (None, 0),
    (1, True),
    (5.5, 5),
    ("5", 5),
    ({"name": "1.0"}, {"name": "1.1"}),
    (None, {"name": "1.0"}),
    ("1.0", {"name": "1.0"}),
    ({"value": "A"}, {"value": "A", "child": {"value": "B"}}),
    (["a"], ["a", "a"]),
    (["a", "b"], ["a"]),
    (["A"], ["a"]),
    (["a"], []),
    (5, "5"),
    (to_document("a"), "b"),
    (to_document("a"), None),
]


def document(*inner: Any, kind: str = "paragraph", **members: Any) -> dict[str, Any]:
    block = {"type": kind, "content": list(inner), **members}
    return {"type": "doc", "version": 1, "content": [block]}


def words(text: str, *marks: Any, **attributes: Any) -> dict[str, Any]:
    shown = [{"type": mark} if isinstance(mark, str) else mark for mark in marks]
    return {"type": "text", "text": text, "marks": shown, "attrs": attributes}


def link(address: str, **attributes: Any) -> dict[str, Any]:
    return {"type": "link", "attrs": {"href": address, **attributes}}


def inline(kind: str, **attributes: Any) -> dict[str, Any]:
    return {"type": kind, "attrs": attributes}


SAME_DOCUMENTS = [
    (document(words("a")), document({"type": "text", "text": "a"})),
    (document(words("a"), localId="x", attrs={"localId": "1"}), document(words("a"))),
    (document(words("ab")), document(words("a"), words("b"))),
    (document(words("a", "strong", "em")), document(words("a", "em", "strong"))),
    (document(words("a", link("x", title=None))), document(words("a", link("x")))),
    (document(kind="orderedList", attrs={"order": 1}), document(kind="orderedList")),
    (
        document(inline("mention", id="1", text="@Ann", accessLevel="", localId="2")),
        document(inline("mention", id="1")),
    ),
    (
        document(inline("emoji", shortName=":a:", id="1f", text="A")),
        document(inline("emoji", shortName=":a:")),
    ),
]
DIFFERENT_DOCUMENTS = [
    (document(words("a", link("x"))), document(words("a", link("y")))),
    (document(words("a", link("x"))), document(words("a"))),
    (document(words("a", link("x", title="t"))), document(words("a", link("x")))),
    (document(words("a")), document(words("a", "strong"))),
    (
        document(inline("mention", id="1", text="@A")),
        document(inline("mention", id="2", text="@A")),
    ),
    (document(inline("emoji", shortName=":a:")), document(inline("emoji", shortName=":b:"))),
    (document(inline("inlineCard", url="x")), document(inline("inlineCard", url="y"))),
    (document(inline("status", text="a", color="red")), document(inline("status", text="a"))),
    (document(words("a"), kind="heading", attrs={"level": 1}), document(words("a"))),
    (document(kind="orderedList", attrs={"order": 0}), document(kind="orderedList")),
    (document(words("a")), document(words("a"), {"type": "hardBreak"})),
    ("a", document(words("a"))),
    (None, document(words("a"))),
]


@pytest.mark.parametrize(("current", "wanted"), SAME_DOCUMENTS)
def test_equal_documents(current: Any, wanted: Any) -> None:
    assert same(current, wanted)


@pytest.mark.parametrize(("current", "wanted"), DIFFERENT_DOCUMENTS)
def test_different_documents(current: Any, wanted: Any) -> None:
    assert not same(current, wanted)


def test_text_of_a_document_has_its_mentions_and_emojis() -> None:
    parts = (
        words("ask "),
        inline("mention", id="1", text="@Ann"),
        inline("emoji", shortName=":a:"),
    )
    assert text_of(document(*parts)) == "ask @Ann:a:"
    assert not same(document(*parts), "ask")
    assert text_of(document(inline("inlineCard", url="https://a.example.com"))).endswith(".com")


@pytest.mark.parametrize("inner", [inline("mention", id="1"), inline("media", id="1"), words("a")])
def test_document_that_shows_something_is_not_blank(inner: Any) -> None:
    assert not same(document(inner), None)
    assert is_blank(document(words(" "), {"type": "hardBreak"}))


@pytest.mark.parametrize(("current", "wanted"), SAME)
def test_equal_values(current: Any, wanted: Any) -> None:
    assert same(current, wanted)


@pytest.mark.parametrize(("current", "wanted"), DIFFERENT)
def test_different_values(current: Any, wanted: Any) -> None:
    assert not same(current, wanted)


def test_missing_list_entries() -> None:
    assert missing([{"name": "A", "id": "1"}], [{"name": "a"}, {"name": "b"}]) == [{"name": "b"}]
    assert missing(None, ["x"]) == ["x"]


PLAIN = TextFormat(markdown=False, cloud=False, warn=print)
CLOUD = TextFormat(markdown=False, cloud=True, warn=print)
SENT: list[tuple[Any, dict[str, Any], Any]] = [
    ("5", {"type": "number"}, 5),
    ("2.5", {"type": "number"}, 2.5),
    (2.5, {"type": "number"}, 2.5),
    ("prod", {"type": "option"}, {"value": "prod"}),
    (5, {"type": "option"}, {"value": "5"}),
    ("ann", {"type": "user"}, {"name": "ann"}),
    ("", {"type": "user"}, None),
    ("1.0", {"type": "version"}, {"name": "1.0"}),
    ("a, b", {"type": "array", "items": "string"}, ["a", "b"]),
    ("a, b,\nc\n", {"type": "array", "items": "string"}, ["a", "b", "c"]),
    ("a, b\nc", {"type": "array", "items": "version"}, [{"name": "a, b"}, {"name": "c"}]),
    (["A"], {"type": "array", "items": "option"}, [{"value": "A"}]),
    (None, {"type": "array", "items": "option"}, []),
    (None, {"type": "string"}, None),
    ({"id": "1"}, {"type": "priority"}, {"id": "1"}),
    ("REL-1", {"type": "any"}, "REL-1"),
    (7, {"type": "string"}, "7"),
    # a server stores an entry once, whatever its letter case
    (["a", "A ", "b"], {"type": "array", "items": "version"}, [{"name": "a"}, {"name": "b"}]),
    ("2026-05-31 ", {"type": "date"}, "2026-05-31"),
    ("", {"type": "date"}, ""),
]


@pytest.mark.parametrize(("value", "schema", "wanted"), SENT)
def test_value_sent_to_a_server(value: Any, schema: dict[str, Any], wanted: Any) -> None:
    assert sent(value, schema, PLACE, None, PLAIN) == wanted


def test_text_area_of_the_cloud_is_a_document() -> None:
    area = {"type": "string", "custom": "com.example:textarea"}
    no_client: Any = None
    site = Accounts(no_client, print, cloud=True)
    assert sent("a", area, PLACE, site, CLOUD) == to_document("a")
    assert sent("a", area, PLACE, None, PLAIN) == "a"
    assert sent("", area, PLACE, site, CLOUD) is None


@pytest.mark.parametrize(
    ("value", "schema", "words"),
    [
        (1.1, {"type": "version"}, "fields.x is the number 1.1"),
        ([1.1], {"type": "array", "items": "version"}, r"fields.x\[0\] is the number 1.1"),
        (True, {"type": "string"}, "fields.x is the boolean true"),
        ("", {"type": "option"}, "fields.x is empty"),
        ("much", {"type": "number"}, "expected a number"),
        (True, {"type": "number"}, "expected a number"),
        ("nan", {"type": "number"}, "expected a number"),
        ([None], {"type": "array", "items": "version"}, r"fields.x\[0\] is null"),
        (20260531, {"type": "date"}, "fields.x is the string '20260531': expected a date such as"),
        ("2026-02-30", {"type": "date"}, "expected a date such as 2026-05-31"),
    ],
)
def test_impossible_value_is_rejected(value: Any, schema: dict[str, Any], words: str) -> None:
    with pytest.raises(ToolchainError, match=words):
        sent(value, schema, PLACE, None, PLAIN)


def test_value_shown() -> None:
    people = {"accountId": "1", "displayName": "Ann"}
    assert shown([{"name": "a", "id": "1"}, people, {"odd": 1}]) == ["a", "1", {"odd": 1}]
    assert shown(to_document("a\n\nb")) == "a\n\nb"


def test_similar_version_names_are_compared() -> None:
    assert project_objects.same_name("Fr\u00fchling ", "fru\u0308hling")
    assert not project_objects.same_name("1.1.0", "1.1.1")
    assert not project_objects.same_name("Straße", "Strasse")


@pytest.mark.parametrize("kind", ["user", "string", "option", "datetime", "array"])
def test_blanks_are_not_an_empty_value(kind: str) -> None:
    with pytest.raises(ToolchainError, match=r"fields\.x contains only blanks: write ''") as caught:
        sent(" ", {"type": kind, "items": "version"}, PLACE, None, PLAIN)
    assert caught.value.kind == "invalid"
