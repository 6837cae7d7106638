# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a script on the script console and parse its result [ci-16].

Server fact [ci-16]: if a script throws, `scriptText` returns 200 with a stack trace as text. To
detect that, the program prints a last line with a random marker, which proves that the script has
ended and how. The SSH command `groovy =` accepts the same program.

A real CI server runs the wrapper, which prints that line. A server that imitates a CI server may
return only output, value or stack trace of the script.
"""

from __future__ import annotations

import binascii
import json
import re
import secrets
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

from ..core import errors, json_text
from ..core.errors import ToolchainError
from ..core.http.messages import unexpected_body
from ..core.http.transport import Transport
from ..core.http.writes import OUTCOME_UNKNOWN
from ..core.module.task import Task
from ..core.secret import hidden
from .client import server_of
from .ssh_commands import SshCommands, SshOptions

#: File name of the user's script in stack traces and messages of the compiler.
SCRIPT_NAME = "ci_script.groovy"
#: A Java string constant holds at most 65,535 bytes.
_CHUNK_SIZE = 60_000

_PROGRAM = r"""// toolchain-wrapper v1
@COMMENT@
import groovy.json.JsonOutput
import groovy.json.JsonSlurper
import java.nio.charset.Charset
import org.codehaus.groovy.ast.ClassCodeVisitorSupport
import org.codehaus.groovy.ast.ClassHelper
import org.codehaus.groovy.ast.ClassNode
import org.codehaus.groovy.ast.expr.ClassExpression
import org.codehaus.groovy.ast.expr.MethodCallExpression
import org.codehaus.groovy.classgen.GeneratorContext
import org.codehaus.groovy.control.CompilePhase
import org.codehaus.groovy.control.CompilerConfiguration
import org.codehaus.groovy.control.MultipleCompilationErrorsException
import org.codehaus.groovy.control.SourceUnit
import org.codehaus.groovy.control.customizers.CompilationCustomizer
import org.codehaus.groovy.control.customizers.ImportCustomizer
import org.codehaus.groovy.control.messages.SyntaxErrorMessage

// An Error, so that a script that catches exceptions does not go on as if it had ended.
class SystemExitRefused extends Error {
    SystemExitRefused(Object status) {
        super('System.exit(' + status + ') would end the CI server: not carried out')
    }

    static void exit(Object status) {
        throw new SystemExitRefused(status)
    }
}

class SystemExitCalls extends ClassCodeVisitorSupport {
    final SourceUnit source

    SystemExitCalls(SourceUnit source) {
        this.source = source
    }

    protected SourceUnit getSourceUnit() {
        source
    }

    void visitMethodCallExpression(MethodCallExpression call) {
        def receiver = call.objectExpression
        def known = receiver instanceof ClassExpression
        if (known && receiver.type.name == 'java.lang.System' && call.methodAsString == 'exit') {
            call.objectExpression = new ClassExpression(ClassHelper.make(SystemExitRefused))
        }
        super.visitMethodCallExpression(call)
    }
}

class SystemExitCustomizer extends CompilationCustomizer {
    SystemExitCustomizer() {
        super(CompilePhase.CANONICALIZATION)
    }

    void call(SourceUnit source, GeneratorContext context, ClassNode node) {
        new SystemExitCalls(source).visitClass(node)
    }
}

def marker = '@MARKER@'
@PAYLOAD@

// What JSON has stays as it is, everything else becomes its text.
def plain
plain = { value, path ->
    if (value == null || value instanceof Boolean) {
        return value
    }
    if (value instanceof Number) {
        return value.toString() in ['NaN', 'Infinity', '-Infinity'] ? value.toString() : value
    }
    if (path.size() > 100 || path.any { it.is(value) }) {
        return '...'
    }
    def below = path + [value]
    if (value instanceof Map) {
        def copy = new LinkedHashMap()
        value.each { entry -> copy[String.valueOf(entry.key)] = plain(entry.value, below) }
        return copy
    }
    if (value instanceof Collection || value.getClass().isArray()) {
        return value.collect { entry -> plain(entry, below) }
    }
    String.valueOf(value)
}

def lineOf = { Throwable thrown ->
    if (thrown instanceof MultipleCompilationErrorsException) {
        def wrong = thrown.errorCollector.errors.find { it instanceof SyntaxErrorMessage }
        return wrong == null ? null : wrong.cause.line
    }
    def frame = thrown.stackTrace.find { it.fileName == '@NAME@' && it.lineNumber > 0 }
    frame == null ? null : frame.lineNumber
}

def printed = new StringWriter()
def writer = new PrintWriter(printed, true)
def word = 'OK'
def answer
try {
    def call = new JsonSlurper().parseText(new String(payload.decodeBase64(), 'UTF-8'))
    def names = new Binding()
    names.setVariable('args', plain(call.args, []))
    names.setVariable('check_mode', call.check_mode)
    names.setVariable('out', writer)
    def configuration = new CompilerConfiguration()
    configuration.addCompilationCustomizers(
        // the packages that the script console imports
        new ImportCustomizer().addStarImports('jenkins', 'jenkins.model', 'hudson', 'hudson.model'),
        new SystemExitCustomizer()
    )
    def shell = new GroovyShell(getClass().classLoader, names, configuration)
    def value = shell.evaluate(call.script.toString(), '@NAME@')
    answer = [result: plain(value, []), text: value == null ? null : String.valueOf(value)]
} catch (Throwable thrown) {
    word = 'FAIL'
    def trace = new StringWriter()
    thrown.printStackTrace(new PrintWriter(trace, true))
    answer = [
        exception: thrown.toString(), trace: trace.toString().take(50000), line: lineOf(thrown)
    ]
}
writer.flush()
def text = printed.toString()
if (Charset.defaultCharset().name() != 'UTF-8' && text =~ /[^\x00-\x7f]/) {
    answer.output = text
}
out.print(text)
out.print(text.isEmpty() || text.endsWith('\n') ? '' : '\n')
def told = JsonOutput.toJson(answer).getBytes('UTF-8').encodeBase64().toString()
out.print(marker + ':' + word + ':' + told + '\n')
out.flush()
return null
"""


@dataclass(frozen=True)
class ScriptEnd:
    """Result of a script.

    :param output: printed output without the last line break
    :param result: returned value; a string if JSON cannot represent the value
    :param exception: `class: message` of the thrown exception, or `None`
    :param trace: stack trace of the exception
    :param line: line of the script that threw the exception, or `None` if unknown
    """

    output: str
    result: Any = None
    exception: str | None = None
    trace: str = ""
    line: int | None = None


def wrapped(script: str, arguments: Mapping[str, Any], marker: str, *, only_reads: bool) -> str:
    """Return the program for the script console.

    :param arguments: value of `args` in the script; passed as data, never as source
    :param marker: random hexadecimal digits
    :param only_reads: value of `check_mode` in the script
    """
    call = {"script": script, "args": dict(arguments), "check_mode": only_reads}
    payload = b64encode(json.dumps(call, ensure_ascii=False).encode("utf-8")).decode("ascii")
    chunks = [payload[start : start + _CHUNK_SIZE] for start in range(0, len(payload), _CHUNK_SIZE)]
    lines = [f"def payload = '{chunks[0]}'", *(f"payload += '{chunk}'" for chunk in chunks[1:])]
    program = _PROGRAM.replace("@MARKER@", marker).replace("@NAME@", SCRIPT_NAME)
    program = program.replace("@PAYLOAD@", "\n".join(lines))
    # The script as a comment is readable in the server's script log. Groovy also interprets Unicode
    # escapes such as `\u000a` in comments, so a blank is inserted.
    lines = re.split(r"\r\n|\r|\n", re.sub(r"\\(?=u)", r"\\ ", script))
    printable = ("".join(c if c.isprintable() else " " for c in line) for line in lines)
    return program.replace("@COMMENT@", "\n".join(f"// {line}" for line in printable))


def ended(text: str, marker: str) -> ScriptEnd | None:
    """Parse the output of the program. Return `None` without a valid marker line."""
    found = re.search(rf"^{marker}:(OK|FAIL):([A-Za-z0-9+/=]*)\r?\n?\Z", text, re.MULTILINE)
    if found is None:
        return None
    try:
        reported = json_text.loads(b64decode(found[2], validate=True))
    except (binascii.Error, ValueError):
        return None
    # Server fact [ci-17]: the server encodes the output of `groovy =` in its default character set,
    # so the program reports non-ASCII output in the marker line too.
    printed = reported.get("output", text[: found.start()])
    output = re.sub(r"\r?\n\Z", "", printed)
    if found[1] == "OK":
        result = reported.get("result")
        return ScriptEnd(output, reported.get("text") if result is None else result)
    return ScriptEnd(
        output,
        None,
        str(reported.get("exception")),
        str(reported.get("trace") or ""),
        reported.get("line"),
    )


@dataclass(frozen=True)
class ConsoleOutput:
    """Response of the script console.

    :param error: creates an error for the response from kind, message and detail
    :param page: error if the response is a web page instead of the script's output
    """

    text: str
    error: Callable[[errors.Kind, str, str | None], ToolchainError]
    page: ToolchainError | None = None


class ScriptConsole(Protocol):
    """Function that runs a program on the server and waits for its end."""

    def __call__(self, purpose: str, program: str, *, reads: bool) -> ConsoleOutput:
        """Run a program and return its output.

        :param reads: whether the program only reads; other programs are not sent in check mode
        """


def console_of(task: Task, options: SshOptions) -> ScriptConsole:
    """Return the script console for the transport that the options select."""
    if options.transport != "ssh":
        return http_console(server_of(task))
    commands = SshCommands(task, options)

    def run(purpose: str, program: str, *, reads: bool) -> ConsoleOutput:
        done = commands.run(purpose, "groovy =", reads=reads, stdin=program)
        return ConsoleOutput(done.output, done.error)

    return run


def http_console(server: Transport) -> ScriptConsole:
    """Return the script console over HTTP."""

    def run(purpose: str, program: str, *, reads: bool) -> ConsoleOutput:
        response = server.send(
            purpose, "POST", "scriptText", reads=reads, expect=(200,), form={"script": program}
        )
        is_page = errors.looks_like_html(response.text)
        page = unexpected_body(response, "the script's output") if is_page else None
        return ConsoleOutput(response.text, response.error, page)

    return run


# Server fact [ci-16]: `scriptText` prints the value of a script as the last line.
_RESULT = re.compile(r"^Result: (.*?)\r?\n?\Z", re.MULTILINE)
_EXCEPTION = re.compile(
    r"^(?:(?:[\w$]+\.)+[\w$]*(?:Exception|Error)(?=:|\s*$)|Assertion failed:)", re.MULTILINE
)
_FRAME = re.compile(r"^[ \t]+at [\w.$/<>]+\(.*\)[ \t\r]*$", re.MULTILINE)


def read(text: str, marker: str) -> ScriptEnd | None:
    """Parse a response without a valid marker line. Return `None` if the script may not have ended.

    Such responses are empty, web pages of a proxy or a login, or truncated or altered, so that the
    marker is not in the last line.
    """
    if not text.strip() or marker in text or errors.looks_like_html(text):
        return None
    named, frame = _EXCEPTION.search(text), _FRAME.search(text)
    start = None if named is None else named.start()
    if named is None and frame is not None:  # the line before the first frame
        start = text.rstrip().rfind("\n", 0, len(text[: frame.start()].rstrip())) + 1
    if start is not None:
        trace = text[start:].rstrip()
        message = trace.partition("\n\tat ")[0].strip()
        return ScriptEnd(_without_line_break(text[:start]), None, message, trace)
    found = _RESULT.search(text)
    if found is None:
        return ScriptEnd(_without_line_break(text))
    return ScriptEnd(_without_line_break(text[: found.start()]), decoded(found[1]))


def decoded(text: str) -> Any:
    """Parse a JSON text. Return the text unchanged if it is not JSON."""

    def reject(constant: str) -> NoReturn:
        raise ValueError(constant)

    try:
        return json_text.loads(text, parse_constant=reject)
    except ValueError:
        return text


def _without_line_break(text: str) -> str:
    return re.sub(r"\r?\n\Z", "", text)


_RUNTIME_FRAME = re.compile(
    r"\s*at (java\.base/)?(org\.codehaus\.groovy|org\.apache\.groovy|groovy\.lang|sun\.reflect"
    r"|java\.lang\.reflect|jdk\.internal)\."
)
_MAX_FRAMES = 8


def run_script(
    console: ScriptConsole,
    purpose: str,
    script: str,
    arguments: Mapping[str, Any],
    *,
    only_reads: bool,
    warn: Callable[[str], None] | None = None,
) -> ScriptEnd:
    """Run a script and wait for its end.

    Raises `failed` if the script throws, and `protocol` if the response does not show its end.

    :param arguments: value of `args` in the script; passed as data, never as source
    :param only_reads: value of `check_mode` in the script
    :param warn: receives a warning if the server does not run the wrapper and the output is assumed
        to be complete; `None` means that such a response is an error
    """
    marker = secrets.token_hex(16)
    output = console(
        purpose, wrapped(script, arguments, marker, only_reads=only_reads), reads=only_reads
    )
    end = ended(output.text, marker)
    if end is None and warn is not None:
        end = read(output.text, marker)
        if end is not None and end.exception is None:
            warn(
                f"{purpose}: the response does not show how the script ended. The task assumes that"
                " the output is complete"
            )
    if end is None:
        raise (
            _no_end_error(output)
            if only_reads
            else _no_end_error(output).with_hint(OUTCOME_UNKNOWN)
        )
    if end.exception is not None:
        position = "" if end.line is None else f" (line {end.line})"
        error = output.error(
            "failed",
            f"the script threw {errors.shorten(end.exception)}{position}",
            cut_trace(end.trace, end.line),
        )
        error.result.update(printed(end), result=None)
        raise error
    return end


def printed(end: ScriptEnd) -> dict[str, Any]:
    """Return the output of a script as return values."""
    return {"output": end.output, "output_lines": end.output.splitlines()}


def _no_end_error(output: ConsoleOutput) -> ToolchainError:
    """Return the error for a response that does not show the end of the script."""
    if output.page is not None:
        output.page.result["changed"] = False  # a proxy or login page: no script was run
        return output.page
    return output.error(
        "protocol",
        "the response does not show how the script ended. It was truncated, the script stopped the"
        " server, or url is not a CI server",
        errors.shorten(output.text),
    )


def cut_trace(trace: str, line: int | None) -> str:
    """Return a stack trace that ends with the line of the script, without frames of the Groovy
    runtime.
    """
    lines = hidden.mask(trace).rstrip().splitlines()
    first = next((n for n, text in enumerate(lines) if text.startswith("\tat ")), len(lines))
    head, frames = lines[:first], lines[first:]
    position = f".groovy:{line})"
    last = next((n for n, frame in enumerate(frames) if position in frame), None)
    if last is None:
        return "\n".join(head)[: errors.DETAIL_LIMIT]
    shown = [frame for frame in frames[: last + 1] if not _RUNTIME_FRAME.match(frame)]
    below = "\n".join(shown[-_MAX_FRAMES:])[-errors.DETAIL_LIMIT // 2 :]
    return "\n".join(head)[: errors.DETAIL_LIMIT // 2] + "\n" + below
