# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that the configuration of a folder or a view leaves out what another module manages."""

from __future__ import annotations

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.jobs import (
    configuration,
    parts_of_others,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.xml_reader import (
    XmlElement,
    child_of,
    parse,
    text_of,
    written,
)

ENCRYPTED = "{AQAABAAAAAwAAAA/+09azAZ==}"
FOLDERS = [
    "com.cloudbees.hudson.plugins.folder.Folder",
    "org.jenkinsci.plugins.workflow.multibranch.WorkflowMultiBranchProject",
    "jenkins.branch.OrganizationFolder",
]
HOLDER = "com.cloudbees.hudson.plugins.folder.views.DefaultFolderViewHolder"
_PROPERTY = (
    "com.cloudbees.hudson.plugins.folder.properties."
    "FolderCredentialsProvider_-FolderCredentialsProperty"
)
_CREDENTIAL = "org.jenkinsci.plugins.plaincredentials.impl.StringCredentialsImpl"
OTHER_PROPERTY = "<x.Other><level>1</level></x.Other>"


def _credentials(*ids: str, secret: str = ENCRYPTED) -> str:
    listed = "".join(
        f"<{_CREDENTIAL}><id>{each}</id><secret>{secret}</secret></{_CREDENTIAL}>" for each in ids
    )
    return (
        f"<{_PROPERTY} plugin='cloudbees-folder@6'><domainCredentialsMap"
        " class='hudson.util.CopyOnWriteMap$Hash'><entry>"
        "<com.cloudbees.plugins.credentials.domains.Domain><specifications/>"
        "</com.cloudbees.plugins.credentials.domains.Domain>"
        f"<java.util.concurrent.CopyOnWriteArrayList>{listed}"
        "</java.util.concurrent.CopyOnWriteArrayList></entry></domainCredentialsMap>"
        f"</{_PROPERTY}>"
    )


def _views(*names: str, more: str = "") -> str:
    listed = "".join(
        "<hudson.model.ListView><owner class='x' reference='../../../..'/>"
        f"<name>{name}</name></hudson.model.ListView>"
        for name in names
    )
    bar = "<tabBar class='hudson.views.DefaultViewsTabBar'/>"
    return f"<folderViews class='{HOLDER}'><views>{listed}</views>{more}{bar}</folderViews>"


def _folder(root: str, *properties: str, more: str = "") -> str:
    inner = f"<properties>{''.join(properties)}</properties>{more}"
    return f"<{root}><description>d</description>{inner}</{root}>"


def _carried(live: str, wanted: str) -> XmlElement:
    return parse(parts_of_others.with_server_parts(live, wanted))


@pytest.mark.parametrize("root", FOLDERS)
@pytest.mark.parametrize(
    ("live", "wanted"),
    [
        ([_credentials("a")], []),
        ([OTHER_PROPERTY, _credentials("a")], [OTHER_PROPERTY]),
        ([_credentials("a"), OTHER_PROPERTY], [OTHER_PROPERTY]),
        ([_credentials("a", "b")], [_credentials("a")]),
        ([_credentials("a")], [_credentials("a", "gone")]),
        ([], [_credentials("gone", secret="(kept by the server)")]),
    ],
)
def test_credentials_of_a_folder_are_neither_compared_nor_removed(
    root: str, live: list[str], wanted: list[str]
) -> None:
    server, user = _folder(root, *live), _folder(root, *wanted)
    found = configuration.drift(server, user)
    assert not found.found
    assert not found.uncompared
    assert "secret" not in found.before + found.after
    sent = _carried(server, user)
    assert [written(each) for each in _found(sent, _PROPERTY)] == [
        written(each) for each in _found(parse(server), _PROPERTY)
    ]
    assert [each.name for each in _found(sent, "x.Other")] == ["x.Other"] * (OTHER_PROPERTY in live)


def test_an_other_change_is_found_and_its_path_does_not_depend_on_credentials() -> None:
    live = _folder(FOLDERS[0], _credentials("a"), OTHER_PROPERTY, more=_views("All", "mine"))
    wanted = _folder(FOLDERS[0], OTHER_PROPERTY.replace("1", "2"))
    assert configuration.drift(live, wanted).paths() == ["properties/x.Other/level"]


@pytest.mark.parametrize(
    "wanted",
    [
        "",
        _views("All"),
        _views("All", "gone"),
        (
            "<views><hudson.model.AllView><name>old</name></hudson.model.AllView></views>"
            "<primaryView>old</primaryView><viewsTabBar class='hudson.views.DefaultViewsTabBar'/>"
        ),
    ],
)
def test_views_of_a_folder_are_neither_compared_nor_removed(wanted: str) -> None:
    primary = "<primaryView>mine</primaryView>"
    live = _folder(FOLDERS[0], more=_views("All", "mine", more=primary))
    user = _folder(FOLDERS[0], more=wanted)
    assert not configuration.drift(live, user).found
    sent = _carried(live, user)
    assert [text_of(each, "name") for each in _found(sent, "hudson.model.ListView")] == [
        "All",
        "mine",
    ]
    assert text_of(sent, "folderViews/primaryView") == "mine"
    assert not configuration.drift(live, written(sent)).found


def test_the_primary_view_that_a_configuration_names_is_compared_and_sent() -> None:
    live = _folder(FOLDERS[0], more=_views("All", "mine"))
    user = _folder(FOLDERS[0], more=_views(more="<primaryView>mine</primaryView>"))
    assert configuration.drift(live, user).paths() == ["folderViews/primaryView"]
    sent = _carried(live, user)
    assert text_of(sent, "folderViews/primaryView") == "mine"
    assert len(_found(sent, "hudson.model.ListView")) == 2


def test_configurations_without_parts_of_others_are_sent_as_they_are() -> None:
    text = "<project>\n  <!-- why -->\n  <views><a>1</a></views><properties/></project>"
    assert parts_of_others.with_server_parts("<project/>", text) == text
    assert parts_of_others.exported(text) == text


def test_the_configuration_of_an_exported_folder_can_create_it() -> None:
    live = _folder(FOLDERS[0], _credentials("a"), OTHER_PROPERTY, more=_views("All", "mine"))
    text = parts_of_others.exported(live)
    assert "CredentialsImpl" not in text
    assert "ListView" not in text
    assert "folderViews" not in text
    assert "x.Other" in text
    assert parts_of_others.for_creation(text) == (text, [])
    primary = _folder(
        FOLDERS[0], more=_views("All", "mine", more="<primaryView>mine</primaryView>")
    )
    created, warnings = parts_of_others.for_creation(parts_of_others.exported(primary))
    assert not warnings
    assert text_of(parse(created), "folderViews/primaryView") == "mine"
    # a folder whose list of views is empty cannot be loaded
    assert text_of(parse(created), "folderViews/views/hudson.model.AllView/name") == "All"


def test_an_exported_folder_keeps_members_that_a_new_folder_does_not_have() -> None:
    other = f"<folderViews class='{HOLDER}'><views/><tabBar class='x.Other'/></folderViews>"
    exported = parts_of_others.exported(_folder(FOLDERS[0], more=other))
    tab_bar = child_of(child_of(parse(exported), "folderViews") or XmlElement(""), "tabBar")
    assert tab_bar is not None
    assert tab_bar.attributes == {"class": "x.Other"}


def test_only_the_default_holder_of_views_needs_a_view() -> None:
    computed = "<folderViews class='jenkins.branch.MultiBranchProjectViewHolder'/>"
    text = _folder(FOLDERS[1], more=computed)
    assert parts_of_others.for_creation(text) == (text, [])


def test_a_new_folder_gets_its_views_but_no_credential_without_its_secret() -> None:
    text = _folder(FOLDERS[0], _credentials("a", secret="(kept by the server)"), more=_views("v"))
    created, warnings = parts_of_others.for_creation(text)
    assert "CredentialsImpl" not in created
    assert text_of(parse(created), "folderViews/views/hudson.model.ListView/name") == "v"
    assert warnings == ["the credential 'a'"]
    whole = _folder(FOLDERS[0], _credentials("a", secret="plain"))
    assert parts_of_others.for_creation(whole) == (whole, [])


def test_views_and_credentials_that_only_the_task_has_are_named() -> None:
    live = _folder(FOLDERS[0], _credentials("a"), more=_views("All"))
    user = _folder(FOLDERS[0], _credentials("a", "b"), more=_views("All", "mine"))
    assert parts_of_others.not_sent(live, user) == ["the credential 'b'", "the view 'mine'"]
    assert parts_of_others.not_sent(live, live) == []


def _nested(name: str, *inner: str) -> str:
    return (
        f"<hudson.plugins.nested__view.NestedView><name>{name}</name><views>{''.join(inner)}"
        "</views></hudson.plugins.nested__view.NestedView>"
    )


def _list_view(name: str, description: str = "") -> str:
    return (
        "<hudson.model.ListView><owner class='hudson.plugins.nested_view.NestedView'"
        f" reference='../../..'/><name>{name}</name><description>{description}</description>"
        "</hudson.model.ListView>"
    )


def test_inner_views_that_only_the_server_has_stay() -> None:
    live = parse(_nested("o", _list_view("x"), _list_view("a"), _nested("i", _list_view("y"))))
    wanted = parse(_nested("o", _nested("i"), _list_view("a", "new")))
    compared = parts_of_others.without_other_views(live, wanted)
    assert configuration.drift(compared, wanted).paths() == [
        "views/hudson.model.ListView/description"
    ]
    sent = parts_of_others.with_view_parts(live, wanted)
    names = [text_of(each, "name") for each, _parent in sent.iterate() if text_of(each, "name")]
    assert names == ["o", "i", "y", "a", "x"]
    other = parse("<x><views><a/></views></x>")
    assert not parts_of_others.with_view_parts(other, parse("<x/>")).children


@pytest.mark.parametrize("member", ["columns", "properties"])
def test_members_that_the_server_adds_to_a_view_are_not_compared_and_stay(member: str) -> None:
    added = f"<{member} class='x'><hudson.views.JobColumn/></{member}>"
    live = parse(f"<hudson.model.ListView>{added}</hudson.model.ListView>")
    wanted = parse("<hudson.model.ListView><name>x</name></hudson.model.ListView>")
    assert configuration.drift(live, wanted).paths() == ["name"]
    assert child_of(parts_of_others.with_view_parts(live, wanted), member) == child_of(live, member)
    assert configuration.drift(wanted, live).paths() == ["name", member]
    empty = parse(f"<hudson.model.ListView><{member}/></hudson.model.ListView>")
    assert configuration.drift(live, empty).paths("extra") == [f"{member}/hudson.views.JobColumn"]


def _found(root: XmlElement, name: str) -> list[XmlElement]:
    return [each for each, _parent in root.iterate() if each.name == name]
