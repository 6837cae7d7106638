# SPDX-License-Identifier: GPL-3.0-or-later
"""Search the documentation site in Chromium for typical questions.

    python -m tests.integration.documentation.site_search FOLDER

`docs/docsite/questions.yml` names the page that must be among the first three results.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import yaml

from tests.helpers import browser, installed
from tools import tree

QUESTIONS = tree.ROOT / "docs" / "docsite" / "questions.yml"
_FIRST = 3
#: Searches again in the page, which has loaded the index. It would read each result for a summary.
_SEARCH = """
window.fetch = () => new Promise(() => {});
document.getElementById("search-results").replaceChildren();
history.replaceState(null, "", "?q=" + encodeURIComponent(%s));
Search.performSearch(%s);
"""
#: Waits for the end of the search, at most ten seconds; returns the addresses of the results.
_RESULTS = """
new Promise((done) => {
  let left = 1000;
  const timer = setInterval(() => {
    const summary = document.querySelector(".search-summary");
    if (--left > 0 && !(summary && /found|did not match/.test(summary.innerText))) return;
    clearInterval(timer);
    const links = document.querySelectorAll("#search-results li a");
    done([...links].map((link) => link.getAttribute("href")));
  }, 10);
})
"""


def missed(site: Path) -> Iterator[str]:
    """Yield an error message per question that does not lead to its page."""
    questions: dict[str, str] = yaml.safe_load(QUESTIONS.read_text("utf-8"))
    with browser.browser() as page:
        page.open(site / "search.html")
        for text, wanted in questions.items():
            if text[0].isdigit():
                # `scorer.js` replaces a status in the address
                address = f"{(site / 'search.html').as_uri()}?q={quote(text)}"
                page.call("Page.navigate", url=address)
            else:
                page.run(_SEARCH % (json.dumps(text), json.dumps(text)))
            results = (str(link).partition(".html")[0] for link in page.run(_RESULTS))
            pages = list(dict.fromkeys(results))
            if wanted not in pages[:_FIRST]:
                yield f"{text}: {wanted} is not among the first results: {pages[:5]}"


if __name__ == "__main__":
    if installed.program(browser.PROGRAM) is None:
        print("no Chromium on this machine: nothing was searched for")
    elif sentences := list(missed(Path(sys.argv[1]).resolve())):
        sys.exit("\n".join(sentences))
    else:
        print("Every question leads to its page.")
