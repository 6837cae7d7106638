# SPDX-License-Identifier: GPL-3.0-or-later
"""What a body in storage format needs, and Confluence Cloud does not have [wiki-22]."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

from ...core.errors import listed
from . import mentions

_LEGACY = "its editor takes no wiki markup, so write the content in storage format"
#: Macros without a counterpart in the cloud, and what to do.
MACROS: Mapping[str, str] = {
    "gadget": "use a macro of the tracker or of an app",
    "gallery": "write the images in the page",
    "html": "write the content in storage format, or use the macro iframe",
    "html-include": "use the macro iframe, or a link",
    "im": "use a mention",
    "junitreport": "use the table of a release, or a link to the CI server",
    "navmap": "use the macro contentbylabel",
    "network": "leave it out",
    "unmigrated-inline-wiki-markup": _LEGACY,
    "unmigrated-wiki-markup": _LEGACY,
}
# The text of a code macro and a comment contain no macros, see `mentions`.
_MACRO = re.compile(
    r"<!\[CDATA\[(?:.*?\]\]>|.*)|<!--(?:.*?-->|.*)"
    r"|<ac:(?:structured-)?macro\b[^<>]*?\sac:name\s*=\s*"
    r"(?:\"(?P<double>[^\"<>]*)\"|'(?P<single>[^'<>]*)')",
    re.DOTALL,
)


def of_body(body: str | None) -> list[str]:
    """Return a sentence for each part of a body that the cloud cannot hold."""
    found = _MACRO.finditer(body or "")
    names = {html.unescape(one["double"] or one["single"] or "").lower() for one in found}
    sentences = [
        f"Confluence Cloud has no macro {name}: {MACROS[name]}"
        for name in sorted(names & {*MACROS})
    ]
    keys = [key for key, kind in mentions.names(body or "").items() if kind == mentions.USER_KEY]
    if keys:
        sentences.append(
            f"Confluence Cloud has no user keys: add {listed(keys)} to desired_state_accounts"
        )
    return sentences
