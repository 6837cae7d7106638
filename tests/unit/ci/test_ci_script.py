# SPDX-License-Identifier: GPL-3.0-or-later
"""Test running scripts: how the end of a script is detected, and its results."""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci import script_run
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.script_run import cut_trace
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.server.ci_script import (
    CiScriptOperation,
    CiScriptOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.secret import Secret
from tests.helpers.options import build as options_of
from tests.unit.stub import Reply, Seen, Stub, connection_to

TRACE = (
    "java.lang.IllegalStateException: no\n"
    "\tat org.codehaus.groovy.reflection.CachedConstructor.invoke(CachedConstructor.java:80)\n"
    "\tat java.base/jdk.internal.reflect.Constructor.newInstance(Constructor.java:45)\n"
    "\tat hudson.model.Thing.check(Thing.java:7)\n"
    "\tat ci_script.run(ci_script.groovy:2)\n"
    "\tat groovy.lang.GroovyShell.evaluate(GroovyShell.java:574)\n"
    "\tat hudson.util.RemotingDiagnostics$Script.call(RemotingDiagnostics.java:149)\n"
)


def payload_of(program: str) -> dict[str, Any]:
    """Return the data that the program passes to the script, joined as Groovy joins it."""
    chunks = re.findall(r"^(?:def payload =|payload \+=) '([A-Za-z0-9+/=]*)'$", program, re.M)
    found: dict[str, Any] = json.loads(b64decode("".join(chunks)))
    return found


def marker_of(program: str) -> str:
    found = re.search(r"^def marker = '([0-9a-f]+)'$", program, re.M)
    assert found is not None
    return found[1]


def without_comment(program: str) -> str:
    """Return the program without the lines that show the script to users."""
    lines = program.split("\n")
    return "\n".join(lines[:1] + lines[lines.index("import groovy.json.JsonOutput") :])


def line(marker: str, word: str, told: dict[str, Any]) -> str:
    return f"{marker}:{word}:{b64encode(json.dumps(told).encode()).decode()}\n"


class Console:
    """Respond to each script with the result of `say` for its payload: printed text,
    word and data.
    """

    def __init__(self, say: Callable[[dict[str, Any]], tuple[str, str, dict[str, Any]]]) -> None:
        self.say = say
        self.calls: list[dict[str, Any]] = []

    def __call__(self, seen: Seen) -> Reply:
        if seen.method == "GET":
            return Reply(404)
        assert seen.path == "/base/scriptText"
        program = seen.form["script"]
        self.calls.append(payload_of(program))
        printed, word, reported = self.say(self.calls[-1])
        return Reply(body=printed + line(marker_of(program), word, reported))


def ok(printed: str = "", result: Any = None, text: str | None = None) -> Console:
    return Console(lambda call: (printed, "OK", {"result": result, "text": text}))


def run(
    response: Callable[[Seen], Reply],
    *,
    read_only: bool = False,
    warn: Callable[[str], None] = lambda text: None,
    **options: Any,
) -> dict[str, Any]:
    chosen = options_of(CiScriptOptions, **{"script": "println 1", **options})
    with Stub(response=response) as stub:
        connection = connection_to(
            stub.url, "ci", username="u", password=Secret("pass-word-1"), settings={"retries": 0}
        )
        operation = CiScriptOperation(Task(connection, warn, read_only), chosen)
        plan = operation.plan()
        values = {"changed": plan.changed, **plan.result, "diff": (plan.before, plan.after)}
        if plan.changed and not read_only:
            values.update(operation.apply(plan))
        return values


def test_script_is_sent_as_data() -> None:
    console = ok("one\ntwo\n", {"a": [1]}, "[a:[1]]")
    script = "println '''\\u00e9${args}'''\n// é 漢字 😀"
    values = run(console, script=script, arguments={"x": ["'\"$\\", 1, None, True]})
    assert console.calls == [
        {"script": script, "args": {"x": ["'\"$\\", 1, None, True]}, "check_mode": False}
    ]
    assert values["output"] == "one\ntwo"
    assert values["output_lines"] == ["one", "two"]
    assert values["result"] == {"a": [1]}
    assert values["changed"] is True
    assert values["diff"] == ("", script)


PAGE = Reply(200, "<!DOCTYPE html><title>Welcome</title>")


@pytest.mark.parametrize("reply", [Reply(429), Reply(502), Reply(500), Reply(cut=True), PAGE])
@pytest.mark.parametrize("met", [None, True, False])
def test_script_is_sent_once_and_only_unless_may_be_retried(reply: Reply, met: bool | None) -> None:
    sent: list[str] = []

    def unless(call: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
        return "", "OK", {"result": met is True and len(sent) > 1, "text": None}

    def response(seen: Seen) -> Reply:
        if seen.method == "POST":
            sent.append(payload_of(seen.form["script"])["script"])
        return reply if sent[-1:] == ["write"] else Console(unless)(seen)

    options: dict[str, Any] = {"script": "write", "unless": None if met is None else "question"}
    if met:
        assert run(response, **options)["changed"] is True
    else:
        with pytest.raises(ToolchainError, match="whether it was done is not known") as caught:
            run(response, **options)
        assert caught.value.message.count("not known") == 1
        assert caught.value.result.get("changed", False) is False
    assert sent.count("write") == 1


@pytest.mark.parametrize(
    ("result", "text", "expected"),
    [
        (None, None, None),
        ("plain", "plain", "plain"),
        ('{"a": 1}', '{"a": 1}', {"a": 1}),
        ("[not json", "[not json", "[not json"),
        ("42", "42", "42"),
        (42, "42", 42),
        ('{"a": NaN}', '{"a": NaN}', '{"a": NaN}'),
        (False, "false", False),
        (None, "hudson.model.Hudson@1", "hudson.model.Hudson@1"),
    ],
)
def test_json_result_is_decoded(result: Any, text: str | None, expected: Any) -> None:
    assert run(ok("", result, text))["result"] == expected


def test_check_mode_sends_only_unless() -> None:
    console = ok("", False, "false")
    values = run(console, read_only=True, unless="question")
    assert values["changed"] is True
    assert console.calls == [{"script": "question", "args": {}, "check_mode": True}]


@pytest.mark.parametrize(
    ("printed", "result", "met"),
    [
        ("", True, True),
        ("", "true", True),
        ("looking\ntrue\n\n", None, True),
        ("true\nafter all not\n", None, False),
        ("", False, False),
        ("", 1, False),
        ("", None, False),
        ("false\n", "false", False),
    ],
)
def test_unless_is_satisfied_by_value_or_last_line(printed: str, result: Any, met: bool) -> None:
    console = ok(printed, result, None)
    assert run(console, unless="question")["changed"] is not met
    assert len(console.calls) == (1 if met else 2)


@pytest.mark.parametrize(
    ("result", "text", "changed"),
    [
        ({"changed": False, "x": 1}, None, False),
        ({"changed": True}, None, True),
        ('{"changed": false}', '{"changed": false}', False),
        ({"changed": "false"}, None, True),
        ({"changed": None}, None, True),
        ([False], None, True),
        (False, "false", True),
    ],
)
def test_script_may_return_changed(result: Any, text: str | None, changed: bool) -> None:
    values = run(ok("printed\n", result, text))
    assert values["changed"] is changed
    assert isinstance(values["result"], type(json.loads(text) if text else result))


def test_changed_when_output_precedes_the_result() -> None:
    console = ok("set the name\n", {"changed": False})
    assert run(console, changed_when_output="^set")["changed"] is True
    assert run(console, changed_when_output="^lost")["changed"] is False


@pytest.mark.parametrize("read_only", [True, False])
@pytest.mark.parametrize("differs", [True, False])
def test_dry_run_of_script_predicts_changes(differs: bool, read_only: bool) -> None:
    console = Console(
        lambda call: (f"{call['check_mode']}\n", "OK", {"result": {"changed": differs}})
    )
    values = run(console, has_dry_run=True, read_only=read_only)
    assert values["changed"] is differs
    runs = [True, False] if differs and not read_only else [True]
    assert [call["check_mode"] for call in console.calls] == runs
    assert values["output"] == str(runs[-1])
    assert values["diff"] == ("", "println 1" if differs else "")


def test_exception_in_check_mode_changes_nothing() -> None:
    reported = {"exception": "java.lang.IllegalStateException: no", "trace": TRACE, "line": 2}
    with pytest.raises(ToolchainError, match="check mode") as caught:
        run(Console(lambda call: ("", "FAIL", reported)), has_dry_run=True)
    assert "changed" not in caught.value.result


@pytest.mark.parametrize(
    ("pattern", "changed"), [("^set", True), ("^changed$", False), ("name$", True)]
)
def test_output_pattern_decides_changed(pattern: str, changed: bool) -> None:
    console = ok("looking\nset the name\n")
    assert run(console, changed_when_output=pattern)["changed"] is changed
    assert run(console, changed_when_output=pattern, read_only=True)["changed"] is True


def test_exception_is_reported_with_line_and_short_trace() -> None:
    reported = {"exception": "java.lang.IllegalStateException: no", "trace": TRACE, "line": 2}
    with pytest.raises(ToolchainError) as caught:
        run(Console(lambda call: ("before\n", "FAIL", reported)))
    error = caught.value
    assert error.kind == "failed"
    assert "java.lang.IllegalStateException: no (line 2)" in error.message
    assert error.detail == (
        "java.lang.IllegalStateException: no\n"
        "\tat hudson.model.Thing.check(Thing.java:7)\n"
        "\tat ci_script.run(ci_script.groovy:2)"
    )
    assert error.result["output_lines"] == ["before"]


def test_long_trace_keeps_its_start_and_script_line() -> None:
    frames = "".join(f"\tat a.very.long.name.Of.a.frame{n}(Of.java:{n})\n" for n in range(1000))
    cut = cut_trace(f"E: {'x' * 5000}\n{frames}\tat ci_script.run(ci_script.groovy:9)\n", 9)
    assert cut.startswith("E: xxx")
    assert cut.endswith("ci_script.groovy:9)")
    assert len(cut) < 1000
    assert cut_trace(f"E: no\n{frames}", None) == "E: no"


def plainly(body: str, **options: Any) -> dict[str, Any]:
    """Run a script on a server that does not evaluate the program around it."""
    return run(lambda seen: Reply(404) if seen.method == "GET" else Reply(body=body), **options)


@pytest.mark.parametrize(
    ("body", "kind", "words"),
    [
        (TRACE, "failed", "the script threw java.lang.IllegalStateException: no$"),
        (f"some output\n{TRACE}", "failed", "threw java.lang.IllegalStateException: no$"),
        ("a.MissingPropertyException: No such property: x\n", "failed", "No such property: x"),
        ("Startup failed:\n\tat groovy.lang.X.y(X.java:1)\n", "failed", "threw Startup failed:$"),
        ("Assertion failed: \n\nassert 1 == 2\n", "failed", "Assertion failed"),
        ("", "protocol", "does not show how the script ended"),
        (" \n", "protocol", "does not show"),
        ("<html><form><input type='x'></form></html>", "protocol", "HTML"),
        ('<html><input name="j_password" type="password"></html>', "auth", "login page"),
    ],
)
def test_response_without_end_marker_is_an_error(body: str, kind: str, words: str) -> None:
    with pytest.raises(ToolchainError, match=words) as caught:
        plainly(body)
    assert caught.value.kind == kind


def test_output_before_a_stack_trace_is_returned() -> None:
    with pytest.raises(ToolchainError) as caught:
        plainly(f"some output\n{TRACE}")
    assert caught.value.result["output_lines"] == ["some output"]
    with pytest.raises(ToolchainError) as caught:
        plainly("<html></html>")
    assert caught.value.result == {"changed": False}


def test_misplaced_end_marker_is_an_error() -> None:
    def echo(seen: Seen) -> Reply:
        return Reply(404) if seen.method == "GET" else Reply(body=seen.form["script"])

    with pytest.raises(ToolchainError, match="does not show how the script ended"):
        run(echo)


@pytest.mark.parametrize(
    ("body", "output", "result"),
    [
        ("hello\n", "hello", None),
        ("hello\r\nResult: 42\r\n", "hello", 42),
        ('Result: {"a": [1]}\n', "", {"a": [1]}),
        ("Result: [a:1]", "", "[a:1]"),
        ("Result: NaN\n", "", "NaN"),
        ("Result: 1\nmore\n", "Result: 1\nmore", None),
        ("no Error here\nat last (1)\n", "no Error here\nat last (1)", None),
    ],
)
def test_plain_console_response_is_accepted_with_a_warning(
    body: str, output: str, result: Any
) -> None:
    warnings: list[str] = []
    values = plainly(body, warn=warnings.append)
    assert (values["output"], values["result"], values["changed"]) == (output, result, True)
    assert "does not show how the script ended" in warnings[0]


@pytest.mark.parametrize("body", ["true\n", "looking\ntrue\n", "Result: true\n"])
def test_unless_is_satisfied_by_a_plain_response(body: str) -> None:
    assert plainly(body, unless="question")["changed"] is False


def test_script_file_is_read_and_must_be_text(tmp_path: Path) -> None:
    script = tmp_path / "script.groovy"
    script.write_text("println 'größe'", encoding="utf-8")
    console = ok()
    run(console, script=None, src=str(script))
    assert console.calls[0]["script"] == "println 'größe'"
    script.write_bytes(b"\xff\xfe")
    for src in (script, tmp_path / "missing.groovy"):
        with pytest.raises(ToolchainError) as caught:
            run(console, script=None, src=str(src))
        assert caught.value.kind == "invalid"


def test_invalid_pattern_is_rejected_before_any_request() -> None:
    console = ok()
    with pytest.raises(ToolchainError, match="regular expression") as caught:
        run(console, changed_when_output="(")
    assert caught.value.kind == "invalid"
    assert console.calls == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.text(), st.dictionaries(st.text(), JSON, max_size=4), st.booleans())
def test_script_and_arguments_never_enter_the_source(
    script: str, arguments: dict[str, Any], only_reads: bool
) -> None:
    program = script_run.wrapped(script, arguments, "abc123", only_reads=only_reads)
    sent = {"script": script, "args": arguments, "check_mode": only_reads}
    assert payload_of(program) == sent
    rest = re.sub(r"^(?:def payload =|payload \+=) .*$", "", without_comment(program), flags=re.M)
    empty = without_comment(script_run.wrapped("", {}, "abc123", only_reads=False))
    assert rest == re.sub(r"^def payload = .*$", "", empty, flags=re.M)


@given(st.text("\\\\u00ab\r\n\x0b\u2028\uffff'*/", max_size=30))
def test_program_contains_the_script_only_in_comments(script: str) -> None:
    program = script_run.wrapped(script, {"x": "an argument"}, "abc123", only_reads=False)
    shown = program[: program.index("import groovy.json.JsonOutput")]
    assert all(line.startswith("//") for line in re.split(r"[\r\n]", shown.rstrip("\n")))
    assert "\\u" not in shown
    assert "\uffff" not in shown
    assert "an argument" not in program


def test_program_shows_the_script_to_readers() -> None:
    program = script_run.wrapped("println 'a \\ b'\nx = 1", {}, "abc123", only_reads=False)
    assert "\n// println 'a \\ b'\n// x = 1\n" in program


@given(st.text(), JSON)
def test_printed_text_cannot_fake_the_end_marker(printed: str, result: Any) -> None:
    noise = printed + "\n0123456789abcdef:OK:e30=\n"
    text = noise + line("feedfacefeedface", "OK", {"result": result, "text": "x"})
    ended = script_run.ended(text, "feedfacefeedface")
    assert ended is not None
    assert ended.output == noise[:-1]
    assert ended.result == ("x" if result is None else result)
    assert script_run.ended(text[:-3], "feedfacefeedface") is None
    assert script_run.ended(text + "more\n", "feedfacefeedface") is None
