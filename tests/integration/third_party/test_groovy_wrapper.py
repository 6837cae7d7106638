# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the program around user scripts in a real Groovy, like the script console.

Needs the program `groovy` (Debian: the package groovy). On machines without packages of Debian, the
tests check only the source of the program and print a message.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci import script_run
from tests.helpers import groovy

MARKER = "0123456789abcdef"
ARGUMENTS = {"name": "größe", "quotes": "'\"$\\\n", "list": [1, {"key": "value"}, None]}
GROOVY = groovy.PROGRAM
# Evaluate like the script console of the server: bind `out`, print a value that is not null, and
# print a stack trace if the script throws.
DRIVER = r"""
import org.codehaus.groovy.control.CompilerConfiguration
import org.codehaus.groovy.control.customizers.ImportCustomizer

def folder = new File(args[0])
folder.listFiles().findAll { it.name.endsWith('.program') }.each { file ->
    def configuration = new CompilerConfiguration()
    configuration.addCompilationCustomizers(new ImportCustomizer().addStarImports('hudson'))
    def shell = new GroovyShell(getClass().classLoader, new Binding(), configuration)
    def printed = new StringWriter()
    def writer = new PrintWriter(printed)
    shell.setVariable('out', writer)
    try {
        def value = shell.evaluate(file.getText('UTF-8'))
        if (value != null) {
            writer.println('Result: ' + value)
        }
    } catch (Throwable thrown) {
        thrown.printStackTrace(writer)
    }
    writer.flush()
    new File(folder, file.name - '.program' + '.answer').setText(printed.toString(), 'UTF-8')
}
"""
MEGABYTE = "// " + "x" * 1_000_000 + "\n"
SCRIPTS: dict[str, str] = {
    "prints": "println 'one'\nprint args.name\n[a: 1, b: [true, null, 2.5], c: [1, 2] as int[]]",
    "looks_like_a_trace": (
        "println 'java.lang.IllegalStateException: no'\nprintln '\\tat a.b(c.groovy:1)'"
    ),
    "looks_like_the_end": "println 'fedcba9876543210:FAIL:e30='",
    "throws": "def fail() {\n  throw new IllegalArgumentException('größe')\n}\n\nfail()",
    "asserts": "println 'before'\nassert 1 == args.list[0] + 1",
    "does_not_compile": "println 1\nif (",
    "unknown_class": "println 1\nNoSuchThing.get()",
    "returns": "if (args.name) {\n  return 'early'\n}\nprintln 'late'",
    "exits": (
        "println 'before'\n"
        "try { [1].each { System.exit(3) } } catch (Exception e) { println 'swallowed' }\n"
        "println 'after'"
    ),
    "exits_in_a_class": "class Ending { void run() { System.exit(0) } }\nnew Ending().run()",
    "reads_the_environment": "System.getenv('NO_SUCH_NAME') == null",
    "imports_and_classes": (
        "import java.util.concurrent.atomic.AtomicInteger\n"
        "import static java.lang.Math.max\n"
        "enum Level { LOW }\n"
        "class Pair { int n; int twice() { n * 2 } }\n"
        "[new Pair(n: 4).twice(), Level.LOW, new AtomicInteger(max(3, 4)).get()]"
    ),
    "unicode": "println args.quotes + '漢字 😀'\n'ü😀'",
    "arguments": "[args.list[1].key, args.list[2], check_mode, args.keySet().sort()]",
    "megabyte": MEGABYTE + "'end'",
    "not_json": "[Double.NaN, 10**30, 'x' as char, \"${1 + 1}\", new Date(0).time, Locale.ROOT]",
    "contains_itself": "def list = [1]\nlist << list << list\nlist",
    "recurses": "def again(n) { again(n + 1) }\nagain(0)",
    "says_nothing": "def nothing = null\nnothing",
    "json_text": "groovy.json.JsonOutput.toJson([a: 1])",
    "tells_its_changes": (
        "def differs = args.name != 'x'\n"
        "if (differs && !check_mode) {\n  println 'set'\n}\n"
        "return [changed: differs, before: args.name]"
    ),
    "tells_the_java": (
        "[changed: false, java: System.getProperty('java.specification.version')]*.key"
    ),
    "throws_below": "class Own { static fail() { [1].each { throw new IOException('no') } } }\n"
    "def call() { Own.fail() }\n\ncall()",
    # escapes that would end a comment, a harmless escape, and characters that end a line elsewhere
    "escapes": "'''\\u000a throw new Error()''' + '\\\\u000a \\\\user \u2028\x0b */ \u00e9'",
}
ENDS_WELL: dict[str, tuple[str, Any]] = {
    "prints": ("one\ngröße", {"a": 1, "b": [True, None, 2.5], "c": [1, 2]}),
    "looks_like_a_trace": ("java.lang.IllegalStateException: no\n\tat a.b(c.groovy:1)", None),
    "looks_like_the_end": ("fedcba9876543210:FAIL:e30=", None),
    "returns": ("", "early"),
    "reads_the_environment": ("", True),
    "imports_and_classes": ("", [8, "LOW", 4]),
    "unicode": ("'\"$\\\n漢字 😀", "ü😀"),
    "arguments": ("", ["value", None, False, ["list", "name", "quotes"]]),
    "megabyte": ("", "end"),
    "not_json": ("", ["NaN", 10**30, "x", "2", 0, ""]),
    "contains_itself": ("", [1, "...", "..."]),
    "says_nothing": ("", None),
    "json_text": ("", '{"a":1}'),
    "tells_its_changes": ("set", {"changed": True, "before": "größe"}),
    "tells_the_java": ("", ["changed", "java"]),
    "escapes": ("", "\n throw new Error()\\u000a \\user \u2028\x0b */ \u00e9"),
}
ENDS_BADLY: dict[str, tuple[str, str, int | None]] = {
    "throws": ("", "java.lang.IllegalArgumentException: größe", 2),
    "asserts": ("before", "Assertion failed:", 2),
    "does_not_compile": ("", "MultipleCompilationErrorsException", 2),
    "unknown_class": ("1", "MissingPropertyException: No such property: NoSuchThing", 2),
    "exits": ("before", "System.exit(3) would end the CI server", 2),
    "exits_in_a_class": ("", "System.exit(0) would end the CI server", 1),
    "throws_below": ("", "java.io.IOException: no", 1),
    "recurses": ("", "java.lang.StackOverflowError", 1),
}


def program(name: str) -> str:
    return script_run.wrapped(SCRIPTS[name], ARGUMENTS, MARKER, only_reads=False)


@pytest.fixture(scope="module")
def answers(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, str]:
    """Return the script console's response to every script, or nothing without Groovy."""
    if GROOVY is None:
        return {}
    folder = tmp_path_factory.mktemp("console")
    (folder / "driver.groovy").write_text(DRIVER, encoding="utf-8")
    for name in SCRIPTS:
        (folder / f"{name}.program").write_text(program(name), encoding="utf-8")
    evaluate: groovy.Evaluate = request.getfixturevalue("evaluate")
    evaluate(folder)
    return {name: (folder / f"{name}.answer").read_text(encoding="utf-8") for name in SCRIPTS}


def _ended(answers: Mapping[str, str], name: str) -> script_run.ScriptEnd | None:
    """Return the end of the script. Without Groovy, print a message and return None."""
    if GROOVY is None:
        print(f"no groovy on this machine: the script '{name}' was not run")
        assert program(name).startswith("// toolchain-wrapper v1\n")
        return None
    ended = script_run.ended(answers[name], MARKER)
    assert ended is not None, answers[name][:2000]
    return ended


def test_every_script_has_an_expected_end() -> None:
    assert ENDS_WELL.keys() | ENDS_BADLY.keys() == SCRIPTS.keys()


@pytest.mark.parametrize("name", SCRIPTS)
def test_program_obeys_the_limits_of_the_language(name: str) -> None:
    """Verify that constants are short enough for Java, and that the script is only in comments."""
    text = re.sub(r"^//.*\n", "", program(name), flags=re.MULTILINE)
    literals = re.findall(r"'([^'\n]*)'", text)
    assert max(map(len, literals)) <= 65_535
    assert "@" not in text
    assert SCRIPTS[name] not in text


@pytest.mark.parametrize("name", ENDS_WELL)
def test_successful_script_returns_its_result(answers: Mapping[str, str], name: str) -> None:
    ended = _ended(answers, name)
    if ended is not None:
        assert (ended.output, ended.result) == ENDS_WELL[name]
        assert ended.exception is None


@pytest.mark.parametrize("name", ENDS_BADLY)
def test_failed_script_returns_its_exception(answers: Mapping[str, str], name: str) -> None:
    ended = _ended(answers, name)
    if ended is not None:
        output, exception, line = ENDS_BADLY[name]
        assert ended.output == output
        assert exception in str(ended.exception)
        assert ended.line == line
        assert ended.trace != ""
