# SPDX-License-Identifier: GPL-3.0-or-later
"""A small subset of Groovy for demonstrations; it never guesses unknown constructs.

Known: `println`/`print` of an expression, `return`, `throw new X("text")`, `def name = ...`,
`System.exit(n)`, `System.getProperty(name)`, `Jenkins.VERSION`, `state.put(k, v)`, `state.get(k)`,
literals, lists, maps, `args.name`, `+`, `==`, `!=`. Anything else raises Unknown, so that no script
gets an invented result.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

TOKEN = re.compile(
    r"""\s*(?:
        (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<number>-?\d+(?:\.\d+)?)
      | (?P<name>[A-Za-z_][\w]*)
      | (?P<op>==|!=|[+.,:()\[\]=])
    )""",
    re.VERBOSE,
)
ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "$": "$"}
THROW = re.compile(r"throw\s+new\s+([\w.]+)\s*\((.*)\)\s*\Z", re.DOTALL)
PRINT = re.compile(r"(println|print)\b(?!\s*=)(.*)\Z", re.DOTALL)
RETURN = re.compile(r"return\b(.*)\Z", re.DOTALL)
DEFINE = re.compile(r"(?:def|String|int|boolean)\s+(\w+)\s*=(?!=)(.*)\Z", re.DOTALL)
EXIT = re.compile(r"System\.exit\s*\(\s*-?\d+\s*\)\s*\Z")
COMMENTS = re.compile(r"/\*.*?\*/", re.DOTALL)


class Unknown(Exception):
    """Raised for a script that uses unsupported parts of Groovy."""


class Thrown(Exception):
    """Raised if the script throws. `exception` is `class: message`; `line` counts from 1."""

    def __init__(self, exception: str, line: int | None) -> None:
        super().__init__(exception)
        self.exception = exception
        self.line = line


class Exited(Exception):
    """Raised if the script ends the server process."""


class Constants(dict[str, Any]):
    """A class of the server with its constants, for example `Jenkins.VERSION`."""


class Properties(dict[str, Any]):
    """The class `System` with some known properties."""


@dataclass
class Run:
    """A run of a script, with its variables and output."""

    names: dict[str, Any]
    state: dict[str, Any]
    output: list[str] = field(default_factory=list)
    value: Any = None

    def run(self, script: str) -> Any:
        """Run the script and return its value. Raises Unknown, Thrown or Exited."""
        for line, statement in _statements(script):
            if self._statement(statement, line):
                break
        return self.value

    def _statement(self, text: str, line: int) -> bool:
        """Run a statement. Return whether it is a `return` statement."""
        self.value = None
        if EXIT.match(text):
            raise Exited
        if found := THROW.match(text):
            raise Thrown(_exception(found[1], self.evaluate(found[2])), line)
        if found := RETURN.match(text):
            self.value = self.evaluate(found[1])
            return True
        if found := PRINT.match(text):
            end = "\n" if found[1] == "println" else ""
            self.output.append(shown(self.evaluate(found[2])) + end)
        elif found := DEFINE.match(text):
            self.names[found[1]] = self.evaluate(found[2])
        else:
            self.value = self.evaluate(text)
        return False

    def evaluate(self, text: str) -> Any:
        return Expression(text, self).whole()


def _exception(name: str, message: Any) -> str:
    known = "." in name
    return f"{name if known else 'java.lang.' + name}: {shown(message)}"


def _statements(script: str) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    plain = COMMENTS.sub(lambda match: "\n" * match[0].count("\n"), script)
    for number, line in enumerate(plain.split("\n"), 1):
        for part in _split(line):
            if part != "" and not part.startswith("import "):
                found.append((number, part))
    return found


def _split(line: str) -> list[str]:
    """Split a line into statements at `;`, except in quoted strings. Ignore text after `//`."""
    parts, start, quote, at = [], 0, "", 0
    while at < len(line):
        char = line[at]
        if quote:
            if char == "\\":
                at += 1
            elif char == quote:
                quote = ""
        elif char in "'\"":
            quote = char
        elif char == ";":
            parts.append(line[start:at].strip())
            start = at + 1
        elif line.startswith("//", at):
            line = line[:at]
        at += 1
    return [*parts, line[start:].strip()]


class Expression:
    """Recursive descent parser for an expression. `line` is the line number of its statement."""

    def __init__(self, text: str, run: Run) -> None:
        self.run = run
        self.tokens = _tokens(text)
        self.at = 0

    def whole(self) -> Any:
        if not self.tokens:
            return None
        value = self.comparison()
        if self.at != len(self.tokens):
            raise Unknown
        return value

    def take(self, *texts: str) -> str | None:
        """Return the next token if it is one of the operators."""
        if self.at < len(self.tokens) and self.tokens[self.at] in [("op", text) for text in texts]:
            self.at += 1
            return self.tokens[self.at - 1][1]
        return None

    def need(self, text: str) -> None:
        if self.take(text) is None:
            raise Unknown

    def comparison(self) -> Any:
        left = self.sum()
        operator = self.take("==", "!=")
        if operator is None:
            return left
        equal = left == self.sum()
        return equal if operator == "==" else not equal

    def sum(self) -> Any:
        value = self.postfix()
        while self.take("+"):
            other = self.postfix()
            numbers = _number(value) and _number(other)
            value = value + other if numbers else shown(value) + shown(other)
        return value

    def postfix(self) -> Any:
        value = self.primary()
        while True:
            if self.take("."):
                value = self.member(value)
            elif isinstance(value, dict) and self.take("["):
                value = value.get(self.comparison())
                self.need("]")
            else:
                return value

    def member(self, value: Any) -> Any:
        kind, name = self.next()
        if kind != "name":
            raise Unknown
        if not self.take("("):
            if not isinstance(value, dict) or (isinstance(value, Constants) and name not in value):
                raise Unknown
            return value.get(name)
        arguments = self.arguments(")")
        if isinstance(value, Properties):
            if name != "getProperty" or len(arguments) != 1 or arguments[0] not in value:
                raise Unknown
            return value[arguments[0]]
        if value is self.run.state and name == "get" and len(arguments) == 1:
            return self.run.state.get(str(arguments[0]))
        if value is self.run.state and name == "put" and len(arguments) == 2:
            previous = self.run.state.get(str(arguments[0]))
            self.run.state[str(arguments[0])] = arguments[1]
            return previous
        if name == "toString" and not arguments:
            return java_text(value)
        raise Unknown

    def next(self) -> tuple[str, str]:
        if self.at == len(self.tokens):
            raise Unknown
        self.at += 1
        return self.tokens[self.at - 1]

    def primary(self) -> Any:
        kind, text = self.next()
        if kind == "string":
            return self.string(text)
        if kind == "number":
            return float(text) if "." in text else int(text)
        if kind == "name":
            return self.name(text)
        return self.bracketed(text)

    def bracketed(self, text: str) -> Any:
        if text == "[":
            return self.collection()
        if text != "(":
            raise Unknown
        if self.take(")"):
            return ""
        value = self.comparison()
        self.need(")")
        return value

    def name(self, text: str) -> Any:
        if text in ("true", "false", "null"):
            return {"true": True, "false": False, "null": None}[text]
        if text == "state":
            return self.run.state
        if text not in self.run.names:
            raise Unknown
        return self.run.names[text]

    def string(self, text: str) -> str:
        body = re.sub(r"\\(.)", lambda found: ESCAPES.get(found[1], found[1]), text[1:-1])
        if text[0] == "'":
            return body
        return re.sub(r"\$\{([^}]*)\}", lambda found: shown(self.run.evaluate(found[1])), body)

    def collection(self) -> Any:
        if self.take(":"):
            self.need("]")
            return {}
        is_map = self.tokens[self.at + 1 : self.at + 2] == [("op", ":")]
        return self.mapping() if is_map else self.arguments("]")

    def mapping(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while True:
            kind, key = self.next()
            self.need(":")
            found[self.string(key) if kind == "string" else key] = self.comparison()
            if self.take("]"):
                return found
            self.need(",")

    def arguments(self, end: str) -> list[Any]:
        found: list[Any] = []
        if self.take(end):
            return found
        while True:
            found.append(self.comparison())
            if self.take(end):
                return found
            self.need(",")


def _tokens(text: str) -> list[tuple[str, str]]:
    found, at, text = [], 0, text.strip()
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None or match.lastgroup is None:
            raise Unknown
        found.append((match.lastgroup, match[match.lastgroup]))
        at = match.end()
    return found


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def shown(value: Any) -> str:
    """Format a value like `println`: maps as `[a:1]`."""
    if isinstance(value, dict):
        return "[" + (", ".join(f"{k}:{shown(v)}" for k, v in value.items()) or ":") + "]"
    if isinstance(value, list):
        return "[" + ", ".join(shown(entry) for entry in value) + "]"
    return java_text(value)


def java_text(value: Any) -> str:
    """Format a value like `String.valueOf`: maps as `{a=1}`."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k}={java_text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(java_text(entry) for entry in value) + "]"
    return str(value)
