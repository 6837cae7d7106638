# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert the texts of a task to what the server stores [tracker-25, tracker-45]."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .documents import to_document
from .markdown import markdown_document
from .wiki_markup import wiki_markup

_ITEM = r"^ {0,8}(?:[-*+#]{1,6}|\d{1,9}[.)]) \S"
#: Text that is plainly Markdown or wiki markup: headings, code, links, strong text, lists, tables.
_MARKUP = re.compile(
    r"^#{1,6} \S|^h[1-6]\. \S|^ {0,3}(?:```|~~~)|\{(?:code|noformat|quote|panel|color)\b[^}\n]*\}"
    r"|\[[^\[\]|\n]+\|[^\[\]|\n]+\]|\[[^\[\]\n]+\]\([^()\s]+\)|\*\*[^*\s][^*\n]*\*\*"
    rf"|{_ITEM}[^\n]*\n{_ITEM}|^\|\|[^|\n]+\|\||^\|[^\n]*\|\n\|[ :|-]+\|$",
    re.MULTILINE,
)
_SHOWN = 40


@dataclass(frozen=True)
class TextFormat:
    """The format of the texts of a task.

    :param markdown: whether they are Markdown
    :param cloud: whether the server stores documents
    :param warn: shows a warning to the user
    """

    markdown: bool
    cloud: bool
    warn: Callable[[str], None]

    def stored(self, text: str, place: str) -> Any:
        """Return a text as the server stores it: a document in the cloud, else a string.

        :param place: the option, for messages
        """
        if self.cloud and not text.strip():
            return None
        if self.markdown:
            return markdown_document(text, place) if self.cloud else wiki_markup(text, place)
        if not self.cloud:
            return text
        found = _MARKUP.search(text)
        if found is not None:
            line = found[0].partition("\n")[0].strip()[:_SHOWN]
            self.warn(
                f"{place} looks like Markdown or wiki markup ('{line}'), which the cloud shows"
                " unchanged: write Markdown, and set text_format to markdown"
            )
        return to_document(text)
