# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulation of scripts for `/scriptText`: rules first, then the Groovy subset of `groovy.py`.

The sandbox has no Groovy. A rule of the setting `scripts` applies to all scripts in which its
regular expression `match` is found. All keys but `match` are optional:

    match: regular expression, searched in the script's text
    when: {key: value}     only while the key-value state holds these values (null: not set)
    args: {name: value}    only if the script was given these arguments
    output: text           the output; `{name}` in braces after a dollar sign is an argument
    result: value          the script's value; in code also a function of its arguments
    throws: "class: text"  the script throws an exception instead
    line: number           the line of the exception
    sets: {key: value}     changes of the key-value state, unless the script runs in check mode

A script with the comment `// toolchain-wrapper v1` carries the real script as data; the response
contains marker lines. The response to any other script is that of the server [ci-16]: the output,
`Result: <value>` if there is a value, and a stack trace after an exception. The status is always
200.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass
from typing import Any

from sandbox.ci.scripts import groovy

WRAPPED = re.compile(r"^[ \t]*// toolchain-wrapper v1[ \t]*$", re.MULTILINE)
# A long payload is split into chunks: `payload = '...'`, then `payload += '...'`. The comment of
# the wrapper shows the script, which may contain anything.
PAYLOAD = re.compile(r"^(?:def )?payload\s*\+?=\s*['\"]([A-Za-z0-9+/=]*)['\"]", re.MULTILINE)
MARKER = re.compile(r"^(?:def )?marker\s*=\s*['\"]([0-9A-Fa-f]+)['\"]", re.MULTILINE)
TRAILER = re.compile(r"\n\s*(print(?:ln)?\s*\(?\s*(\"[^\"$]*\"|'[^']*')\s*\)?)\s*\Z")
UNKNOWN = (
    "groovy.lang.MissingPropertyException: sandbox cannot evaluate this script; "
    "add a rule under ci.settings.scripts"
)


@dataclass(frozen=True)
class Call:
    """A script with its arguments, and whether it runs in check mode."""

    script: str
    args: dict[str, Any]
    check_mode: bool = False


@dataclass(frozen=True)
class Server:
    """Server properties that scripts can read."""

    version: str = "2.479.3"
    java: str = "17"

    def names(self) -> dict[str, Any]:
        properties = groovy.Properties({"java.specification.version": self.java})
        return {"Jenkins": groovy.Constants({"VERSION": self.version}), "System": properties}


@dataclass(frozen=True)
class Outcome:
    """Result of a script: its value or its exception. `exited` means that the server ended."""

    output: str
    value: Any = None
    exception: str | None = None
    line: int | None = None
    exited: bool = False


def wrapped_call(script: str) -> tuple[Call, str] | None:
    """Return the wrapped script and its marker, or `None` for a script without a valid wrapper."""
    chunks, marker = PAYLOAD.findall(script), MARKER.search(script)
    if WRAPPED.search(script) is None or not chunks or marker is None:
        return None
    try:
        data = json.loads(base64.b64decode("".join(chunks), validate=True))
    except (binascii.Error, ValueError):
        return None
    if not isinstance(data, dict) or not isinstance(data.get("script"), str):
        return None
    call = Call(data["script"], dict(data.get("args") or {}), data.get("check_mode") is True)
    return call, marker[1]


def play(
    script: str, rules: list[dict[str, Any]], state: dict[str, Any], server: Server | None = None
) -> str:
    """Return the response of `/scriptText`. A script may change `state`."""
    names = (server or Server()).names()
    found = wrapped_call(script)
    if found is None:
        return _raw_response(_raw_outcome(script, rules, state, names))
    call, marker = found
    return _wrapped_response(_outcome(call, rules, state, names), marker)


def command(
    script: str, rules: list[dict[str, Any]], state: dict[str, Any]
) -> tuple[str, str | None]:
    """Return the output of the SSH command `groovy =`, and the stack trace of an exception.

    Unlike `/scriptText`, the output does not include the value of the script [ci-16].
    """
    if wrapped_call(script) is not None:
        return play(script, rules, state), None
    outcome = _raw_outcome(script, rules, state, Server().names())
    return outcome.output, None if outcome.exception is None else _trace(outcome)


def _outcome(
    call: Call, rules: list[dict[str, Any]], state: dict[str, Any], names: dict[str, Any]
) -> Outcome:
    for rule in rules:
        if _applies(rule, call, state):
            if not call.check_mode:
                state.update(rule.get("sets") or {})
            throws, result = rule.get("throws"), rule.get("result")
            return Outcome(
                _filled(str(rule.get("output") or ""), call.args),
                result(call.args) if callable(result) else result,
                None if throws is None else str(throws),
                rule.get("line"),
            )
    return _evaluated(call, state, names)


def _applies(rule: dict[str, Any], call: Call, state: dict[str, Any]) -> bool:
    conditions: dict[str, Any] = rule.get("when") or {}
    wanted: dict[str, Any] = rule.get("args") or {}
    return (
        re.search(str(rule["match"]), call.script) is not None
        and all(state.get(key) == value for key, value in conditions.items())
        and all(call.args.get(key) == value for key, value in wanted.items())
    )


def _filled(output: str, args: dict[str, Any]) -> str:
    return re.sub(
        r"\$\{(?:args\.)?(\w+)\}",
        lambda found: groovy.shown(args[found[1]]) if found[1] in args else found[0],
        output,
    )


def _evaluated(call: Call, state: dict[str, Any], names: dict[str, Any]) -> Outcome:
    run = groovy.Run({**names, "args": call.args, "check_mode": call.check_mode}, state)
    try:
        value = run.run(call.script)
    except groovy.Unknown:
        return Outcome("".join(run.output), exception=UNKNOWN)
    except groovy.Thrown as thrown:
        return Outcome("".join(run.output), exception=thrown.exception, line=thrown.line)
    except groovy.Exited:
        return Outcome("".join(run.output), exited=True)
    return Outcome("".join(run.output), value)


def _raw_outcome(
    script: str, rules: list[dict[str, Any]], state: dict[str, Any], names: dict[str, Any]
) -> Outcome:
    """Run a script without a wrapper.

    Some clients append a line that prints a literal, to check whether the script finished. This
    line is run separately, and only if the script did not throw.
    """
    trailer = TRAILER.search(script)
    if trailer is None:
        return _outcome(Call(script, {}), rules, state, names)
    first = _outcome(Call(script[: trailer.start()], {}), rules, state, names)
    if first.exception is not None or first.exited:
        return first
    last = _evaluated(Call(trailer[1], {}), state, names)
    return Outcome(first.output + last.output)


def _raw_response(outcome: Outcome) -> str:
    if outcome.exception is not None:
        return outcome.output + _trace(outcome)
    if outcome.value is not None and not outcome.exited:
        return f"{outcome.output}Result: {groovy.java_text(outcome.value)}\n"
    return outcome.output


def _wrapped_response(outcome: Outcome, marker: str) -> str:
    """Return the response to a wrapped script. It has no marker if the script ended the server."""
    if outcome.exited:
        return outcome.output
    parted = outcome.output == "" or outcome.output.endswith("\n")
    text = outcome.output if parted else outcome.output + "\n"
    if outcome.exception is not None:
        word = "FAIL"
        data = {
            "exception": outcome.exception,
            "trace": _trace(outcome),
            "line": outcome.line,
        }
    else:
        said = None if outcome.value is None else groovy.java_text(outcome.value)
        word = "OK"
        data = {"result": outcome.value, "text": said}
    return f"{text}{marker}:{word}:{_encoded(data)}\n"


def _encoded(data: dict[str, Any]) -> str:
    return base64.b64encode(json.dumps(data, ensure_ascii=False).encode()).decode("ascii")


def _trace(outcome: Outcome) -> str:
    line = "" if outcome.line is None else f":{outcome.line}"
    frames = (
        f"Script1.run(Script1.groovy{line})",
        "groovy.lang.GroovyShell.evaluate(GroovyShell.java:574)",
        "hudson.util.RemotingDiagnostics$Script.call(RemotingDiagnostics.java:149)",
    )
    return f"{outcome.exception}\n" + "".join(f"\tat {frame}\n" for frame in frames)
