# SPDX-License-Identifier: GPL-3.0-or-later
"""Mask secrets in free text, such as scripts, logs and messages [C12].

The text may be escaped for JSON, XML or a shell.

All functions take linear time: a pattern matches a name only from its beginning, and a value is
read once.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from .secret import MASK, is_secret_name, is_token

# Only lines with one of these strings are searched, because the search takes longer.
_SIGNS = (
    *("pass", "pwd", "psw", "secret", "token", "key", "jwt", "pin", "pat", "cookie", "sig", "auth"),
    *("-api", "bearer", "credentials", "creds", "://", "-u", "-user", "login", "mysql", "mariadb"),
    "eyj",
)
_LINE_END = re.compile(r"(?<!\\)\n")
# PEM, PGP, SSH2 and the format of PuTTY
_PRIVATE_KEY = re.compile(
    r"(BEGIN[ \w]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}|Private-Lines: \d+(?=[\r\n]))"
    r"((?:(?!----[- ]?END|Private-(?:MAC|Hash):)[\s\S])+)"
)
_JSON_WEB_TOKEN = re.compile(r"(?<![\w-])eyJ[\w-]+\.[\w-]+\.[\w-]+")

# A quote, also within quotes of a shell, or escaped for JSON or HTML.
_QUOTE = r"""(?:'\\''|'"'"'|\\*["']|\\u002[27]|&(?:amp;)*(?:quot|apos|\#0*3[49]|\#[xX]0*2[27]);)"""
_QUOTES = re.compile(_QUOTE)
_LIST_COMMA = rf"{_QUOTE}[ \t]*,[ \t]*"
# The equals sign of many languages, also escaped for JSON and addresses.
_EQUALS = r"(?:[:+?]?={1,3}>?|\\u003[dD]|%3[dD])"

# Names and the separator before their value.
_ASSIGNMENT = re.compile(
    rf"(?<![\w.-])([\w.-]+)({_QUOTE}?\]?[ \t]*(?:{_EQUALS}[ \t]*|:[ \t]*(?={_QUOTE})))"
)
_ARGUMENT = re.compile(
    rf"(?<![\w.-])(--?[A-Za-z][\w.-]*)((?:[ \t]+|{_LIST_COMMA}(?={_QUOTE}))(?!-))"
)
_CALL = re.compile(rf"(\([ \t]*{_QUOTE}[\w.-]+)({_LIST_COMMA}(?={_QUOTE}))")
_ELEMENT = re.compile(r"((?<=<)[\w.:-]+|(?<=&lt;)[\w.:-]+)((?:>|&gt;)(?=[^\s<&]))")
_HEADER = re.compile(
    rf"(?<![\w-])([\w-]+)({_QUOTE}?:[ \t]*{_QUOTE}?(?:(?:Basic|Bearer|Token|Digest)[ \t]+)?)",
    re.IGNORECASE,
)
_BEARER = re.compile(
    r"""\b(Bearer)([ \t]+(?=[^\s"'<>,;]{8})(?=[^\s"'<>,;]*[\d.]))""", re.IGNORECASE
)
# Two numbers are the ids of a user and a group.
_USER = re.compile(
    rf"""(?<=[\s"'\[])((?:-[uU]|--(?:proxy-)?user|--(?:src-|dest-)?creds)(?:[ =]|{_LIST_COMMA})"""
    rf"""{_QUOTE}?(?!\d+:\d+(?:[\s"']|$))[^\s:"'=]*)(:(?!//))"""
)
_PASSWORD = re.compile(rf"""(?<=[\s"'\[])(-p)((?:{_LIST_COMMA})?[ \t]*=?)""")
_CURL_USER = re.compile(r"""(?<=\s)(-[uU]["']?[^\s:"'=]+)(:(?!//))""")

# A command with its quoted strings and continued lines, and the programs that take a login.
_COMMAND = re.compile(
    r"""(?:"(?:[^"\\\n]|\\[\s\S])*"|'[^'\n]*'|\\[\s\S]|&(?:amp;)*\#?\w+;|[^\n;|&])+"""
)
_DATABASE = re.compile(r"\b(?:(?:mysql|mariadb)\w*|sshpass)\b")
_REGISTRY = re.compile(r"\b(?:docker|podman|buildah|nerdctl|skopeo|helm|oras|crane|oc|az)\b")
_CURL = re.compile(r"\bcurl\b")
_PROGRAM = re.compile(f"{_DATABASE.pattern}|{_REGISTRY.pattern}|{_CURL.pattern}")
_LOGIN = re.compile(r"""(?<=[\s"'])login(?=[\s"']|$)""")

_USER_INFO = re.compile(r"""(?!\[)([^/?#:@"'<>]*)(?:(:)(?!\d*(?:[/?#]|$))|@)""")
# A blank ends a value outside of quotes, and a separator before a blank, another separator, a pair
# or a closing tag. Elsewhere `&` and the like are characters of the value.
_SEPARATOR = r"(?:[&;|<>]|&(?:amp;)+(?:[lg]t;)?|&[lg]t;)"
_VALUE_END = re.compile(
    rf"\s|&\#(?:9|1[03]|[xX][aAdD]);|{_SEPARATOR}(?:\s|$|{_SEPARATOR}|[\w.%\[\]-]+=|{_QUOTE}"
    r"|/[\w.:-]+(?:>|&gt;|&amp;gt;))"
)
_PLAIN = re.compile(r"""[^\s"'&;|<>\\]+""")
_AFTER_STRING = frozenset(",:)}]")
# What may follow a quote that closes the string around a value.
_CLOSED = re.compile(r"[\s,;:)}\]<\\&|]|$")
# The first part of a header (two, if the first may be the name of a scheme), and pairs after it.
_HEADER_VALUE = re.compile(
    r"""(?:[\w.-]+="[^"]*"|(?:[^\s"'<>,;&]|&(?!\#?\w+;))+)"""
    r"""(?P<second>[ \t]+[^\s"'<>,;:]+(?![\w:]))?"""
    r"""(?:[ \t]*[,;][ \t]*[\w.$-]+=(?:"[^"]*"|[^\s"'<>,;]*))*"""
)
# References to secrets, words that are no secrets, and what replaces a secret.
_PLACEHOLDER = re.compile(r"\((?:new )?secret\)")
_NO_SECRET = re.compile(
    rf"''|(?:(?!'){_QUOTE})?(?:\$[\w{{(][\s\S]*|%\w+%|\{{\{{[\s\S]*|\((?:new )?secret\)|\*+"
    rf"|true|false|null|none|yes|no|){_QUOTE}?",
    re.IGNORECASE,
)

#: Return the end of the value at a position. The set contains the quotes that are open there.
_End = Callable[[str, int, set[str]], int]


def mask_free_text(text: str) -> str:
    """Mask the secrets in free text: passwords in addresses, headers, assignments, arguments of
    programs, private keys and JSON web tokens [C12].

    References to variables (`$TOKEN`, `%TOKEN%`, `{{ token }}`) stay.
    """
    text = _PRIVATE_KEY.sub(rf"\g<1>{MASK}", text)
    if not _may_have_secret(text):
        return text
    lines = _LINE_END.split(text)
    return "\n".join(_masked_line(line) if _may_have_secret(line) else line for line in lines)


def _may_have_secret(text: str) -> bool:
    lower = text.lower()
    return any(sign in lower for sign in _SIGNS)


def _masked_line(line: str) -> str:
    line = _JSON_WEB_TOKEN.sub(MASK, line)
    if "://" in line and "@" in line:
        line = "".join(map(_without_login, re.split(r"""([\s"<>]+)""", line)))
    lower = line.lower()
    for signs, names, is_secret, end in _FORMS:
        if any(sign in lower for sign in signs):
            line = _with_masked_values(line, names, is_secret, end)
    return _COMMAND.sub(_masked_command, line) if _PROGRAM.search(line) else line


def _without_login(word: str) -> str:
    """Mask the password in an address, also if it contains characters such as `/` and `#`.

    The password ends at the last `@`, so that no part of it is shown.
    """
    last = word.rfind("@")
    for scheme in re.finditer("://", word[: max(last, 0)]):
        user = _USER_INFO.match(word, scheme.end())
        if user is not None and user[2]:
            return f"{word[: user.end()]}{_masked(word[user.end() : last])}{word[last:]}"
        if user is not None and is_token(user[1]):
            return f"{word[: scheme.end()]}{MASK}{word[user.end() - 1 :]}"
    return word


def _masked_command(found: re.Match[str]) -> str:
    """Mask the passwords in options whose meaning depends on the program, such as `-p`."""
    command = found[0]
    registry = _REGISTRY.search(command)
    for program, names in (
        (_DATABASE.search(command), _PASSWORD),
        (registry and _LOGIN.search(command, registry.end()), _PASSWORD),
        (_CURL.search(command), _CURL_USER),
    ):
        if program is not None:
            masked = _with_masked_values(command[program.end() :], names, _always, _value_end)
            command = command[: program.end()] + masked
    return command


def _with_masked_values(
    line: str, names: re.Pattern[str], is_secret: Callable[[str], bool], end: _End
) -> str:
    """Mask the values that follow secret names.

    The values of other names are searched too: they may be quoted scripts or headers.

    :param names: matches a name and the separator after it
    """
    parts, done, place, counted = [], 0, 0, 0
    quotes: set[str] = set()
    while (found := names.search(line, place)) is not None:
        place = found.end()
        if is_secret(found[1]):
            for quote in _QUOTES.finditer(line, counted, place):
                quotes ^= {quote[0]}
            counted = max(end(line, place, quotes), place)
            parts += [line[done:place], _masked(line[place:counted])]
            done = place = counted
    return "".join([*parts, line[done:]])


def _value_end(line: str, start: int, quotes: set[str]) -> int:
    """Return the end of a word of a shell: quoted strings and other characters without a blank."""
    placeholder = _PLACEHOLDER.match(line, start)
    if placeholder is not None:
        return placeholder.end()
    place = start
    while place < len(line) and _VALUE_END.match(line, place) is None:
        quote, plain = _QUOTES.match(line, place), _PLAIN.match(line, place)
        if quote is not None:
            closing = _closing(line, quote[0], quote.end())
            if quote[0] in quotes and (closing < 0 or _CLOSED.match(line, quote.end())):
                break
            # a quoted string that goes on in the next line, or an apostrophe within a word
            rest = len(line) if place == start else quote.end()
            place = rest if closing < 0 else closing + len(quote[0])
            # a string in a list of arguments or members, not in a word of a shell
            if quote.start() == start and line[place : place + 1] in _AFTER_STRING:
                break
        elif plain is not None:
            place = plain.end()
        elif line[place] == "\\" and line[place + 1 : place + 2] in ("", "\n"):
            break
        else:
            place += 2 if line[place] == "\\" else 1
    return place


def _closing(line: str, quote: str, place: int) -> int:
    """Return the position of the closing quote, or -1."""
    if quote in ('"', "'"):
        found = re.compile(rf"(?:[^{quote}\\]|\\.)*{quote}").match(line, place)
        return line.find(quote, place) if found is None else found.end() - 1
    exact = re.compile(rf"(?<!\\){re.escape(quote)}").search(line, place)
    return -1 if exact is None else exact.start()


def _header_end(line: str, start: int, quotes: set[str]) -> int:
    """Return the closing quote of the string with the header, or the end of its parts."""
    closings = [place for quote in quotes if (place := _closing(line, quote, start)) >= 0]
    if closings:
        return min(closings)
    value = _HEADER_VALUE.match(line, start)
    if value is None:
        return start
    has_scheme = re.search(r"\w[ \t]+$", line[max(start - 20, 0) : start]) is not None
    second = value.start("second")
    return second if second >= 0 and has_scheme else value.end()


def _element_end(line: str, start: int, _quotes: set[str]) -> int:
    """Return the beginning of the next tag of XML."""
    found = re.compile("<|&lt;|$").search(line, start)
    return len(line) if found is None else found.start()


def _masked(value: str) -> str:
    """Return a masked value with its quotes. References to variables stay."""
    if _NO_SECRET.fullmatch(value):
        return value
    found = _QUOTES.match(value)
    mark = found[0] if found and value.endswith(found[0]) and len(value) > len(found[0]) else ""
    return f"{mark}{MASK}{mark}"


def _always(_name: str) -> bool:
    return True


def _is_named(name: str) -> bool:
    return _is_header(name) or _is_assigned(name)


def _is_header(name: str) -> bool:
    lower = name.lower()
    return lower.endswith(("authorization", "-api", "cookie")) or (
        "-" in name and is_secret_name(name)
    )


def _is_assigned(name: str) -> bool:
    return is_secret_name(name) or name.lower().endswith(("sig", "signature", "authorization"))


#: A string that every line with such a secret contains in lower case, because patterns take longer;
#: names and the separator before the value, whether a name is secret, and where its value ends.
_FORMS: tuple[tuple[tuple[str, ...], re.Pattern[str], Callable[[str], bool], _End], ...] = (
    (("-u", "user", "creds"), _USER, _always, _value_end),
    (("bearer",), _BEARER, _always, _value_end),
    ((":",), _HEADER, _is_header, _header_end),
    (("(",), _CALL, _is_named, _value_end),
    (("<", "&lt;"), _ELEMENT, is_secret_name, _element_end),
    (("=", ":", "%3d", "u003d"), _ASSIGNMENT, _is_assigned, _value_end),
    (("-",), _ARGUMENT, is_secret_name, _value_end),
)
