# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert JSON data to XML, and evaluate XPath requests.

Server facts [ci-11]: the root element is named after the class, and list items have the singular of
the member's name. The status of an XPath request is 403 for a string result, 404 without a match,
and 500 for several matches without `wrapper`.
"""

from __future__ import annotations

import re
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from lxml import etree

FORBIDDEN = "primitive XPath result sets forbidden; implement jenkins.security.SecureRequester"
WRAPPER = re.compile(r"[A-Za-z_][\w.-]*\Z")


class XPathRefused(Exception):
    """Raised for an XPath request that the server rejects, with status and error message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True)
class Selection:
    """Parameters of an XPath request.

    :param primitives: whether string results are allowed, as a plugin can configure
    :param relative: whether a relative path starts at the root element, as in the interface
        description [W4.4]
    """

    xpath: str | None
    excludes: tuple[str, ...]
    wrapper: str | None
    primitives: bool
    relative: bool


def root_name(cls: str | None) -> str:
    """Return the name of the root element.

    `org.x.WorkflowJob$Inner` gives `inner`, `hudson.model.FreeStyleBuild` gives `freeStyleBuild`.
    """
    simple = re.split(r"[.$]", cls or "object")[-1]
    return simple[:1].lower() + simple[1:]


def singular(name: str) -> str:
    if name.endswith("ies"):
        return name[:-3] + "y"
    return name[:-1] if name.endswith("s") else name


def to_xml(data: dict[str, Any]) -> etree._Element:
    root = etree.Element(root_name(data.get("_class")))
    _fill(root, data)
    return root


def _fill(element: etree._Element, data: dict[str, Any]) -> None:
    for name, value in data.items():
        if name == "_class":
            element.set("_class", str(value))
        elif isinstance(value, list):
            for entry in value:
                _add(element, singular(name), entry)
        elif value is not None:
            _add(element, name, value)


def _add(parent: etree._Element, name: str, value: Any) -> None:
    child = etree.SubElement(parent, name)
    if isinstance(value, dict):
        _fill(child, value)
    elif isinstance(value, bool):
        child.text = "true" if value else "false"
    elif value is not None:
        child.text = str(value)


def render(root: etree._Element, selection: Selection) -> tuple[str, str]:
    """Return the document or XPath result, and its media type. Raises XPathRefused."""
    _exclude(root, selection.excludes)
    if selection.xpath is None:
        return etree.tostring(root, encoding="unicode"), "application/xml"
    found = _evaluate(root, selection.xpath, selection.relative)
    if selection.wrapper is not None:
        return _wrapped(found, selection.wrapper), "application/xml"
    return _single(found, selection)


def _evaluate(root: etree._Element, xpath: str, relative: bool = False) -> Any:
    """Evaluate an XPath expression. A relative path starts above the root element unless `relative`
    is set.
    """
    try:
        if xpath.startswith("/") or relative:
            return root.xpath(xpath)
        above = etree.Element("document")
        above.append(deepcopy(root))
        return above.xpath(xpath)
    except etree.XPathError as error:
        raise XPathRefused(500, f"XPath {xpath} cannot be evaluated: {error}") from error


def _exclude(root: etree._Element, excludes: tuple[str, ...]) -> None:
    for xpath in excludes:
        found = _evaluate(root, xpath, relative=True)
        for node in found if isinstance(found, list) else []:
            parent = node.getparent() if isinstance(node, etree._Element) else None
            if parent is not None:
                parent.remove(node)


def _wrapped(found: Any, wrapper: str) -> str:
    if WRAPPER.match(wrapper) is None:
        raise XPathRefused(400, "The wrapper parameter can only contain a valid element name")
    if not isinstance(found, list) or any(isinstance(entry, str) for entry in found):
        raise XPathRefused(403, FORBIDDEN)
    root = etree.Element(wrapper)
    root.extend([node for node in found if isinstance(node, etree._Element)])
    return etree.tostring(root, encoding="unicode")


def _single(found: Any, selection: Selection) -> tuple[str, str]:
    if isinstance(found, list):
        if not found:
            raise XPathRefused(404, f"XPath {selection.xpath} didn't match")
        if len(found) > 1:
            raise XPathRefused(
                500,
                f"XPath {selection.xpath} matched {len(found)} nodes. Create XPath that only "
                'matches one, or use the "wrapper" query parameter to wrap them all under a root '
                "element.",
            )
        found = found[0]
    if isinstance(found, etree._Element):
        return etree.tostring(found, encoding="unicode", with_tail=False), "application/xml"
    if not selection.primitives:
        raise XPathRefused(403, FORBIDDEN)
    return str(found), "text/plain"
