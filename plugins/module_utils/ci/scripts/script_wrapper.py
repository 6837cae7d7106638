# SPDX-License-Identifier: GPL-3.0-or-later
"""Wrap a script in a Groovy program that reports how the script ended.

Server fact [ci-16]: if a script throws, `scriptText` returns 200 with a stack trace as text. So the
program prints a last line with a random marker, which proves that the script has ended and how. The
SSH command `groovy =` accepts the same program.
"""

from __future__ import annotations

import binascii
import json
import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...core import json_text

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
    return program.replace("@COMMENT@", _comment(script))


def _comment(script: str) -> str:
    r"""Return the script as a comment, which makes it readable in the server's script log.

    Groovy also interprets Unicode escapes such as `\u000a` in comments, so a blank is inserted.
    """
    shown = re.sub(r"\\(?=u)", r"\\ ", script)
    lines = re.split(r"\r\n|\r|\n", shown)
    return "\n".join("// " + "".join(c if c.isprintable() else " " for c in line) for line in lines)


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
