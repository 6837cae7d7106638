# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the sandbox's wiki with a third-party client, and its rewriting of page bodies."""

from __future__ import annotations

import html
import re
from pathlib import Path
from typing import Any

import pytest
import requests
from atlassian import Confluence
from atlassian.errors import ApiError, ApiValueError
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.client import Sandbox
from sandbox.wiki.rewrite import rewrite
from sandbox.wiki.storage import StorageError

LOGIN = ("reporter", "reporter-password")
XSRF = {"X-Atlassian-Token": "no-check"}
HANDBOOK = "/rest/api/content/1002"


@pytest.fixture
def client(sandbox: Sandbox) -> Any:
    session = requests.Session()
    session.headers.update(XSRF)
    create: Any = Confluence
    return create(
        sandbox.urls["wiki"],
        username=LOGIN[0],
        password=LOGIN[1],
        cloud=False,
        session=session,
    )


def send(
    sandbox: Sandbox, method: str, path: str, members: Any = None, **query: Any
) -> requests.Response:
    return requests.request(
        method,
        sandbox.urls["wiki"] + path,
        json=members,
        params=query,
        headers=XSRF,
        auth=LOGIN,
        timeout=10,
    )


def update(number: int, body: str | None = "<p>new</p>", **more: Any) -> dict[str, Any]:
    """Return the payload of written interface [W4.3] for the handbook page."""
    members: dict[str, Any] = {
        "id": "1002",
        "type": "page",
        "title": "Handbook",
        "space": {"key": "REL"},
        "version": {"number": number},
    }
    if body is not None:
        members["body"] = {"storage": {"value": body, "representation": "storage"}}
    return members | more


def refused(response: requests.Response, status: int) -> str:
    assert response.status_code == status, response.text
    assert response.json()["statusCode"] == status
    return str(response.json()["message"])


# -- the client `atlassian-python-api` -----------------------------------------------------------


def test_client_creates_reads_and_updates_a_page(client: Any) -> None:
    created = client.create_page("REL", "Notes 1.0", "<p>first<br/></p>", parent_id="1003")
    page_id = created["id"]
    assert created["version"]["number"] == 1
    assert client.get_page_id("REL", "Notes 1.0") == page_id
    assert client.get_page_by_title("REL", "Nothing")["results"] == []

    updated = client.update_page(page_id, "Notes 1.0", "<p>second</p>", version_comment="again")
    assert updated["version"]["number"] == 2
    read = client.get_page_by_id(page_id, expand="body.storage,version,ancestors")
    assert read["body"]["storage"]["value"].endswith(">second</p>")
    assert read["version"]["message"] == "again"
    assert [above["id"] for above in read["ancestors"]] == ["1001", "1003"]
    first = client.get_page_by_id(page_id, expand="body.storage", version=1)
    assert first["body"]["storage"]["value"].endswith(">first<br /></p>")


def test_client_finds_a_user_by_key(client: Any) -> None:
    found = client.get_user_details_by_userkey("key-reporter")
    assert (found["username"], found["userKey"]) == ("reporter", "key-reporter")


def test_client_gets_the_error_messages(client: Any) -> None:
    with pytest.raises(ApiError, match="no content with the given id"):
        client.get_page_by_id("4711")
    with pytest.raises(ApiValueError):
        client.update_page("1002", "Handbook", "<p>a & b</p>", always_update=True)


def test_client_handles_labels_and_properties(client: Any) -> None:
    client.set_page_label("1002", "release")
    labels = client.get_page_labels("1002")["results"]
    assert [label["name"] for label in labels] == ["handbook", "release"]
    client.set_page_property("1002", {"key": "hash", "value": {"sha": "1"}})
    found = client.get_page_property("1002", "hash")
    assert (found["value"], found["version"]["number"]) == ({"sha": "1"}, 1)


# -- reading -------------------------------------------------------------------------------------


def test_body_is_returned_only_if_expanded(sandbox: Sandbox) -> None:
    plain = send(sandbox, "GET", HANDBOOK).json()
    assert {"space", "version", "history"} <= set(plain)
    assert "body" not in plain
    assert "body" in plain["_expandable"]
    assert (plain["id"], plain["space"]["key"], plain["version"]["number"]) == ("1002", "REL", 3)

    whole = send(sandbox, "GET", HANDBOOK, expand="body.storage,version").json()
    assert "&ldquo;" in whole["body"]["storage"]["value"]
    assert "space" not in whole


def test_pages_are_found_by_title(sandbox: Sandbox) -> None:
    query = {"spaceKey": "REL", "title": "handbook", "type": "page"}
    found = send(sandbox, "GET", "/rest/api/content", **query, expand="version").json()
    assert (found["size"], found["results"][0]["id"]) == (1, "1002")
    assert "space" not in found["results"][0]
    assert send(sandbox, "GET", "/rest/api/content", spaceKey="rel").json()["size"] == 0

    first = send(sandbox, "GET", "/rest/api/content", spaceKey="REL", limit=2).json()
    assert [page["id"] for page in first["results"]] == ["1001", "1002"]
    second = send(sandbox, "GET", first["_links"]["next"]).json()
    assert [page["id"] for page in second["results"]] == ["1003"]
    assert "next" not in second["_links"]


def test_hidden_draft_and_trashed_pages_are_not_found(sandbox: Sandbox) -> None:
    common = {"space": "REL", "body": "<p>x</p>"}
    pages = [
        {"id": "3001", "title": "Hidden", "hidden": True, **common},
        {"id": "3002", "title": "Draft", "status": "draft", **common},
        {"id": "3003", "title": "Locked", "read_only": True, **common},
    ]
    sandbox.seed({"wiki": {"pages": pages}})
    assert send(sandbox, "GET", "/rest/api/content/3001", status="any").status_code == 404
    assert send(sandbox, "GET", "/rest/api/content/3002").status_code == 404
    assert send(sandbox, "GET", "/rest/api/content/3002", status="draft").status_code == 200
    draft = update(2, id="3002", title="Draft")
    refused(send(sandbox, "PUT", "/rest/api/content/3002", draft), 409)
    locked = update(2, id="3003", title="Locked")
    words = refused(send(sandbox, "PUT", "/rest/api/content/3003", locked), 403)
    assert "Could not update Content of type" in words

    assert send(sandbox, "DELETE", HANDBOOK).status_code == 204
    assert "ContentId{id=1002}" in refused(send(sandbox, "GET", HANDBOOK), 404)
    assert send(sandbox, "GET", HANDBOOK, status="trashed").json()["status"] == "trashed"
    refused(send(sandbox, "PUT", HANDBOOK, update(4)), 404)
    restored = send(sandbox, "PUT", HANDBOOK, update(4, status="current"))
    assert restored.json()["status"] == "current"


# -- writing -------------------------------------------------------------------------------------


def test_update_requires_the_next_version(sandbox: Sandbox) -> None:
    for number in (3, 5):
        words = refused(send(sandbox, "PUT", HANDBOOK, update(number)), 409)
        assert words.endswith("Version must be incremented on update. Current version is: 3")
    response = send(sandbox, "PUT", HANDBOOK, update(4), expand="body.storage,version")
    assert response.json()["version"]["number"] == 4
    assert response.json()["body"]["storage"]["value"].endswith(">new</p>")
    assert "body" not in send(sandbox, "PUT", HANDBOOK, update(5)).json()


@pytest.mark.parametrize(
    ("members", "words"),
    [
        (update(4, title=""), "title is required"),
        (update(4, type="blogpost"), "is of type page"),
        (update(4, version={}), "version.number is required"),
        (update(4, id="1003"), "are not the same"),
        (update(4, title="release NOTES "), "A page with this title already exists"),
        (update(4, space={"key": "ARC"}), "is not in the space"),
        (update(4, ancestors=[{"id": "1002"}]), "cannot be its own ancestor"),
        (update(4, ancestors=[{"id": "99"}]), "parent page 99 does not exist"),
        ([], "JSON object"),
    ],
)
def test_invalid_update_is_rejected(sandbox: Sandbox, members: Any, words: str) -> None:
    assert words in refused(send(sandbox, "PUT", HANDBOOK, members), 400)
    assert send(sandbox, "GET", HANDBOOK).json()["version"]["number"] == 3


@pytest.mark.parametrize(
    ("body", "words", "place"),
    [
        ("<p>one\n<b>two</p>", "Unexpected close tag </p>; expected </b>.", "[2,"),
        ("<p>a & b</p>", "Error parsing xhtml", "[1,"),
        ("<p>&nosuch;</p>", 'Undeclared general entity "nosuch"', "[1,4]"),
        ("<p>one<br>two</p>", "expected </br>", "[1,"),
        ("<!-- a -- b -->", "hyphen", "[1,"),
        ("</xml><xml>", "Error parsing xhtml", "[1,"),
        ("<other:x />", "not defined", "[1,"),
    ],
)
def test_malformed_body_is_rejected(sandbox: Sandbox, body: str, words: str, place: str) -> None:
    message = refused(send(sandbox, "PUT", HANDBOOK, update(4, body)), 400)
    assert words in message
    assert f"at [row,col {{unknown-source}}]: {place}" in message


def test_writes_require_the_csrf_header(sandbox: Sandbox) -> None:
    address = sandbox.urls["wiki"] + HANDBOOK
    sandbox.settings("wiki", require_xsrf=True)
    response = requests.put(address, json=update(4), auth=LOGIN, timeout=10)
    assert (response.status_code, response.text) == (403, "XSRF check failed")
    # most set-ups need no header for requests that a browser form cannot send
    sandbox.settings("wiki", require_xsrf=None)
    assert requests.put(address, json=update(4), auth=LOGIN, timeout=10).status_code == 200
    files = {"file": ("a.txt", b"a")}
    upload = requests.post(address + "/child/attachment", files=files, auth=LOGIN, timeout=10)
    assert (upload.status_code, upload.text) == (403, "XSRF check failed")


def test_parent_is_kept_or_removed(sandbox: Sandbox) -> None:
    def parents() -> list[str]:
        page = send(sandbox, "GET", HANDBOOK, expand="ancestors").json()
        return [above["id"] for above in page["ancestors"]]

    send(sandbox, "PUT", HANDBOOK, update(4))
    assert parents() == ["1001"]
    send(sandbox, "PUT", HANDBOOK, update(5, ancestors=[{"id": "1001"}, {"id": "1003"}]))
    assert parents() == ["1001", "1003"]
    sandbox.settings("wiki", omit_ancestors_moves=True)
    send(sandbox, "PUT", HANDBOOK, update(6))
    assert parents() == []


def test_concurrent_edit_is_a_conflict(sandbox: Sandbox) -> None:
    sandbox.settings("wiki", edits_before_put=1, edit_body="<p>another</p>")
    words = refused(send(sandbox, "PUT", HANDBOOK, update(4)), 409)
    assert words.endswith("Current version is: 4")
    page = send(sandbox, "GET", HANDBOOK, expand="body.storage,version").json()
    assert page["body"]["storage"]["value"] == "<p>another</p>"
    assert send(sandbox, "PUT", HANDBOOK, update(5)).status_code == 200


def test_lock_error_is_returned_on_request(sandbox: Sandbox) -> None:
    message = "org.springframework.orm.hibernate.OptimisticLockException: row was updated"
    sandbox.fault(service="wiki", method="PUT", status=409, body={"message": message})
    assert send(sandbox, "PUT", HANDBOOK, update(4)).json()["message"] == message
    assert send(sandbox, "PUT", HANDBOOK, update(4)).status_code == 200


def test_invalid_creation_is_rejected(sandbox: Sandbox) -> None:
    page = update(1, title="HANDBOOK")
    assert "already exists" in refused(send(sandbox, "POST", "/rest/api/content", page), 400)
    elsewhere = update(1, space={"key": "NONE"})
    refused(send(sandbox, "POST", "/rest/api/content", elsewhere), 404)


def test_properties_have_versions(sandbox: Sandbox) -> None:
    path = HANDBOOK + "/property"
    assert send(sandbox, "GET", path + "/hash").status_code == 404
    created = send(sandbox, "PUT", path + "/hash", {"value": 1, "version": {"number": 1}})
    assert created.json()["version"]["number"] == 1
    refused(send(sandbox, "POST", path, {"key": "hash", "value": 2}), 409)
    stale = {"value": 2, "version": {"number": 1}}
    refused(send(sandbox, "PUT", path + "/hash", stale), 409)
    assert send(sandbox, "DELETE", path + "/hash").status_code == 204
    assert send(sandbox, "GET", HANDBOOK).json()["version"]["number"] == 3


def test_logins_are_checked(sandbox: Sandbox) -> None:
    address = sandbox.urls["wiki"] + HANDBOOK
    bearer = {"Authorization": "Bearer wiki-token-1234567890"}
    assert requests.get(address, headers=bearer, timeout=10).status_code == 200
    nobody = requests.get(address, timeout=10)
    assert nobody.status_code == 401
    assert nobody.headers["content-type"].startswith("text/html")
    sandbox.settings("wiki", logins=["bearer", "oauth"])
    assert requests.get(address, auth=LOGIN, timeout=10).status_code == 403


# -- the written interface -----------------------------------------------------------------------


def test_documented_flavour_has_only_documented_routes(sandbox: Sandbox) -> None:
    sandbox.settings("wiki", flavour="written")
    page = send(sandbox, "GET", HANDBOOK, expand="ancestors").json()
    assert set(page) == {"id", "type", "title", "space", "body", "version"}
    assert (page["space"], page["version"]) == ({"key": "REL"}, {"number": 3})
    assert page["body"]["storage"]["representation"] == "storage"

    body = "<p>kept\n as it is<br/></p>\n"
    updated = send(sandbox, "PUT", HANDBOOK, update(4, body))
    assert updated.json()["body"]["storage"]["value"] == body
    without = update(5)
    del without["space"]
    assert "space.key is required" in refused(send(sandbox, "PUT", HANDBOOK, without), 400)
    assert send(sandbox, "POST", "/rest/api/content", update(1)).status_code == 404
    assert send(sandbox, "GET", "/rest/api/content", title="Handbook").status_code == 404
    assert send(sandbox, "DELETE", HANDBOOK).status_code == 404


# -- rewriting of saved bodies -------------------------------------------------------------------


def without_local_ids(body: str) -> str:
    """Rewrite a body as the wiki does for a page of REL. Remove the ids that blocks get."""
    return re.sub(r' (ac:)?local-id="[^"]+"', "", rewrite(body, "REL"))


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        ("<p>a<br/>b</p>", "<p>a<br />b</p>"),
        ("<p></p>", "<p />"),
        ("<p>caf&eacute;&nbsp;&amp; &lt;b&gt;</p>", "<p>café\u00a0&amp; &lt;b&gt;</p>"),
        ("<p title='b' class='a'>x</p>", '<p class="a" title="b">x</p>'),
        (" <p>a</p>\n\n<p>b</p>\n", "<p>a</p><p>b</p>"),
        ("<p> a <b>b</b> <i>c</i> </p>", "<p> a <b>b</b> <i>c</i> </p>"),
        ("<pre> a\n  b </pre>", "<pre> a\n  b </pre>"),
        (
            "<table>\n<tr><td> x </td></tr>\n</table>",
            "<table><tbody><tr><td> x </td></tr></tbody></table>",
        ),
        (
            '<p><ac:link><ri:page ri:space-key="REL" ri:content-title="T"/></ac:link></p>',
            '<p><ac:link><ri:page ri:content-title="T" ri:version-at-save="1" /></ac:link></p>',
        ),
        (
            '<p><ac:link><ri:page ri:space-key="ARC"/></ac:link></p>',
            '<p><ac:link><ri:page ri:space-key="ARC" ri:version-at-save="1" /></ac:link></p>',
        ),
    ],
)
def test_save_rewrites_the_body(sent: str, stored: str) -> None:
    assert without_local_ids(sent) == stored


MACRO = (
    '<ac:structured-macro ac:name="code">\n'
    ' <ac:parameter ac:name="title">t</ac:parameter>\n'
    ' <ac:parameter ac:name="language">c</ac:parameter>\n'
    " <ac:plain-text-body><![CDATA[x[y[0]]]]><![CDATA[>1 &eacute;]]></ac:plain-text-body>\n"
    "</ac:structured-macro>"
)


def test_save_completes_macros() -> None:
    stored = without_local_ids(MACRO)
    start, _attributes, rest = stored.partition(' ac:name="code" ac:schema-version="1">')
    assert start.startswith('<ac:structured-macro ac:macro-id="')
    assert rest == (
        '<ac:parameter ac:name="language">c</ac:parameter>'
        '<ac:parameter ac:name="title">t</ac:parameter>'
        "<ac:plain-text-body><![CDATA[x[y[0]]]><![CDATA[]>1 &eacute;]]></ac:plain-text-body>"
        "</ac:structured-macro>"
    )
    assert rewrite(MACRO, "REL") == rewrite(MACRO, "REL")


def test_save_keeps_macro_ids_unless_repeated() -> None:
    macro = '<ac:structured-macro ac:name="toc" ac:macro-id="one" />'
    stored = rewrite(macro + macro, "REL")
    assert stored.count('ac:macro-id="one"') == 1
    assert stored.count("ac:macro-id=") == 2


def test_save_numbers_tasks_and_blocks() -> None:
    task = "<ac:task><ac:task-id>1</ac:task-id><ac:task-body>do</ac:task-body></ac:task>"
    stored = rewrite(f"<p>x</p><ac:task-list>{task}</ac:task-list>", "REL")
    assert "</ac:task-id><ac:task-uuid>" in stored
    assert stored.startswith('<p local-id="')
    assert '<ac:task-list ac:local-id="' in stored


def test_save_rewrites_over_http(sandbox: Sandbox) -> None:
    send(sandbox, "PUT", HANDBOOK, update(4, MACRO))
    page = send(sandbox, "GET", HANDBOOK, expand="body.storage").json()
    assert page["body"]["storage"]["value"] == rewrite(MACRO, "REL")
    sandbox.settings("wiki", rewrite_on_save=False)
    send(sandbox, "PUT", HANDBOOK, update(5, MACRO))
    page = send(sandbox, "GET", HANDBOOK, expand="body.storage").json()
    assert page["body"]["storage"]["value"] == MACRO


TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Cn")), max_size=12)
LEAF = TEXT.map(html.escape) | st.sampled_from(["<br/>", " ", "\n", "&nbsp;", MACRO, "<p />"])
ELEMENTS = ["p", "div", "b", "ul", "li", "table", "tr", "td", "pre", "ac:task", "ac:task-list"]


def _inside(children: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(st.sampled_from(ELEMENTS), st.lists(children, max_size=4)).map(
        lambda pair: f"<{pair[0]}>{''.join(pair[1])}</{pair[0]}>"
    )


@settings(max_examples=150, deadline=None)
@given(st.lists(st.recursive(LEAF, _inside, max_leaves=12), max_size=4).map("".join))
def test_saving_a_saved_body_changes_nothing(body: str) -> None:
    stored = rewrite(body, "REL")
    assert rewrite(stored, "REL") == stored


@given(TEXT)
def test_any_text_is_stored_or_rejected(text: str) -> None:
    try:
        stored = rewrite(text, "REL")
    except StorageError:
        assert re.search(r"[<&]|]]>", text)
    else:
        assert rewrite(stored, "REL") == stored


# -- attachments ---------------------------------------------------------------------------------

CHILDREN = HANDBOOK + "/child/attachment"


def test_client_handles_attachments(client: Any, sandbox: Sandbox, tmp_path: Path) -> None:
    client._impl.api_version = "1.0"  # update through the `/data` address, which servers know
    source = tmp_path / "plan.txt"
    source.write_bytes(b"one\r\n--x")
    created = client.attach_file(str(source), page_id="1002", comment="first")
    (attachment,) = created["results"]
    assert (attachment["title"], attachment["version"]["number"]) == ("plan.txt", 1)
    assert attachment["extensions"]["fileSize"] == 8
    source.write_bytes(b"two")
    updated = client.attach_file(str(source), page_id="1002", comment="second")
    assert (updated["id"], updated["version"]["number"]) == (attachment["id"], 2)

    listed = client.get_attachments_from_content("1002", expand="version")["results"]
    assert [each["metadata"]["comment"] for each in listed] == ["second"]
    contents = client.download_attachments_from_page("1002", to_memory=True)
    assert contents["plan.txt"].read() == b"two"
    assert send(sandbox, "GET", HANDBOOK).json()["version"]["number"] == 3


def test_invalid_attachments_are_rejected(sandbox: Sandbox) -> None:
    def upload(path: str, **options: Any) -> requests.Response:
        files = {"file": ("a.txt", b"a", "text/plain")}
        return requests.post(
            sandbox.urls["wiki"] + path, auth=LOGIN, timeout=10, **{"files": files, **options}
        )

    assert upload(CHILDREN).text == "XSRF check failed"
    assert upload(CHILDREN, headers=XSRF).status_code == 200
    words = refused(upload(CHILDREN, headers=XSRF), 400)
    assert "same file name as an existing attachment: a.txt" in words
    refused(upload(CHILDREN + "/att99/data", headers=XSRF), 404)
    refused(upload("/rest/api/content/4711/child/attachment", headers=XSRF), 404)
    refused(upload(CHILDREN, headers=XSRF, files={"other": b"x"}), 400)
    refused(upload(CHILDREN, headers=XSRF, files=None, json={}), 415)
    long = {"comment": "c" * 256}
    refused(upload(CHILDREN, headers=XSRF, data=long, files={"file": ("b", b"b")}), 400)
    assert send(sandbox, "PUT", CHILDREN).status_code == 405


def test_attachments_are_listed_in_parts(sandbox: Sandbox) -> None:
    for number in range(3):
        files = {"file": (f"{number} ä.txt", b"x" * number)}
        address = sandbox.urls["wiki"] + CHILDREN
        requests.post(address, files=files, headers=XSRF, auth=LOGIN, timeout=10)
    first = send(sandbox, "GET", CHILDREN, limit=2).json()
    assert [result["title"] for result in first["results"]] == ["0 ä.txt", "1 ä.txt"]
    assert "version" not in first["results"][0]
    rest = send(sandbox, "GET", first["_links"]["next"]).json()
    assert [result["extensions"]["fileSize"] for result in rest["results"]] == [2]
    assert "next" not in rest["_links"]
    assert send(sandbox, "GET", CHILDREN, filename="1 ä.txt").json()["size"] == 1
    link = rest["results"][0]["_links"]["download"]
    assert send(sandbox, "GET", link).content == b"xx"
    sandbox.settings("wiki", downloads_refuse_tokens=True)
    bearer = {"Authorization": "Bearer wiki-token-1234567890"}
    address = sandbox.urls["wiki"] + link
    response = requests.get(address, headers=bearer, allow_redirects=False, timeout=10)
    assert "login.action" in response.headers["location"]


def test_client_sets_and_clears_restrictions(client: Any) -> None:
    reader = {"type": "known", "username": "reporter"}
    writers = {"type": "group", "name": "writers"}
    wanted: list[Any] = [
        {"operation": "read", "restrictions": {"user": [reader], "group": []}},
        {"operation": "update", "restrictions": {"user": [], "group": [writers]}},
    ]
    client.set_restrictions_for_content("1002", wanted)
    shown = client.get_all_restrictions_for_content("1002")
    assert [result["username"] for result in shown["read"]["restrictions"]["user"]["results"]] == [
        "reporter"
    ]
    assert shown["update"]["restrictions"]["group"]["results"] == [writers]
    wanted[0]["restrictions"]["user"] = []
    client.set_restrictions_for_content("1002", wanted[:1])
    shown = client.get_all_restrictions_for_content("1002")
    assert shown["read"]["restrictions"]["user"]["results"] == []
    assert shown["update"]["restrictions"]["group"]["results"] == [writers]


def test_client_creates_updates_and_deletes_a_space(client: Any) -> None:
    made = client.create_space("DOC", "Documentation")
    assert made["key"] == "DOC"
    client.update_space("DOC", {"name": "Docs"})
    assert client.get_space("DOC")["name"] == "Docs"
    group = [{"targetType": "page", "operationKey": "create"}]
    # the method of the client for this request encodes the list twice
    wanted = [{"groupName": "writers", "operations": group}]
    client.post("rest/api/space/DOC/permissions", data=wanted)
    shown = client.get_all_space_permissions("DOC")
    writers = {"type": "group", "name": "writers"}
    assert [one["operation"] for one in shown if one["subject"] == writers] == group
    client.delete_space("DOC")
    assert "DOC" not in [result["key"] for result in client.get_all_spaces()["results"]]


def test_comments_of_readers_are_added(sandbox: Sandbox, client: Any) -> None:
    """Verify comments below a page and in its text, whose marker makes no new version."""
    container = {"id": "1002", "type": "page"}
    body = {"storage": {"value": "<p>Really?</p>", "representation": "storage"}}
    comment = {"type": "comment", "container": container, "body": body}
    inline = {"location": "inline", "inlineProperties": {"originalSelection": "Build"}}
    made = [
        send(sandbox, "POST", "/rest/api/content", {**comment, **more}).json()
        for more in ({}, {"extensions": inline})
    ]
    assert [one["extensions"]["location"] for one in made] == ["footer", "inline"]
    assert made[0]["body"]["storage"]["value"] == "<p>Really?</p>"
    reference = made[1]["extensions"]["inlineProperties"]["markerRef"]
    page = send(sandbox, "GET", HANDBOOK, expand="body.storage,version").json()
    marker = f'<ac:inline-comment-marker ac:ref="{reference}">Build</ac:inline-comment-marker>'
    assert f"<li>{marker} is green</li>" in page["body"]["storage"]["value"]
    assert page["version"]["number"] == 3
    listed = client.get_page_comments("1002", expand="body.storage")["results"]
    assert [one["id"] for one in listed] == [one["id"] for one in made]
    for wrong in ({"originalSelection": "Build"}, {"originalSelection": "nothing"}, {}):
        extensions = {"location": "inline", "inlineProperties": wrong}
        refused(
            send(sandbox, "POST", "/rest/api/content", {**comment, "extensions": extensions}), 400
        )
    again = send(sandbox, "GET", HANDBOOK, expand="body.storage").json()
    assert again["body"] == page["body"]
    refused(send(sandbox, "POST", "/rest/api/content", {**comment, "body": {}}), 400)
    missing = {**comment, "container": {"id": "999"}}
    refused(send(sandbox, "POST", "/rest/api/content", missing), 404)
