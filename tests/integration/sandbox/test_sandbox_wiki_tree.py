# SPDX-License-Identifier: GPL-3.0-or-later
"""Test page trees, spaces and searches of the sandbox's wiki: a third-party client, and plain
requests for special cases.
"""

from __future__ import annotations

from typing import Any

import pytest
import requests
from atlassian import Confluence
from atlassian.errors import ApiError

from sandbox.client import Sandbox

LOGIN = ("reporter", "reporter-password")
XSRF = {"X-Atlassian-Token": "no-check"}
CONTENT = "/rest/api/content"


@pytest.fixture
def client(sandbox: Sandbox) -> Any:
    create: Any = Confluence
    return create(sandbox.urls["wiki"], username=LOGIN[0], password=LOGIN[1], cloud=False)


def ask(
    sandbox: Sandbox, method: str, path: str, members: Any = None, **query: Any
) -> requests.Response:
    address = sandbox.urls["wiki"] + path
    return requests.request(method, address, json=members, params=query, auth=LOGIN, timeout=10)


def new(title: str, parent: str = "1003", body: str = "<p>x</p>", **more: Any) -> dict[str, Any]:
    return {
        "type": "page",
        "title": title,
        "space": {"key": "REL"},
        "ancestors": [{"id": parent}],
        "body": {"storage": {"value": body, "representation": "storage"}},
        **more,
    }


def made(sandbox: Sandbox, title: str, parent: str = "1003", **more: Any) -> str:
    response = ask(sandbox, "POST", CONTENT, new(title, parent, **more))
    assert response.status_code == 200, response.text
    return str(response.json()["id"])


def titles(response: requests.Response) -> list[str]:
    assert response.status_code == 200, response.text
    return [page["title"] for page in response.json()["results"]]


def children(sandbox: Sandbox, page: str, **query: Any) -> list[str]:
    return titles(ask(sandbox, "GET", f"{CONTENT}/{page}/child/page", **query))


def refused(response: requests.Response, status: int) -> str:
    assert response.status_code == status, response.text
    return str(response.json()["message"])


# -- the client `atlassian-python-api` -----------------------------------------------------------


def test_client_moves_a_page(client: Any) -> None:
    page = client.create_page("REL", "Moved", "<p>x</p>", parent_id="1003")
    client.update_page(page["id"], "Moved", "<p>x</p>", parent_id="1002")
    assert client.get_parent_content_id(page["id"]) == "1002"
    client.update_page(page["id"], "Moved", "<p>y</p>")
    assert client.get_parent_content_id(page["id"]) == "1002"


def test_client_walks_a_tree(client: Any, sandbox: Sandbox) -> None:
    for number in (10, 9, 1):
        page = client.create_page("REL", f"Notes {number}", "<p>x</p>", parent_id="1003")
    client.create_page("REL", "Detail", "<p>y</p>", parent_id=page["id"])
    below = client.get_page_child_by_type("1003", type="page")
    assert [one["title"] for one in below] == ["Notes 1", "Notes 9", "Notes 10"]
    assert client.get_parent_content_id(page["id"]) == "1003"
    assert [ancestor["title"] for ancestor in client.get_page_ancestors(page["id"])] == [
        *("Releases", "Release notes")
    ]
    first = client.get_all_pages_from_space_raw("REL", limit=3)["results"]
    assert [one["title"] for one in first] == ["Releases", "Handbook", "Release notes"]
    assert client.page_exists("REL", "Detail")
    assert client.get_subtree_of_content_ids("1003") >= {page["id"]}


def test_client_reads_spaces_and_searches(client: Any) -> None:
    assert [result["key"] for result in client.get_all_spaces()["results"]] == ["ARC", "REL"]
    assert client.get_space("REL", expand="homepage")["homepage"]["id"] == "1001"
    assert client.get_home_page_of_space("REL")["id"] == "1001"
    found = client.cql('space = REL and title ~ "hand*"')
    assert [result["content"]["id"] for result in found["results"]] == ["1002"]
    assert found["totalSize"] == 1


def test_client_trashes_and_purges(client: Any, sandbox: Sandbox) -> None:
    page = client.create_page("REL", "Old", "<p>x</p>", parent_id="1003")["id"]
    below = client.create_page("REL", "Below", "<p>x</p>", parent_id=page)["id"]
    client.remove_page(page)
    assert children(sandbox, "1003") == ["Below"]
    assert client.get_page_by_id(page, status="trashed")["status"] == "trashed"
    client.remove_page_from_trash(page)
    with pytest.raises(ApiError):
        client.get_page_by_id(page, status="trashed")
    client.remove_page(below)
    assert children(sandbox, "1003") == []


def test_client_handles_labels_properties_and_files(client: Any) -> None:
    client.set_page_label("1002", "Release")
    client.remove_page_label("1002", "handbook")
    labels = [result["name"] for result in client.get_page_labels("1002")["results"]]
    assert labels == ["release"]
    client.set_page_property("1002", {"key": "tree", "value": {"file": "a.md"}})
    value = {"key": "tree", "value": {"file": "b.md"}, "version": {"number": 2}}
    client.update_page_property("1002", value)
    assert client.get_page_properties("1002")[0]["value"] == {"file": "b.md"}
    client.delete_page_property("1002", "tree")
    assert client.get_page_properties("1002") == []
    added = client.attach_content(b"a", "a.txt", "text/plain", page_id="1002")["results"][0]
    client.remove_content(added["id"])
    assert client.get_attachments_from_content("1002")["results"] == []


# -- trees ---------------------------------------------------------------------------------------


def test_move_includes_the_subtree(sandbox: Sandbox) -> None:
    parent = made(sandbox, "A")
    child = made(sandbox, "B", parent)
    path = f"{CONTENT}/{parent}/move/append/1002"
    refused(ask(sandbox, "PUT", path), 404)
    sandbox.settings("wiki", move_address=True)
    assert ask(sandbox, "PUT", path).json() == {"pageId": parent}
    page = ask(sandbox, "GET", f"{CONTENT}/{child}", expand="ancestors,version").json()
    assert [above["id"] for above in page["ancestors"]] == ["1001", "1002", parent]
    assert page["version"]["number"] == 1
    below = f"{CONTENT}/{parent}/move/append/{child}"
    assert "its own ancestor" in refused(ask(sandbox, "PUT", below), 400)
    refused(ask(sandbox, "PUT", f"{CONTENT}/{parent}/move/beside/{child}"), 400)


def test_pages_are_ordered_manually(sandbox: Sandbox) -> None:
    sandbox.settings("wiki", deployment="Cloud")
    pages = {title: made(sandbox, title) for title in "abc"}
    ask(sandbox, "PUT", f"{CONTENT}/{pages['c']}/move/before/{pages['a']}")
    assert children(sandbox, "1003") == ["c", "a", "b"]
    first = ask(sandbox, "GET", f"{CONTENT}/1003/child/page").json()["results"][0]
    assert first["extensions"] == {"position": 0}
    made(sandbox, "aa")
    assert children(sandbox, "1003") == ["c", "a", "b", "aa"]
    ask(sandbox, "PUT", f"{CONTENT}/{pages['c']}/move/after/1001")
    top = ask(sandbox, "GET", "/rest/api/space/REL/content/page", depth="root")
    assert titles(top) == ["Releases", "c"]


def test_one_request_returns_all_of_a_page(sandbox: Sandbox) -> None:
    for number in range(30):
        made(sandbox, f"N{number}")
    expand = "children.page,children.attachment,metadata.labels,ancestors,version,body.storage"
    page = ask(sandbox, "GET", f"{CONTENT}/1003", expand=expand).json()
    embedded = page["children"]["page"]
    assert (embedded["size"], len(embedded["results"])) == (25, 25)
    rest = titles(ask(sandbox, "GET", embedded["_links"]["next"]))
    assert rest == [f"N{number}" for number in range(25, 30)]
    assert page["children"]["attachment"]["results"] == []
    assert len(children(sandbox, "1003")) == 25
    sandbox.settings("wiki", deployment="Cloud")
    descendants = ask(sandbox, "GET", f"{CONTENT}/1001/descendant/page", limit=200)
    assert len(titles(descendants)) == 32
    listed: dict[str, Any] = {"expand": "body.storage", "limit": 200}
    part = ask(sandbox, "GET", f"{CONTENT}/1001/descendant/page", **listed).json()
    assert part["limit"] == 50


def test_links_follow_a_rename(sandbox: Sandbox) -> None:
    link = '<ac:link><ri:page ri:content-title="Q &amp; A" /></ac:link>'
    target = made(sandbox, "Q & A")
    elsewhere = link.replace("<ri:page", '<ri:page ri:space-key="ARC"')
    body = f"<p>{link}{elsewhere}</p>"
    page = made(sandbox, "From", body=body)

    def stored() -> dict[str, Any]:
        found: dict[str, Any] = ask(
            sandbox, "GET", f"{CONTENT}/{page}", expand="body.storage,version"
        ).json()
        return found

    renamed = {**new("Q & As"), "version": {"number": 2}}
    assert ask(sandbox, "PUT", f"{CONTENT}/{target}", renamed).status_code == 200
    value = stored()["body"]["storage"]["value"]
    assert value.count('ri:content-title="Q &amp; As"') == 1
    assert value.count('ri:content-title="Q &amp; A"') == 1
    assert stored()["version"]["number"] == 1
    sandbox.settings("wiki", rename_rewrites_links=False)
    renamed = {**new("Other"), "version": {"number": 3}}
    ask(sandbox, "PUT", f"{CONTENT}/{target}", renamed)
    assert "Other" not in stored()["body"]["storage"]["value"]


def test_restored_page_is_unchanged(sandbox: Sandbox) -> None:
    page = made(sandbox, "Gone")
    ask(sandbox, "DELETE", f"{CONTENT}/{page}")
    assert made(sandbox, "Gone") != page
    back = {**new("Other"), "version": {"number": 2}, "status": "current"}
    words = refused(ask(sandbox, "PUT", f"{CONTENT}/{page}", back), 400)
    assert "A page with this title already exists" in words
    other = made(sandbox, "Away")
    ask(sandbox, "DELETE", f"{CONTENT}/{other}")
    restored = ask(sandbox, "PUT", f"{CONTENT}/{other}", back).json()
    assert (restored["title"], restored["version"]["number"]) == ("Away", 2)
    ask(sandbox, "DELETE", f"{CONTENT}/{other}")
    sandbox.settings("wiki", trash_blocks_titles=True)
    refused(ask(sandbox, "POST", CONTENT, new("away")), 400)


def test_new_page_gets_its_parents(sandbox: Sandbox) -> None:
    sandbox.settings("wiki", orphans_below_home=True)
    orphan = new("Orphan")
    del orphan["ancestors"]
    page = ask(sandbox, "POST", CONTENT, orphan, expand="ancestors").json()
    assert [above["id"] for above in page["ancestors"]] == ["1001"]
    assert "does not exist in the space" in refused(
        ask(sandbox, "POST", CONTENT, new("X", "1101")), 400
    )
    assert "255" in refused(ask(sandbox, "POST", CONTENT, new("x" * 256)), 400)
    sandbox.settings("wiki", max_body=10)
    refused(ask(sandbox, "POST", CONTENT, new("X", body="<p>0123456789</p>")), 413)


# -- labels, properties, files -------------------------------------------------------------------


def test_labels_are_split_at_blanks(sandbox: Sandbox) -> None:
    path = f"{CONTENT}/1002/label"
    added = ask(sandbox, "POST", path, [{"prefix": "global", "name": "New abc"}])
    names = [result["name"] for result in added.json()["results"]]
    assert names == ["handbook", "new", "abc"]
    for bad in ("a:b", "a?", "x" * 256, " "):
        refused(ask(sandbox, "POST", path, [{"name": bad}]), 400)
    assert ask(sandbox, "DELETE", f"{path}/New").status_code == 204
    assert ask(sandbox, "DELETE", path, name="abc").status_code == 204
    metadata = {"labels": [{"name": "One"}]}
    page = made(sandbox, "On a server", metadata=metadata)
    assert ask(sandbox, "GET", f"{CONTENT}/{page}/label").json()["results"] == []
    sandbox.settings("wiki", deployment="Cloud")
    page = made(sandbox, "In the cloud", metadata=metadata)
    assert ask(sandbox, "GET", f"{CONTENT}/{page}/label").json()["results"][0]["name"] == "one"


def test_properties_are_limited(sandbox: Sandbox) -> None:
    path = f"{CONTENT}/1002/property"
    for key, value in (("k" * 256, 1), ("k", "v" * 32768)):
        refused(ask(sandbox, "POST", path, {"key": key, "value": value}), 400)
    for number in range(3):
        ask(sandbox, "POST", path, {"key": f"k{number}", "value": number})
    page = ask(sandbox, "GET", path, limit=2).json()
    rest = ask(sandbox, "GET", page["_links"]["next"]).json()
    assert [result["key"] for result in page["results"] + rest["results"]] == ["k0", "k1", "k2"]


def test_attachment_upload_depends_on_settings_and_deployment(sandbox: Sandbox) -> None:
    address = f"{sandbox.urls['wiki']}{CONTENT}/1002/child/attachment"

    def upload(method: str, content: bytes, path: str = "") -> requests.Response:
        files: dict[str, Any] = {
            "file": ("dir/größe.txt", content),
            "comment": (None, "größe"),
        }
        return requests.request(
            method, address + path, files=files, headers=XSRF, auth=LOGIN, timeout=10
        )

    (stored,) = upload("POST", b"a").json()["results"]
    assert (stored["title"], stored["metadata"]["comment"]) == ("größe.txt", "größe")
    assert upload("PUT", b"b").status_code == 405
    sandbox.settings("wiki", duplicate_attachment_status=409, upload_limit=2)
    refused(upload("POST", b"b"), 409)
    refused(upload("POST", b"long", f"/{stored['id']}/data"), 413)
    number = stored["id"].removeprefix("att")
    assert upload("POST", b"a", f"/{number}/data").json()["version"]["number"] == 2
    sandbox.settings("wiki", deployment="Cloud")
    assert upload("PUT", b"c").json()["results"][0]["version"]["number"] == 3


# -- searches ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cql", "expected"),
    [
        ("ancestor = 1001 and type = page", ["Handbook", "Release notes"]),
        ("parent = 1001 order by title desc", ["Release notes", "Handbook"]),
        ("space in (ARC) or label = handbook", ["Handbook", "Archive"]),
        ("space = REL and not (title = 'Handbook' or id = 1001)", ["Release notes"]),
        ('text ~ "one per version" or title !~ "e"', ["Handbook"]),
        ("title ~ arch", ["Archive"]),
        ("space = REL and id not in (1001, 1002)", ["Release notes"]),
    ],
)
def test_content_query_finds_pages(sandbox: Sandbox, cql: str, expected: list[str]) -> None:
    assert titles(ask(sandbox, "GET", CONTENT + "/search", cql=cql)) == expected


@pytest.mark.parametrize(
    "cql", ["", "colour = red", "title", "title = (", "space = REL order title"]
)
def test_invalid_content_query_is_rejected(sandbox: Sandbox, cql: str) -> None:
    words = refused(ask(sandbox, "GET", CONTENT + "/search", cql=cql), 400)
    assert "Could not parse cql" in words


def test_index_is_delayed_and_cloud_pages_by_cursor(sandbox: Sandbox) -> None:
    sandbox.settings("wiki", index_lag_searches=1, deployment="Cloud")
    made(sandbox, "Fresh")
    address = CONTENT + "/search"
    found = [titles(ask(sandbox, "GET", address, cql="title = Fresh")) for _number in range(2)]
    assert found == [[], ["Fresh"]]
    first = ask(sandbox, "GET", CONTENT + "/search", cql="space = REL", limit=3, start=1).json()
    assert [page["id"] for page in first["results"]] == ["1001", "1002", "1003"]
    assert "cursor=" in first["_links"]["next"]
    assert titles(ask(sandbox, "GET", first["_links"]["next"])) == ["Fresh"]
    wrong = ask(sandbox, "GET", CONTENT + "/search", cql="space = REL", cursor="x")
    assert "Invalid cursor" in refused(wrong, 400)


def test_restricted_pages_hide_their_children(sandbox: Sandbox) -> None:
    common = {"space": "REL", "body": "<p>x</p>"}
    pages: list[dict[str, Any]] = [
        {"id": "3001", "title": "Ours", "parent": "1003", "restrictions": {"read": ["reporter"]}},
        {"id": "3002", "title": "Below", "parent": "3001"},
        {"id": "3003", "title": "Fixed", "parent": "1003", "restrictions": {"update": ["author"]}},
    ]
    sandbox.seed({"wiki": {"pages": [{**common, **page} for page in pages]}})
    author = ("author", "author-password")
    address = sandbox.urls["wiki"] + CONTENT
    for page in ("3001", "3002"):
        assert ask(sandbox, "GET", f"{CONTENT}/{page}").status_code == 200
        assert requests.get(f"{address}/{page}", auth=author, timeout=10).status_code == 404
    listed = requests.get(f"{address}/1003/child/page", auth=author, timeout=10)
    assert titles(listed) == ["Fixed"]
    change = {**new("Fixed"), "version": {"number": 2}}
    assert "Could not update" in refused(ask(sandbox, "PUT", f"{CONTENT}/3003", change), 403)
    sandbox.settings("wiki", uneditable_status=404)
    refused(ask(sandbox, "PUT", f"{CONTENT}/3003", change), 404)
    shown = ask(sandbox, "GET", f"{CONTENT}/3003/restriction/byOperation").json()
    assert shown["update"]["restrictions"]["user"]["results"][0]["username"] == "author"


def test_current_user_is_returned(sandbox: Sandbox) -> None:
    assert ask(sandbox, "GET", "/rest/api/user/current").json()["username"] == "reporter"
    sandbox.settings("wiki", deployment="Cloud", anonymous_on_bad_login=True)
    assert ask(sandbox, "GET", "/rest/api/user/current").json()["accountId"] == "account-reporter"
    address = sandbox.urls["wiki"] + "/rest/api/user/current"
    assert requests.get(address, timeout=10).json()["type"] == "anonymous"
    page = requests.get(f"{sandbox.urls['wiki']}{CONTENT}/1002", timeout=10)
    assert page.status_code == 404
    sandbox.seed({"wiki": {"spaces": [{"key": "REL", "name": "Releases", "anonymous": True}]}})
    page = requests.get(f"{sandbox.urls['wiki']}{CONTENT}/1002", timeout=10)
    assert page.status_code == 200
