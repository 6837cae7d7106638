# SPDX-License-Identifier: GPL-3.0-or-later
"""Elements in the configuration of a folder or view that another module manages.

Server fact [ci-21]: the configuration of a folder contains its credentials, which `ci_credential`
manages, and its views, which `ci_view` manages. A configuration without them deletes them. So they
are neither compared nor exported, and each write contains those of the server.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

from ..xml_reader import KEPT, XmlElement, added_child, child_of, parse, text_of, written_in_lines

_CREDENTIALS = "FolderCredentialsProperty"
#: Member of a folder with its views. Members of it that a configuration lacks are not compared.
VIEWS = "folderViews"
_FOLDER = "com.cloudbees.hudson.plugins.folder.Folder"
_HOLDER = "com.cloudbees.hudson.plugins.folder.views.DefaultFolderViewHolder"
_TAB_BAR = "hudson.views.DefaultViewsTabBar"
#: Members of a view that are not compared if a configuration lacks them.
VIEW_MEMBERS = ("columns", "properties")
#: Members of a folder in old releases, which the server moves into `folderViews`.
_OLD_VIEWS = ("views", "primaryView", "viewsTabBar")


def is_folder(text: str) -> bool:
    """Return whether a configuration describes a folder, also a computed one."""
    return parse(text).name.endswith(("Folder", "MultiBranchProject"))


def remove(root: XmlElement) -> bool:
    """Remove the credentials and views of a folder. Return whether there were any."""
    properties, views = child_of(root, "properties"), child_of(root, VIEWS)
    found = [*_credentials(root), *_lists_of_views(root)]
    for holder in (root, properties, views):
        if holder is not None:
            holder.children = [
                each for each in holder.children if not any(each is other for other in found)
            ]
    return bool(found)


def with_server_parts(live: str, text: str) -> str:
    """Return a configuration to send with the credentials and views of the server.

    :param live: XML of the server
    :param text: XML of the task
    """
    server, wanted = parse(live), parse(text)
    credentials, views = list(_credentials(server)), child_of(server, VIEWS)
    if not remove(wanted) and not credentials and views is None:
        return text
    if credentials:
        added_child(wanted, "properties").children += credentials
    if views is not None:
        own = child_of(wanted, VIEWS)
        wanted.children = [each for each in wanted.children if each is not own]
        if own is not None and own.attributes.get("class") == views.attributes.get("class"):
            # the server's members, except those that the task sets
            names = {each.name for each in own.children}
            kept = [each for each in views.children if each.name not in names]
            views.children = kept + own.children
        wanted.children.append(views)
    return written_in_lines(wanted)


def exported(text: str) -> str:
    """Return a configuration without what the lists of credentials and views contain."""
    root = parse(text)
    removed, views = remove(root), child_of(root, VIEWS)
    if views is not None and all(
        not member.children
        and not member.text.strip()
        and (member.attributes.get("class") == _TAB_BAR or "reference" in member.attributes)
        for member in views.children
    ):  # all members have the values of a new folder
        root.children.remove(views)
        removed = True
    return written_in_lines(root) if removed else text


def for_creation(text: str) -> tuple[str, list[str]]:
    """Return a configuration that can create a folder, and the names of what it leaves out.

    Server fact [ci-21]: a folder without any view cannot be loaded.
    """
    root = parse(text)
    properties, views = child_of(root, "properties"), child_of(root, VIEWS)
    secretless = [each for each in _credentials(root) if KEPT in each.whole_text()]
    left_out = [name for each in secretless for name in _names_of_credentials(each)]
    if properties is not None:
        properties.children = [each for each in properties.children if each not in secretless]
    is_empty = False
    if views is not None and views.attributes.get("class") == _HOLDER:
        listed = child_of(views, "views")
        is_empty = listed is None or not (listed.text.strip() or listed.children)
    if views is not None and is_empty:
        owner = XmlElement("owner", {"class": _FOLDER, "reference": "../../../.."})
        view = XmlElement("hudson.model.AllView", children=[owner, XmlElement("name", text="All")])
        views.children = [each for each in views.children if each.name != "views"]
        views.children.insert(0, XmlElement("views", children=[view]))
    return written_in_lines(root) if secretless or is_empty else text, left_out


def not_sent(live: str, text: str) -> list[str]:
    """Return the names of credentials and views of the task that the server lacks."""
    known = set(_names(parse(live)))
    return [name for name in _names(parse(text)) if name not in known]


def _names(root: XmlElement) -> Iterator[str]:
    for each in _credentials(root):
        yield from _names_of_credentials(each)
    for views in _lists_of_views(root):
        yield from (f"the view '{text_of(view, 'name')}'" for view in views.children)


def _names_of_credentials(element: XmlElement) -> Iterator[str]:
    for each, _parent in element.iterate():
        if text_of(each, "id"):
            yield f"the credential '{text_of(each, 'id')}'"


def _credentials(root: XmlElement) -> Iterator[XmlElement]:
    properties = child_of(root, "properties")
    for each in properties.children if properties is not None else ():
        if each.name.endswith(_CREDENTIALS):
            yield each


def _lists_of_views(root: XmlElement) -> Iterator[XmlElement]:
    views = child_of(root, VIEWS)
    yield from (each for each in (views.children if views else ()) if each.name == "views")
    if root.name == _FOLDER:
        yield from (each for each in root.children if each.name in _OLD_VIEWS)


def without_other_views(live: XmlElement, wanted: XmlElement) -> XmlElement:
    """Return the server's view without the inner views that the configuration does not name.

    Inner views of a nested view compare by name.
    """
    copy = deepcopy(live)
    inner = _inner_views(copy)
    if inner is not None:
        views = {text_of(view, "name"): view for view in inner.children}
        named = ((views.get(text_of(view, "name")), view) for view in _views_of(wanted))
        inner.children = [without_other_views(own, view) for own, view in named if own is not None]
    return copy


def with_view_parts(live: XmlElement, wanted: XmlElement) -> XmlElement:
    """Return the configuration of a view to send, with the inner views, columns and properties that
    only the server has.
    """
    copy, inner = deepcopy(wanted), _inner_views(live)
    for name in (*VIEW_MEMBERS, *([] if inner is None else ["views"])):
        own = child_of(live, name)
        if own is not None and child_of(copy, name) is None:
            copy.children.append(XmlElement(name) if own is inner else deepcopy(own))
    views = {text_of(view, "name"): view for view in _views_of(live)}
    sent = _inner_views(copy)
    if sent is not None:
        pairs = [(views.pop(text_of(view, "name"), None), view) for view in sent.children]
        sent.children = [view if own is None else with_view_parts(own, view) for own, view in pairs]
        for view in map(deepcopy, views.values()):
            # it must not refer to the comparator of another view
            for element, _parent in view.iterate():
                if element.name == "comparator":
                    element.attributes.pop("reference", None)
            sent.children.append(view)
    return copy


def _inner_views(root: XmlElement) -> XmlElement | None:
    return child_of(root, "views") if root.name.endswith(".NestedView") else None


def _views_of(root: XmlElement) -> list[XmlElement]:
    inner = _inner_views(root)
    return [] if inner is None else inner.children
