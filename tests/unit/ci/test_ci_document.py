# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the charset of configurations [ci-14, ci-40]."""

from __future__ import annotations

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.client import document_text
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.http.messages import (
    Request,
    Response,
)

PLAIN = "<a>zürich</a>"


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (PLAIN.encode("iso-8859-1"), "application/xml"),
        (PLAIN.encode("iso-8859-1"), ""),
        (PLAIN.encode("utf-8"), "application/xml;charset=UTF-8"),
        (PLAIN.encode("utf-16-le"), 'text/xml; charset="utf-16-le"'),
        (b"\xef\xbb\xbf" + PLAIN.encode("utf-8"), "application/xml"),
        (f"<?xml version='1.0'?>{PLAIN}".encode(), "application/xml"),
        (f"\n<?xml version='1.1' encoding='UTF-8'?>\n{PLAIN}".encode(), "application/xml"),
        (
            f'<?xml version="1.0" encoding="ISO-8859-1"?>{PLAIN}'.encode("iso-8859-1"),
            "application/xml",
        ),
        (f"<?xml version='1.0' encoding='x-none'?>{PLAIN}".encode(), "application/xml"),
    ],
)
def test_charset_is_that_of_the_response_or_declaration(body: bytes, content_type: str) -> None:
    request = Request("reading", "GET", "http://h/config.xml", reads=True)
    response = Response(200, {"Content-Type": content_type}, body, request, "http://h/config.xml")
    assert document_text(response).endswith(PLAIN)
