# SPDX-License-Identifier: GPL-3.0-or-later
"""Test tags in pages of every flavour, and promotions of images."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.images import registry
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.images.docker_promote import (
    DockerPromoteOperation,
)
from tests.unit.repo.conftest import Server
from tests.unit.stub import Reply, Seen

ALL = [f"1.{number}" for number in range(7)]
LIST = "/base/api/docker/r/v2/team/app/tags/list"


class Registry:
    """Pages of three tags; `link` builds the header for the next page; None: there is no header."""

    def __init__(self, link: str | None) -> None:
        self.link = link

    def __call__(self, seen: Seen) -> Reply:
        assert seen.path == LIST
        query = parse_qs(urlsplit(seen.target).query)
        size, last = int(query["n"][0]), query.get("last", [""])[0]
        start = ALL.index(last) + 1 if last in ALL else int(last or 0)
        page = ALL[start : start + size]
        headers = {}
        if self.link is not None and start + size < len(ALL):
            headers["Link"] = self.link.format(tag=page[-1], offset=start + size, n=size)
        return Reply(200, {"name": "team/app", "tags": page}, headers)


@pytest.mark.parametrize(
    "link",
    [
        '</base/api/docker/r/v2/team/app/tags/list?last={tag}&n={n}>; rel="next"',
        '</v2/team/app/tags/list?last={offset}&n={n}>; rel="next"',
        "<http://elsewhere:1/v2/team/app/tags/list?n={n}&last={tag}>;rel=next",
        '<?n={n}&last={tag}>; title="more"; rel="next"',
        '</first?n=1>; rel="first", </v2/x?n={n}&last={offset}>; rel="next"',
        "</v2/x?n={n}&last={tag}>; rel='next'",
        '</v2/x?n={n}&last={tag}>; REL="last Next"',
        None,
    ],
)
def test_all_pages_are_read(server: Server, link: str | None) -> None:
    server.stub.response = Registry(link)
    assert registry.tags(server.client(), "r", "team/app", page=3) == ALL
    assert len(server.asked) <= (4 if link is None else 3)


@pytest.mark.parametrize("position", [True, False])
@pytest.mark.parametrize("refusal", [Reply(400), Reply(500), Reply(cut=True), None])
def test_shorter_pages_without_links_are_followed(
    server: Server, position: bool, refusal: Reply | None
) -> None:
    """Verify this for a server of the written interface: no links, and two tags in a
    page at most.
    """

    def response(seen: Seen) -> Reply:
        last = parse_qs(urlsplit(seen.target).query).get("last", ["0" if position else ""])[0]
        known = last.isdigit() if position else last in ["", *ALL]
        if not known and refusal is not None:
            return refusal
        start = int(last) if position and known else ALL.index(last) + 1 if last in ALL else 0
        return Reply(body={"tags": ALL[start : start + 2]})

    server.dialect = "generic"
    server.stub.response = response
    assert registry.tags(server.client(), "r", "team/app") == ALL
    server.stub.seen.clear()
    assert registry.manifest(server.client(), "r", "team/app", "1.1") == registry.PRESENT
    assert len(server.asked) == 1


def test_short_page_of_server_with_links_is_the_last(server: Server) -> None:
    server.stub.response = lambda seen: Reply(body={"tags": ["a"]})
    assert registry.tags(server.client(), "r", "team/app") == ["a"]
    assert len(server.asked) == 1


def test_unconfirmed_full_page_is_an_error(server: Server) -> None:
    server.stub.replies = [Reply(body={"tags": ["a", "b"]}), Reply(cut=True)]
    with pytest.raises(ToolchainError):
        registry.tags(server.client(), "r", "team/app", page=2)


def test_short_page_that_repeats_ends_the_list(server: Server) -> None:
    same = Reply(200, {"tags": ["a", "b"]}, {"Link": '</v2/x?last=b&n=3>; rel="next"'})
    server.stub.response = lambda seen: same
    assert registry.tags(server.client(), "r", "team/app", page=3) == ["a", "b"]
    assert len(server.asked) <= 4


def test_full_page_that_repeats_is_an_error(server: Server) -> None:
    same = Reply(200, {"tags": ["a", "b"]}, {"Link": '</v2/x?last=b&n=2>; rel="next"'})
    server.stub.response = lambda seen: same
    with pytest.raises(ToolchainError, match="names may be missing") as caught:
        registry.tags(server.client(), "r", "team/app", page=2)
    assert caught.value.kind == "protocol"


@pytest.mark.parametrize(
    "link",
    [
        # the same page endlessly
        '</v2/team/app/tags/list?n=3>; rel="next"',
        # a page that the server rejects
        '</v2/team/app/tags/list?n=3&last=nowhere>; rel="next"',
        # no parameters for a request
        '</v2/team/app/tags/list>; rel="next"',
        '<http://[broken?n=3>; rel="next"',
    ],
)
def test_invalid_links_are_ignored(server: Server, link: str) -> None:
    """Verify that the remaining pages are requested by the last tag, or by a count."""

    def response(seen: Seen) -> Reply:
        query = parse_qs(urlsplit(seen.target).query)
        if query.get("last") == ["nowhere"]:
            return Reply(400, "last: not a number")
        return Reply(200, Registry(None)(seen).body, {"Link": link})

    server.stub.response = response
    assert registry.tags(server.client(), "r", "team/app", page=3) == ALL
    assert len(server.asked) <= 7


def test_rejected_next_page_is_an_error(server: Server) -> None:
    first = Reply(200, {"tags": ["a", "b"]}, {"Link": '</v2/x?last=b&n=2>; rel="next"'})
    server.stub.replies = [first]
    server.stub.response = lambda seen: Reply(404)
    with pytest.raises(ToolchainError) as caught:
        registry.tags(server.client(), "r", "team/app", page=2)
    assert caught.value.kind == "protocol"


def test_empty_page_without_link_ends_the_list(server: Server) -> None:
    first = Reply(200, {"tags": ["a", "b"]}, {"Link": '</v2/x?last=b&n=2>; rel="next"'})
    server.stub.replies = [first, Reply(200, {"tags": None})]
    assert registry.tags(server.client(), "r", "team/app", page=2) == ["a", "b"]
    assert len(server.asked) <= 2


def test_empty_page_with_link_is_followed(server: Server) -> None:
    """Verify this for a catalog that the login may see only in part."""
    link = {"Link": '</v2/_catalog?last=m&n=2>; rel="next"'}
    server.stub.replies = [Reply(200, {"repositories": names}, link) for names in (["a"], [], [])]
    server.stub.replies.append(Reply(200, {"repositories": ["z"]}))
    assert registry.images(server.client(), "r", page=2) == ["a", "z"]


def test_endless_empty_pages_are_abandoned(server: Server) -> None:
    link = {"Link": '</v2/x?last=m&n=2>; rel="next"'}
    server.stub.replies = [Reply(200, {"tags": ["a"]}, link)]
    server.stub.response = lambda seen: Reply(200, {"tags": []}, link)
    assert registry.tags(server.client(), "r", "team/app", page=2) == ["a"]
    assert len(server.asked) <= 11


@pytest.mark.parametrize(
    "body", [*({"tags": odd} for odd in (5, "abc", {"a": 1}, [None], [["a"]])), {"error": "no"}, {}]
)
def test_malformed_list_is_an_error(server: Server, body: dict[str, Any]) -> None:
    server.stub.response = lambda seen: Reply(200, body)
    with pytest.raises(ToolchainError) as caught:
        registry.tags(server.client(), "r", "team/app")
    assert caught.value.kind == "protocol"


def test_endless_list_is_an_error(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_MAX_PAGES", 5)

    def response(seen: Seen) -> Reply:
        link = f'</v2/x?n=1&last={len(server.asked)}>; rel="next"'
        return Reply(200, {"tags": [str(len(server.asked))]}, {"Link": link})

    server.stub.response = response
    with pytest.raises(ToolchainError, match="did not end after 5 pages"):
        registry.tags(server.client(), "r", "team/app")
    assert len(server.asked) <= 5


def test_page_size_ignored_by_registry_gives_the_complete_list(server: Server) -> None:
    server.stub.response = lambda seen: Reply(body={"tags": ["b", "latest", "a"]})
    assert registry.tags(server.client(), "r", "team/app", page=2) == ["b", "latest", "a"]
    assert len(server.asked) == 1


def test_all_pages_of_catalog_are_read(server: Server) -> None:
    pages = {"": ["a", "team/b"], "team/b": ["team/c"]}

    def response(seen: Seen) -> Reply:
        assert seen.path == "/base/api/docker/r/v2/_catalog"
        last = parse_qs(urlsplit(seen.target).query).get("last", [""])[0]
        link = {"Link": '</v2/_catalog?last=team%2Fb&n=2>; rel="next"'} if last == "" else {}
        return Reply(200, {"repositories": pages[last]}, link)

    server.stub.response = response
    assert registry.images(server.client(), "r", page=2) == ["a", "team/b", "team/c"]
    server.stub.response = lambda seen: Reply(404)
    assert registry.images(server.client(), "r") is None


def test_server_rejecting_last_tag_is_read_without_it(server: Server) -> None:
    refused = Reply(400, "last: not a number")
    server.stub.replies = [Reply(200, {"tags": ["a", "b"]}), refused, Reply(200, {"tags": ["c"]})]
    server.stub.replies.append(refused)
    assert registry.tags(server.client(), "r", "team/app", page=2) == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("reply", "found"),
    [(Reply(404), None), (Reply(body={"tags": None}), []), (Reply(body={"name": "app"}), [])],
)
def test_missing_tags_give_an_empty_list(server: Server, reply: Reply, found: Any) -> None:
    server.stub.response = lambda seen: reply
    assert registry.tags(server.client(), "r", "app") == found


# --- promotion

ONE, TWO = "sha256:" + "1" * 64, "sha256:" + "2" * 64
PROMOTE = "POST /api/docker/src/v2/promote"


def options(**given: Any) -> dict[str, Any]:
    names = ("target_image", "tag", "tags", "target_tag")
    defaults = {"repo": "src", "target_repo": "dst", "image": "team/app", "copy": True}
    return {**dict.fromkeys(names), **defaults, "all_tags": False, "force": False, **given}


def head(repo: str, tag: str, image: str = "team/app") -> str:
    return f"HEAD /api/docker/{repo}/v2/{image}/manifests/{tag}"


def digest(value: str) -> Reply:
    return Reply(200, headers={"Docker-Content-Digest": value})


def shown(
    tag: str, action: str, source: str | None = ONE, target: str | None = ONE
) -> dict[str, Any]:
    """Return an entry of the return value `tags`."""
    digests = {"source_digest": source, "target_digest": target}
    return {"tag": tag, "target_tag": tag, "action": action, **digests}


def tags(*names: str) -> Reply:
    return Reply(body={"tags": list(names)})


def test_same_digest_is_unchanged(server: Server) -> None:
    server.on[head("src", "1")] = server.on[head("dst", "1")] = digest(ONE)
    plan, values = server.run(DockerPromoteOperation, options(tag="1"))
    assert not plan.changed
    assert values == {
        "source_digest": ONE,
        "target_digest": ONE,
        "tags": [shown("1", "unchanged")],
        "message": "",
    }
    accepted = server.stub.seen[0].headers["Accept"]
    for kind in ("oci.image.index", "oci.image.manifest", "manifest.list.v2", "manifest.v2"):
        assert kind in accepted


def test_missing_target_repository_fails_in_check_mode(server: Server) -> None:
    server.on[head("src", "1")] = digest(ONE)
    server.on["GET /api/repositories"] = Reply(body='[{"key": "src"}]')
    with pytest.raises(ToolchainError) as caught:
        server.run(DockerPromoteOperation, options(tag="1"), check=True)
    assert caught.value.kind == "not_found"
    assert "no repository 'dst'" in caught.value.message


def test_different_digest_is_overwritten_and_returned(server: Server) -> None:
    server.on[head("src", "1")] = digest(ONE)
    server.on[head("dst", "1")] = [digest(TWO), digest(ONE)]
    server.on[PROMOTE] = Reply(200, "Promotion ended successfully\n")
    plan, values = server.run(DockerPromoteOperation, options(tag="1"))
    assert plan.before == {"dst/team/app:1": TWO}
    assert plan.after == {"dst/team/app:1": ONE}
    assert server.warnings == [f"the promotion overwrites 'dst/team/app:1', which has {TWO}"]
    assert values == {
        "source_digest": ONE,
        "target_digest": ONE,
        "tags": [shown("1", "promoted")],
        "message": "Promotion ended successfully",
    }
    assert server.bodies(PROMOTE) == [
        {"targetRepo": "dst", "dockerRepository": "team/app", "tag": "1", "copy": True}
    ]


def test_target_image_and_tag_may_differ(server: Server) -> None:
    server.on[head("src", "1")] = digest(ONE)
    server.on[head("dst", "2", "new")] = [Reply(404), digest(ONE)]
    server.on[PROMOTE] = Reply(200)
    plan, _ignored = server.run(
        DockerPromoteOperation, options(tag="1", target_tag="2", target_image="new")
    )
    assert plan.action == "create"
    [body] = server.bodies(PROMOTE)
    assert body["targetTag"] == "2"
    assert body["targetDockerRepository"] == "new"


def test_tags_are_compared_without_digests(server: Server) -> None:
    server.dialect = "generic"
    listing = "GET /api/container/{}/v2/team/app/tags/list?n=1000"
    server.on[listing.format("src")] = tags("1", "2")
    server.on[listing.format("dst")] = [tags("1"), tags("1"), tags("1", "2")]
    server.on["POST /api/container/src/v2/promote"] = Reply(200, "ok")
    plan, values = server.run(DockerPromoteOperation, options(tag="1"))
    assert not plan.changed
    assert values["source_digest"] is None
    plan, values = server.run(DockerPromoteOperation, options(tag="2"))
    assert plan.changed
    assert values == {
        "source_digest": None,
        "target_digest": None,
        "tags": [shown("2", "promoted", None, None)],
        "message": "ok",
    }


def test_existing_tag_without_digests_needs_no_source(server: Server) -> None:
    server.dialect = "generic"
    server.on["GET /api/container/dst/v2/team/app/tags/list?n=1000"] = tags("1")
    plan, _ignored = server.run(DockerPromoteOperation, options(tag="1"))
    assert not plan.changed


def test_image_is_moved(server: Server) -> None:
    server.on[head("src", "1")] = [digest(ONE), Reply(404)]
    server.on[head("dst", "1")] = digest(ONE)
    server.on[PROMOTE] = Reply(200)
    plan, _ignored = server.run(DockerPromoteOperation, options(tag="1", copy=False))
    assert plan.changed
    assert plan.before == {"src/team/app:1": ONE, "dst/team/app:1": ONE}
    assert plan.after == {"dst/team/app:1": ONE}
    plan, values = server.run(DockerPromoteOperation, options(tag="1", copy=False, force=True))
    assert not plan.changed
    assert values == {
        "source_digest": None,
        "target_digest": ONE,
        "tags": [shown("1", "unchanged", None)],
        "message": "",
    }


def test_move_that_leaves_the_source_is_an_error(server: Server) -> None:
    server.on[head("src", "1")] = digest(ONE)
    server.on[head("dst", "1")] = [Reply(404), digest(ONE)]
    server.on[PROMOTE] = Reply(200, "Promotion ended successfully")
    error = server.fails(DockerPromoteOperation, options(tag="1", copy=False))
    assert error.kind == "failed"
    assert "src/team/app:1 still exists" in error.message
    assert "Promotion ended successfully" in error.message
    assert error.detail == "Promotion ended successfully"
    assert error.result["tags"][0]["action"] == "failed"


def test_move_of_all_tags_that_leaves_a_tag_is_an_error(server: Server) -> None:
    listing = "GET /api/container/{}/v2/team/app/tags/list?n=1000"
    server.dialect = "generic"
    server.on[listing.format("src")] = [tags("1", "2"), tags("2")]
    server.on[listing.format("dst")] = [Reply(404), tags("1", "2")]
    server.on["POST /api/container/src/v2/promote"] = Reply(200, "ok")
    # without links, a further request checks whether more pages follow
    for repo, last in (("src", "2"), ("dst", "2")):
        server.on[listing.format(repo) + f"&last={last}"] = tags()
    error = server.fails(DockerPromoteOperation, options(all_tags=True, copy=False))
    assert "src/team/app:2 still exists" in error.message
    assert "src/team/app:1" not in error.message


@pytest.mark.parametrize("left", [True, False])
def test_lost_response_of_a_move_is_verified(server: Server, left: bool) -> None:
    server.on[head("src", "1")] = [digest(ONE), digest(ONE) if left else Reply(404)]
    server.on[head("dst", "1")] = [Reply(404), digest(ONE)]
    server.on[PROMOTE] = Reply(cut=True)
    if left:
        assert server.fails(DockerPromoteOperation, options(tag="1", copy=False)).outcome_unknown
    else:
        _plan, values = server.run(DockerPromoteOperation, options(tag="1", copy=False))
        assert values["tags"] == [shown("1", "promoted")]
    assert server.asked.count(PROMOTE) == 1


@pytest.mark.parametrize("copy", [True, False])
def test_missing_source_is_not_found(server: Server, copy: bool) -> None:
    error = server.fails(DockerPromoteOperation, options(tag="1", copy=copy))
    assert error.kind == "not_found"
    assert "does not exist either" in error.message


@pytest.mark.parametrize("given", [{"tag": "1"}, {"tags": ["1", "2"]}, {"all_tags": True}])
def test_image_that_will_be_pushed_is_predicted(server: Server, given: dict[str, Any]) -> None:
    """The option has an effect in check mode only, and does not hide a missing repository."""
    for repo in ("src", "dst"):
        server.on[f"GET /api/repositories/{repo}"] = Reply(body={"key": repo, "rclass": "local"})
        server.on[f"GET /api/docker/{repo}/v2/team/app/tags/list?n=1000"] = tags()
    server.on[head("src", "2")] = server.on[head("dst", "2")] = digest(ONE)
    wanted = options(pending=True, **given)
    plan, values = server.run(DockerPromoteOperation, wanted, check=True)
    assert plan.after == {
        f"dst/team/app:{given.get('tag', '*' if 'all_tags' in given else '1')}": "(not pushed yet)"
    }
    assert values["tags"][:1] == (
        [] if "all_tags" in given else [shown("1", "promoted", None, None)]
    )
    tag = "*" if "all_tags" in given else "1"
    assert server.warnings == [
        f"'src/team/app:{tag}' does not exist yet: a build of this run must push it"
    ]
    assert server.fails(DockerPromoteOperation, wanted).kind == "not_found"
    assert PROMOTE not in server.asked
    del server.on["GET /api/repositories/dst"]
    server.on["GET /api/repositories"] = Reply(body='[{"key": "src", "type": "LOCAL"}]')
    with pytest.raises(ToolchainError, match="dst"):
        server.run(DockerPromoteOperation, wanted, check=True)


def test_missing_source_cannot_be_compared(server: Server) -> None:
    server.on[head("dst", "1")] = digest(ONE)
    error = server.fails(DockerPromoteOperation, options(tag="1"))
    assert error.kind == "not_found"
    assert "cannot be compared" in error.message


def test_all_tags_are_compared_individually(server: Server) -> None:
    server.on["GET /api/docker/src/v2/team/app/tags/list?n=1000"] = tags("1", "2")
    server.on["GET /api/docker/dst/v2/team/app/tags/list?n=1000"] = tags("1", "2", "old")
    server.on[head("src", "1")] = server.on[head("dst", "1")] = digest(ONE)
    server.on[head("src", "2")] = digest(TWO)
    server.on[head("dst", "2")] = [digest(ONE), digest(TWO)]
    server.on[head("dst", "old")] = digest(ONE)
    server.on[PROMOTE] = Reply(200)
    plan, _ignored = server.run(DockerPromoteOperation, options(all_tags=True))
    assert plan.before == {"dst/team/app:1": ONE, "dst/team/app:2": ONE}
    assert plan.after == {"dst/team/app:1": ONE, "dst/team/app:2": TWO}
    assert len(server.warnings) == 2
    assert "tag" not in server.bodies(PROMOTE)[0]
    plan, _ignored = server.run(DockerPromoteOperation, options(all_tags=True))
    assert not plan.changed


def test_image_without_tags_cannot_be_promoted(server: Server) -> None:
    server.on["GET /api/docker/src/v2/team/app/tags/list?n=1000"] = Reply(body={"tags": None})
    for copy in (True, False):
        error = server.fails(DockerPromoteOperation, options(all_tags=True, copy=copy))
        assert error.kind == "not_found"
        assert "has no tags" in error.message


def test_only_missing_tags_of_a_list_are_promoted(server: Server) -> None:
    """Verify that existing tags are not sent again, and every other tag is sent separately."""
    for tag, source, target in (("1", ONE, ONE), ("2", TWO, ONE), ("3", ONE, None)):
        server.on[head("src", tag)] = digest(source)
        there = Reply(404) if target is None else digest(target)
        server.on[head("dst", tag)] = [there, digest(source)]
    server.on[PROMOTE] = Reply(200, "Promotion ended successfully")
    wanted = options(tags=["1", "2", "3", "2"])
    plan, predicted = server.run(DockerPromoteOperation, wanted, check=True)
    assert PROMOTE not in server.asked
    server.on[head("dst", "2")] = [digest(ONE), digest(TWO)]
    server.on[head("dst", "3")] = [Reply(404), digest(ONE)]
    server.warnings.clear()
    plan, values = server.run(DockerPromoteOperation, wanted)
    assert plan.before == {"dst/team/app:2": ONE}
    assert plan.after == {"dst/team/app:2": TWO, "dst/team/app:3": ONE}
    assert server.warnings == [f"the promotion overwrites 'dst/team/app:2', which has {ONE}"]
    assert values["tags"] == [
        shown("1", "unchanged"),
        shown("2", "promoted", TWO, TWO),
        shown("3", "promoted"),
    ]
    assert predicted == {**values, "message": ""}
    assert values["message"] == "Promotion ended successfully"
    assert (values["source_digest"], values["target_digest"]) == (None, None)
    assert sorted(body["tag"] for body in server.bodies(PROMOTE)) == ["2", "3"]
    plan, _values = server.run(DockerPromoteOperation, wanted)
    assert not plan.changed


def test_failed_tag_does_not_stop_the_others(server: Server) -> None:
    for tag in ("1", "2", "3"):
        server.on[head("src", tag)] = digest(ONE)
        server.on[head("dst", tag)] = [Reply(404), digest(ONE)]

    def promote(seen: Seen) -> Reply:
        refused = json.loads(seen.body)["tag"] in ("1", "3")
        return Reply(403, "no right to do so") if refused else Reply(200, "ok")

    server.on[PROMOTE] = promote
    error = server.fails(DockerPromoteOperation, options(tags=["1", "2", "3"]))
    assert error.kind == "permission"
    assert error.message.startswith("2 of 3 tags failed, the first: promoting 'src/team/app:1'")
    entries = error.result["tags"]
    assert [entry["action"] for entry in entries] == ["failed", "promoted", "failed"]
    assert all("no right to do so" in entries[index]["error"] for index in (0, 2))
    assert "src/team/app:3" in entries[2]["error"]


def test_missing_tags_are_reported_before_any_promotion(server: Server) -> None:
    server.on[head("src", "1")] = digest(ONE)
    server.on[head("dst", "3")] = digest(ONE)
    error = server.fails(DockerPromoteOperation, options(tags=["1", "2", "3"]))
    assert error.kind == "not_found"
    assert "'src/team/app:2', 'src/team/app:3'" in error.message
    assert [tag["action"] for tag in error.result["tags"]] == ["unchanged", "failed", "failed"]
    assert PROMOTE not in server.asked


def test_empty_list_of_tags_promotes_nothing(server: Server) -> None:
    plan, values = server.run(DockerPromoteOperation, options(tags=[]))
    assert not plan.changed
    assert values["tags"] == []
    assert server.asked == []


def test_tags_of_a_list_are_compared_without_digests(server: Server) -> None:
    server.dialect = "generic"
    listing = "GET /api/container/{}/v2/team/app/tags/list?n=1000"
    server.on[listing.format("src")] = tags("1", "2")
    server.on[listing.format("dst")] = [tags("1"), tags("1", "2")]
    server.on["POST /api/container/src/v2/promote"] = Reply(200, "ok")
    plan, values = server.run(DockerPromoteOperation, options(tags=["1", "2"]))
    assert plan.changed
    assert [tag["action"] for tag in values["tags"]] == ["unchanged", "promoted"]


def test_lost_response_is_verified(server: Server) -> None:
    server.on[head("src", "1")] = digest(ONE)
    server.on[head("dst", "1")] = [Reply(404), digest(ONE)]
    server.on[PROMOTE] = Reply(cut=True)
    plan, values = server.run(DockerPromoteOperation, options(tag="1"))
    assert plan.changed
    assert values["target_digest"] == ONE
    assert server.asked.count(PROMOTE) == 1
    server.on[head("dst", "1")] = Reply(404)
    assert server.fails(DockerPromoteOperation, options(tag="1")).outcome_unknown


def test_promotion_without_effect_is_an_error(server: Server) -> None:
    server.on[head("src", "1")] = digest(ONE)
    server.on[head("dst", "1")] = digest(TWO)
    server.on[PROMOTE] = Reply(200, "fine")
    error = server.fails(DockerPromoteOperation, options(tag="1"))
    assert error.kind == "failed"
    assert "dst/team/app:1" in error.message


@pytest.mark.parametrize(
    ("response", "message"), [('"Promotion ended"', "Promotion ended"), ("null", ""), ("ok ", "ok")]
)
def test_message_of_server_is_returned(server: Server, response: str, message: str) -> None:
    server.on[head("src", "1")] = digest(ONE)
    server.on[head("dst", "1")] = [Reply(404), digest(ONE)]
    server.on[PROMOTE] = Reply(200, response)
    _ignored, values = server.run(DockerPromoteOperation, options(tag="1"))
    assert values["message"] == message


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        ('{"errors": [{"message": "no"}]}', "rejected"),
        ('{"messages": [{"level": "ERROR", "message": "no"}]}', "rejected"),
        ("<html><body>Welcome</body></html>", "protocol"),
        ('<html><form><input type="password"></form></html>', "auth"),
    ],
)
def test_error_in_a_200_is_an_error(server: Server, response: str, kind: str) -> None:
    server.on[head("src", "1")] = server.on[head("dst", "1")] = digest(ONE)
    server.on[PROMOTE] = Reply(200, response)
    assert server.fails(DockerPromoteOperation, options(tag="1", force=True)).kind == kind


@pytest.mark.parametrize("status", [400, 405, 406, 501])
def test_server_without_digests_is_compared_by_tags(server: Server, status: int) -> None:
    server.on[head("src", "1")] = server.on[head("dst", "1")] = Reply(status)
    server.on["GET /api/docker/src/v2/team/app/tags/list?n=1000"] = tags("1")
    server.on["GET /api/docker/dst/v2/team/app/tags/list?n=1000"] = tags("1")
    plan, values = server.run(DockerPromoteOperation, options(tag="1"))
    assert not plan.changed
    assert values["target_digest"] is None


def test_empty_404_is_explained(server: Server) -> None:
    server.on[head("src", "1")] = digest(ONE)
    server.on[PROMOTE] = Reply(404)
    error = server.fails(DockerPromoteOperation, options(tag="1"))
    assert error.kind == "not_found"
    assert "a repository is missing" in error.message


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"tag": "1", "all_tags": True},
        {"tag": "1", "tags": ["2"]},
        {"tags": ["1"], "all_tags": True},
        {"tags": ["1", " "]},
        {"tags": ["1", ".."]},
        {"tag": "1", "target_tag": "/2"},
        {"tags": ["1"], "target_tag": "2"},
        {"tags": ["1"], "target_repo": "src"},
        {"tag": ""},
        {"all_tags": True, "target_tag": "2"},
        {"tag": "1", "target_repo": "src"},
        {"tag": "1", "target_tag": "1", "target_repo": "src"},
        {"all_tags": True, "target_repo": "src"},
        {"tag": "1", "image": "/"},
        {"tag": "1", "image": "a/../b"},
        {"tag": "1", "repo": "a/b"},
    ],
)
def test_contradictory_options_are_rejected_before_any_request(
    server: Server, given: dict[str, Any]
) -> None:
    assert server.fails(DockerPromoteOperation, options(**given)).kind == "invalid"
    assert server.asked == []
