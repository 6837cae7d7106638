# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that no string of a server takes more than linear time to parse, in any package."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci import client as ci
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci import (
    script_run,
    xml_reader,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.builds import ci_artifact
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.jobs import configuration
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.server import (
    installed_plugins,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core import errors, globs
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http import (
    bodies,
    messages,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo import (
    aql,
    client,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.images import registry
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.tracker import (
    client as tracker,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki import exchange as wiki
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.wiki.formats import (
    comparison,
    elements,
    parser,
)

SIZE = 40_000
ESCAPED = {ord("<"): "&lt;", ord("&"): "&amp;", ord('"'): "&quot;", 0x1B: " "}
REQUEST = messages.Request("reading x", "GET", "http://host/x", reads=True)


def _response(text: str, header: str = "") -> messages.Response:
    return messages.Response(500, {"Link": header}, text.encode(), REQUEST, REQUEST.url)


def _unmarked(text: str) -> object:
    return script_run.read(f"x{text}x", "marker")


def _configuration(text: str) -> object:
    """Parse invalid XML, and valid XML that contains the string."""
    with contextlib.suppress(xml_reader.UnreadableXml):
        xml_reader.parse(f"<a>{text}</a>")
    inside = f"<a><b>{text.translate(ESCAPED)}</b>{'<c/>' * (SIZE // 20)}</a>"
    return configuration.drift(inside, "<a><b>x</b><c/></a>")


def _artifacts(text: str) -> object:
    names = [{"relativePath": text}, {"relativePath": "a"}]
    shown = {"artifacts": names, "fingerprint": [{"fileName": text, "hash": text}]}
    found = ci_artifact.artifacts_of(shown)
    patterns = globs.Patterns("patterns", ["**/*a*b*c*"])
    return [artifact for artifact in found if patterns.fits(artifact.path)]


def _link(text: str) -> object:
    return registry._next_query(_response("", text))


def _lines(text: str) -> object:
    chunks = (text[at : at + 100].encode() for at in range(0, len(text), 100))
    return list(bodies.lines(chunks, SIZE))


def _rows(text: str) -> object:
    body = f'{{"rows": [{{"x": "{text.encode("unicode_escape").decode()}'.encode()
    chunks = (body[at : at + 100] for at in range(0, len(body), 100))
    with pytest.raises(ValueError, match=r"."):
        aql.parse(chunks, "rows", aql.StreamedObject())
    return None


def _storage(text: str) -> object:
    """Parse a well-formed body, and a body that is mostly malformed."""
    parser.parse(f'<p a="{text.translate(ESCAPED)}"   />')
    try:
        return parser.parse(text)
    except parser.Malformed:
        return None


READERS: list[Callable[[str], object]] = [
    lambda text: tracker.describe(_response(f"<{text}")),
    lambda text: client.describe(_response(text)),
    lambda text: wiki.describe(_response(text)),
    lambda text: ci.describe(_response(text)),
    lambda text: installed_plugins.listed(f"a {text}"),
    lambda text: installed_plugins.is_older(text, f"1{text}"),
    _configuration,
    _artifacts,
    lambda text: errors.error_text(f"<html>{text}"),
    lambda text: errors.error_text(f"<html><h1>{text}"),
    errors.escape_controls,
    _unmarked,
    _link,
    _lines,
    _rows,
    _storage,
    lambda text: list(elements.split_html(text)),
    lambda text: list(comparison._spelling(text)),
    lambda text: list(comparison._spelling(f"<a{text}/>")),
]
UNITS = [
    *(
        "<",
        ">",
        "\n",
        " ",
        "a.",
        "a",
        "<h1>",
        "</h1>",
        "<h1",
        "&amp;",
        "\x1b[",
        "rel=",
        "<x>;rel=",
        "<x>;",
        "<message>",
        "<html><p>",
        "(",
    ),
    *(
        "available only in ",
        "\n at a(",
        "Result: ",
        "Logging ID=",
        "-SNAPSHOT (",
        " (private-",
        "&#1",
        "{AAAAAAAAAA",
        "\x1b]",
        "java.",
        "Exception",
        "?",
    ),
    *("<a", '<a"', "<a '", '<a b="c" ', "<![CDATA[", "<!--", "&amp", "</a", "<p></p>"),
]


@pytest.mark.parametrize("reader", READERS)
def test_long_input_is_parsed_in_linear_time(reader: Callable[[str], object]) -> None:
    taken = {}
    for unit in UNITS:
        begun = time.process_time()
        reader(unit * (SIZE // len(unit)))
        taken[unit] = time.process_time() - begun
    assert [unit for unit, seconds in taken.items() if seconds > 1] == [], "quadratic: many seconds"


def test_error_text_in_xml_is_found() -> None:
    assert tracker.describe(_response("<status><message>a &amp; b</message></status>")) == "a & b"
    assert client.describe(_response("only: Available only in Artifactory Pro.")).startswith(
        "this ed"
    )
