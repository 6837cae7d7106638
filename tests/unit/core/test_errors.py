# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core import errors
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
    combined,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.secret import (
    forms,
    hidden,
)

LOGIN_PAGE = """<!DOCTYPE html>
<html><head><title>Log in &amp; go</title><style>p { color: red }</style></head>
<body><h1>HTTP Status 401</h1><p>Wrong <b>name</b> or password.</p><p></p></body></html>"""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"errors": [{"status": 404, "message": "Not there"}]}, "Not there"),
        (
            {
                "errors": [
                    {"code": "MANIFEST_UNKNOWN", "message": "manifest unknown", "detail": "x"}
                ]
            },
            "manifest unknown; x",
        ),
        ({"messages": [{"level": "ERROR", "message": "No move"}, {"message": "b"}]}, "No move; b"),
        ({"error massages": [{"message": "spelt like this"}]}, "spelt like this"),
        (
            {"errorMessages": ["JQL is wrong", ""], "errors": {"project": "is unknown"}},
            "project: is unknown; JQL is wrong",
        ),
        (
            {"statusCode": 400, "message": "Bad", "data": {"errors": [{"message": {"key": "k"}}]}},
            "Bad",
        ),
        (
            {"message": "Top", "data": {"errors": [{"message": "below"}]}},
            "Top; below",
        ),
        ({"message": {"translation": "x"}, "reason": "Conflict"}, "Conflict"),
        ({"status": 400, "message": "Role exists"}, "Role exists"),
        ({"error": "invalid_grant", "error_description": "expired"}, "expired"),
        ({"errors": [{"message": "twice"}, {"message": "twice"}]}, "twice"),
        (["one", {"message": "two"}], "one; two"),
        ("just text", "just text"),
        ({"strange": 1}, '{"strange": 1}'),
        ({"errors": []}, '{"errors": []}'),
        ({"message": None, "errors": None}, '{"message": null, "errors": null}'),
        (7, "7"),
        (None, "null"),
    ],
)
def test_error_text_of_json(body: Any, expected: str) -> None:
    assert errors.error_text(json.dumps(body)) == expected


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("", ""),
        ("  plain\n  text  ", "plain text"),
        ("{not json", "{not json"),
        (LOGIN_PAGE, "Log in & go; HTTP Status 401; Wrong name or password."),
        ("<html><body><img></body></html>", "an HTML page without a message"),
        ("\ufeff\n<HTML><TITLE>Upper</TITLE></HTML>", "Upper"),
        ('<?xml version="1.0"?><!-- c --><html xmlns="x"><h2>Proxy</h2></html>', "Proxy"),
        ("<html><p>same</p><p>same</p></html>", "same"),
        ("<status><message>XML of a server</message></status>", None),
    ],
)
def test_error_text_of_plain_text_and_html(body: str, expected: str | None) -> None:
    assert errors.error_text(body) == (body if expected is None else expected)


@pytest.mark.parametrize("depth", [300, 900, 100_000])
def test_error_text_of_deep_body_is_cut(depth: int) -> None:
    assert errors.error_text("[" * depth + "]" * depth).startswith("[[[")


@given(st.text() | st.builds(lambda text: f"<html><p>{text}</p></html>", st.text()))
def test_error_text_is_one_line_of_limited_length(body: str) -> None:
    found = errors.error_text(body)
    assert len(found) <= errors.DETAIL_LIMIT
    assert "\n" not in found


def test_control_characters_are_removed() -> None:
    assert errors.error_text('{"message": "a\\u001b[31mred\\u0007"}') == "ared"
    assert errors.shorten("a\x9b2J\x00b\r\nc ü\u2028") == "a b c ü"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("job ##vso[task.setvariable]x", "job # #vso[task.setvariable]x"),
        ("##[error]x ##TeamCity[x]", "# #[error]x # #TeamCity[x]"),
        (
            "a\n ::error file=x::b\n::stop-commands::c",
            "a\n : :error file=x::b\n: :stop-commands::c",
        ),
        ("## a [b] ::x", "## a [b] ::x"),
        ("::1 and a::b", "::1 and a::b"),
    ],
)
def test_commands_of_ci_servers_are_broken_up(text: str, shown: str) -> None:
    assert errors.printable(text) == shown


def test_long_error_text_ends_with_ellipsis() -> None:
    assert errors.shorten("x" * 2000) == "x" * (errors.DETAIL_LIMIT - 1) + "…"
    assert errors.shorten("one two three", 8) == "one two…"
    assert len(errors.error_text(json.dumps({"message": "y " * 5000}))) <= errors.DETAIL_LIMIT


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\x1b[1;31mred\x1b[0m", "ared"),
        ("a\x1b]0;title\x07b\x1b]8;;http://x\x1b\\c", "abc"),
        ("a\x9d0;title\x9cb", "ab"),
        ("a\x1bP1$r\x1b\\b\x1b(Bc\x1b7d\x1bMe", "abcde"),
        ("never\x1b]ended", "neverended"),
        ("never\x1b[31", "never31"),
        ("gpj.\u202egnp\u2066.exe\u200f", "gpj.gnp.exe"),
        ("tab\tand\nline", "tab\tand\nline"),
    ],
)
def test_escape_sequences_are_removed_completely(text: str, expected: str) -> None:
    assert errors.printable(text) == expected


TOKEN = "tok/en+with signs-0123456789"


@given(
    before=st.integers(errors.DETAIL_LIMIT - 60, errors.DETAIL_LIMIT + 5),
    spelt=st.sampled_from(sorted(forms(TOKEN))),
    shape=st.sampled_from(["{}", '{{"message": "{}"}}', "<html><pre>{}</pre></html>"]),
)
def test_cut_error_text_contains_no_part_of_a_secret(before: int, spelt: str, shape: str) -> None:
    hidden.add(TOKEN)
    found = errors.error_text(shape.format("." * before + spelt + "x" * 2000))
    assert len(found) <= errors.DETAIL_LIMIT
    assert set(found) <= set(".x*…")


@pytest.mark.parametrize("between", ["\x1b[0m", "\u202e", "\x1b]0;x\x07"])
def test_secret_that_appears_after_cleaning_is_masked(between: str) -> None:
    hidden.add("pass-word-1")
    assert errors.shorten(f"is pass-{between}word-1") == "is ***"


@pytest.mark.parametrize(
    "unit", [*"<>?&= \n\x1b\x9b\x9d", "<p>", "<message>", "<pre ", "</p>", "<h1><p>"]
)
@pytest.mark.parametrize("page", ["", "<html>", "<html><p>"])
def test_error_text_takes_linear_time(unit: str, page: str) -> None:
    body = page + unit * (50_000 // len(unit))
    begun = time.process_time()
    errors.error_text(body)
    assert time.process_time() - begun < 2  # quadratic: many seconds


def test_reason_in_pre_element_is_found() -> None:
    body = "<html><title>Error</title><body><PRE class=x>No space\n left</pre><p>end</body></html>"
    assert errors.error_text(body) == "Error; No space left"


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "rejected"),
        (401, "auth"),
        (403, "permission"),
        (404, "not_found"),
        (405, "rejected"),
        (408, "timeout"),
        (409, "conflict"),
        (410, "not_found"),
        (412, "conflict"),
        (413, "rejected"),
        (422, "rejected"),
        (429, "rate_limited"),
        (500, "server"),
        (503, "server"),
        (599, "server"),
        (204, "protocol"),
        (302, "protocol"),
    ],
)
def test_kind_of_status(status: int, kind: str) -> None:
    assert errors.kind_of_status(status) == kind


def test_error_as_dict() -> None:
    error = ToolchainError(
        "conflict",
        "creating x: taken",
        status=409,
        method="POST",
        url="http://host/x",
        detail="taken",
        result={"id": 1},
    )
    assert str(error) == "creating x: taken"
    assert error.as_dict() == {
        "kind": "conflict",
        "status": 409,
        "method": "POST",
        "url": "http://host/x",
        "detail": "taken",
    }
    assert error.result == {"id": 1}
    assert not error.outcome_unknown


def test_own_rejection_is_invalid() -> None:
    error = errors.invalid("no")
    assert (error.kind, error.status, error.url) == ("invalid", None, None)


@pytest.mark.parametrize(("said", "start"), [("No.", "No; "), ("No", "No; "), ("No...", "No...; ")])
def test_hint_follows_error_message_without_full_stop(said: str, start: str) -> None:
    error = ToolchainError("failed", said).with_hint("look there")
    assert str(error) == f"{start}look there"


def test_message_is_a_single_line() -> None:
    assert errors.single_line("there is no role 'a\nb'") == "there is no role 'a b'"
    # YAML ends a comment at each of these characters
    assert errors.single_line("a\r\x85\u2028\u2029b") == "a    b"


@pytest.mark.parametrize(("length", "shown"), [(200, True), (201, False)])
def test_long_query_is_omitted_from_the_address(length: int, shown: bool) -> None:
    address, query = "https://ci.example.com/job/app/api/json", "q" * length
    error = errors.ToolchainError("server", "reading", url=f"{address}?{query}")
    assert error.as_dict()["url"] == (f"{address}?{query}" if shown else address)


def test_copied_errors_keep_every_attribute() -> None:
    """Verify it for all attributes, also for those that are added later."""
    error = ToolchainError("server", "one", status=502, method="PUT", url="u", detail="d")
    for name, value in vars(error).items():
        if name not in ("kind", "message", "result"):
            setattr(error, name, value or f"a value of {name}")
    error.result["changed"] = False
    copy = error.with_message("two")
    second = ToolchainError("auth", "x", result={"changed": False})
    first = combined([error, second], "two", {"rows": 1})
    assert vars(copy) == {**vars(error), "message": "two"}
    assert vars(first) == {
        **vars(copy),
        "result": {"changed": False, "rows": 1},
        "outcome_unknown": True,
    }
    assert error.message == "one"


def test_combined_error_tells_what_any_error_tells() -> None:
    lost = ToolchainError("server", "x", outcome_unknown=True, result={"changed": True})
    error = combined([ToolchainError("auth", "y", result={"changed": False}), lost], "both")
    assert (error.kind, error.outcome_unknown) == ("auth", True)
    assert error.result == {"changed": True}
    silent = ToolchainError("server", "x")  # its writes count, which the runner knows
    same = ToolchainError("rejected", "y", result={"changed": False, "rows": 2})
    assert combined([same, silent], "both").result == {"rows": 2}
