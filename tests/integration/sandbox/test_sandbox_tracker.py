# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the sandbox's issue tracker with third-party clients."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import requests
from atlassian import Jira
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from jira import JIRA, JIRAError
from oauthlib.oauth1 import SIGNATURE_RSA_SHA1
from requests_oauthlib import OAuth1

from sandbox.client import Sandbox
from tests.helpers import in_process

LOGIN = ("reporter", "reporter-password")
TOKEN = "tracker-token-1234567890"
SEARCH = "/rest/api/2/search"
CLOUD_SEARCH = "/rest/api/3/search/jql"


@pytest.fixture
def client(sandbox: Sandbox) -> Any:
    return JIRA(sandbox.urls["tracker"], basic_auth=LOGIN, max_retries=0)


def get(sandbox: Sandbox, path: str, **query: Any) -> requests.Response:
    address = sandbox.urls["tracker"] + path
    return requests.get(address, params=query, auth=LOGIN, timeout=10)


def post(sandbox: Sandbox, path: str, members: dict[str, Any]) -> requests.Response:
    return requests.post(sandbox.urls["tracker"] + path, json=members, auth=LOGIN, timeout=10)


def keys(response: requests.Response) -> list[str]:
    assert response.status_code == 200, response.text
    return [issue["key"] for issue in response.json()["issues"]]


# -- the client `jira` ---------------------------------------------------------------------------


def test_jira_walks_all_pages(client: Any, sandbox: Sandbox) -> None:
    found = client.search_issues("project = OPS ORDER BY key", maxResults=False)

    assert [issue.key for issue in found] == [f"OPS-{number}" for number in range(1, 131)]
    pages = [entry for entry in sandbox.requests("tracker") if entry["path"] == SEARCH]
    assert len(pages) == 2
    assert not any(entry["write"] for entry in sandbox.requests("tracker"))


def test_jira_searches_by_post(client: Any, sandbox: Sandbox) -> None:
    found = client.search_issues("fixVersion = 2.0.0 ORDER BY key", use_post=True)

    assert [issue.key for issue in found] == ["REL-19", "REL-20", "REL-21", "REL-24"]
    assert found.total == 4
    assert sandbox.requests("tracker")[-1]["method"] == "POST"
    assert not sandbox.requests("tracker", writes=True)


def test_jira_reads_an_issue_and_its_attachments(client: Any) -> None:
    issue = client.issue("REL-2", fields="summary,attachment")

    assert issue.fields.summary == "Upload breaks off when a name contains `<` or `>`"
    assert not hasattr(issue.fields, "status")
    names = [attachment.filename for attachment in issue.fields.attachment]
    assert names == ["server log.txt", "server log.txt", "größe & maß.csv"]
    contents = [attachment.get() for attachment in issue.fields.attachment]
    assert contents[2] == b"a;b\n1;2\n"
    assert [len(content) for content in contents] == [
        attachment.size for attachment in issue.fields.attachment
    ]


def test_jira_reads_projects(client: Any) -> None:
    assert [project.key for project in client.projects()] == ["OPS", "REL"]
    project = client.project("REL")
    assert project.name == "Releases"
    assert [version.name for version in project.versions] == ["1.0.0", "1.1.0", "2.0.0"]


def test_jira_finds_users(client: Any) -> None:
    assert client.user("alice").emailAddress == "alice@example.com"
    assert [user.name for user in client.search_users("alice@example.com")] == ["alice"]
    assert client.search_users("nobody@example.com") == []


def test_jira_gets_the_error_messages(client: Any) -> None:
    with pytest.raises(JIRAError) as missing:
        client.issue("REL-999")
    assert (missing.value.status_code, missing.value.text) == (404, "Issue Does Not Exist")
    with pytest.raises(JIRAError) as unknown:
        client.search_issues("project = NOPE")
    assert unknown.value.status_code == 400
    assert unknown.value.text == "The value 'NOPE' does not exist for the field 'project'."


def test_jira_logs_in_with_a_token(sandbox: Sandbox) -> None:
    assert len(JIRA(sandbox.urls["tracker"], token_auth=TOKEN).projects()) == 2
    with pytest.raises(JIRAError) as refused:
        JIRA(sandbox.urls["tracker"], token_auth="wrong", max_retries=0)
    assert refused.value.status_code == 401


def test_jira_signs_with_a_key_of_the_module(sandbox: Sandbox, tmp_path: Path) -> None:
    files = {"private_key": tmp_path / "consumer.pem", "certificate": tmp_path / "consumer.crt"}
    made = in_process.run(
        "oauth_consumer",
        {"common_name": "toolchain", **{name: str(path) for name, path in files.items()}},
    )
    oauth = {
        "access_token": "tracker-access-token",
        "access_token_secret": "",
        "consumer_key": "toolchain",
        "key_cert": files["private_key"].read_text(encoding="utf-8"),
        "signature_method": SIGNATURE_RSA_SHA1,
    }
    with pytest.raises(JIRAError) as refused:
        JIRA(sandbox.urls["tracker"], oauth=oauth, max_retries=0)
    assert "oauth_problem=consumer_key_unknown" in str(refused.value)

    sandbox.settings("tracker", oauth_public_key=made["consumer"]["public_key"])
    signed = JIRA(sandbox.urls["tracker"], oauth=oauth, max_retries=0)
    assert [issue.key for issue in signed.search_issues('summary ~ "crumb exchange"')] == ["REL-21"]

    with pytest.raises(JIRAError) as rejected:
        JIRA(
            sandbox.urls["tracker"],
            oauth={**oauth, "access_token": "another"},
            max_retries=0,
        )
    assert "oauth_problem=token_rejected" in str(rejected.value)


def test_signed_request_is_accepted_once_and_unchanged(sandbox: Sandbox) -> None:
    private_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private = private_key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    public = private_key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    sandbox.settings("tracker", oauth_public_key=public.decode())
    signer = OAuth1(
        "toolchain",
        rsa_key=private.decode(),
        resource_owner_key="tracker-access-token",
        signature_method=SIGNATURE_RSA_SHA1,
    )
    query = {"jql": 'summary ~ "R&D" and labels = properties', "maxResults": "5"}
    address = sandbox.urls["tracker"] + SEARCH
    with requests.Session() as session:
        signed = session.prepare_request(requests.Request("GET", address, params=query))
        signer(signed)
        assert keys(session.send(signed)) == ["REL-3"]
        again = session.send(signed)
        assert (again.status_code, again.text) == (401, "oauth_problem=nonce_used")
        changed = session.prepare_request(requests.Request("GET", address, params=query))
        signer(changed)
        assert changed.url is not None
        changed.url = changed.url.replace("maxResults=5", "maxResults=6")
        forged = session.send(changed)
        assert (forged.status_code, forged.text) == (401, "oauth_problem=signature_invalid")


def test_jira_follows_the_cloud_to_its_new_search(sandbox: Sandbox) -> None:
    sandbox.settings("tracker", deployment="Cloud")
    client = JIRA(sandbox.urls["tracker"], basic_auth=LOGIN, max_retries=0)

    found = client.search_issues("project = OPS ORDER BY key", maxResults=False)

    assert [issue.key for issue in found] == [f"OPS-{number}" for number in range(1, 131)]


# -- the client `atlassian-python-api` -----------------------------------------------------------


def test_atlassian_searches_and_reads(sandbox: Sandbox) -> None:
    client: Any = Jira(sandbox.urls["tracker"], username=LOGIN[0], password=LOGIN[1], cloud=False)

    page = client.jql("project = REL ORDER BY key DESC", limit=3, start=1, fields=["summary"])

    assert [issue["key"] for issue in page["issues"]] == ["REL-24", "REL-23", "REL-22"]
    assert (page["total"], page["startAt"], page["maxResults"]) == (25, 1, 3)
    assert client.issue("REL-10")["fields"]["summary"] == "日本語のファイル名が壊れる"
    assert {project["key"] for project in client.projects()} == {"OPS", "REL"}


# -- queries -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("jql", "expected"),
    [
        ("key in (REL-3, REL-1) ORDER BY key", ["REL-1", "REL-3"]),
        ("issue = OLD-1", ["REL-1"]),
        ("PROJECT = releases AND key > REL-23 order by KEY desc", ["REL-25", "REL-24"]),
        (
            "project=REL and resolution is empty and type = Story order by key",
            ["REL-15", "REL-19", "REL-23"],
        ),
        ("project = REL AND resolution = Unresolved AND assignee = boris", ["REL-21"]),
        ("resolution != Fixed and status = Done and type = Bug order by key", ["REL-7", "REL-25"]),
        ("labels = unicode and labels not in (deploy)", ["REL-13"]),
        ("fixVersion is empty and project = REL order by key", ["REL-22", "REL-23", "REL-25"]),
        (
            "NOT (status = Done OR status = Open) and project = REL order by key",
            ["REL-15", "REL-16", "REL-24"],
        ),
        ('summary ~ \'broken\' or summary ~ "\\"time zone\\""', ["REL-22"]),
        ("text ~ 'handb*'", ["REL-1"]),
        ('assignee = "chlo\\u00e9" and labels = wiki', ["REL-16"]),
        ("project = REL and updated >= 2026-04-24 order by updated desc", ["REL-25", "REL-24"]),
        ("project = REL and created < '2026/01/06 10:14'", ["REL-1"]),
        ("updated > -1d and created > now()", []),
        (
            "project = REL and status in (Done) && type = Task order by assignee, key desc",
            ["REL-9", "REL-4", "REL-14"],
        ),
    ],
)
def test_query_finds_issues(sandbox: Sandbox, jql: str, expected: list[str]) -> None:
    assert keys(get(sandbox, SEARCH, jql=jql, fields="summary")) == expected


@pytest.mark.parametrize(
    ("jql", "words"),
    [
        ("project =", "(line 1, character 10)"),
        ("project REL", "Expecting operator but got 'REL'."),
        ('status = "Done', "The quoted string 'Done' has not been completed."),
        ("assignee = a@b", "'@' is a reserved JQL character"),
        ("summary ~ order", "'order' is a reserved JQL word"),
        ("project = REL order key", "Expecting either 'OR' or 'AND' but got 'order'."),
        ("(project = REL", "Expecting ')'"),
        ('summary ~ "a\\q"', "illegal JQL escape sequence"),
    ],
)
def test_malformed_query_is_rejected(sandbox: Sandbox, jql: str, words: str) -> None:
    for validate in ("strict", "none"):
        response = get(sandbox, SEARCH, jql=jql, validateQuery=validate)
        assert response.status_code == 400
        assert response.json()["errors"] == {}
        message = response.json()["errorMessages"][0]
        assert message.startswith("Error in the JQL Query: ")
        assert words in message


@pytest.mark.parametrize(
    ("jql", "words"),
    [
        ("colour = red", "Field 'colour' does not exist"),
        ("status = Dun", "The value 'Dun' does not exist for the field 'status'."),
        ("key = REL-999", "An issue with key 'REL-999' does not exist for field 'key'."),
        ("project ~ REL", "The operator '~' is not supported by the 'project' field."),
        ("created > yesterday", "Date value 'yesterday' for field 'created' is invalid."),
        ("summary ~ '*x'", "not allowed to start with character '*'"),
        ("assignee = nobody()", "Unable to find JQL function 'nobody()'."),
        ("project = REL order by colour", "Not able to sort using field 'colour'"),
    ],
)
def test_query_with_unknown_names_is_rejected_or_gives_warnings(
    sandbox: Sandbox, jql: str, words: str
) -> None:
    strict = get(sandbox, SEARCH, jql=jql)
    assert strict.status_code == 400
    assert "errors" not in strict.json()
    assert words in strict.json()["errorMessages"][0]

    lenient = get(sandbox, SEARCH, jql=jql, validateQuery="warn")
    assert lenient.status_code == 200
    assert words in lenient.json()["warningMessages"][0]
    assert "warningMessages" not in get(sandbox, SEARCH, jql=jql, validateQuery="none").json()


# -- pages ---------------------------------------------------------------------------------------


def test_server_limits_the_page(sandbox: Sandbox) -> None:
    assert get(sandbox, SEARCH, jql="").json()["maxResults"] == 50
    sandbox.settings("tracker", max_page=20)

    page = get(sandbox, SEARCH, jql="", maxResults=100).json()

    assert (len(page["issues"]), page["maxResults"], page["total"]) == (20, 20, 155)
    assert get(sandbox, SEARCH, jql="", maxResults=0).json()["issues"] == []


def test_order_is_stable_only_if_unique(sandbox: Sandbox) -> None:
    sandbox.settings("tracker", unstable_order=True)
    runs = [keys(get(sandbox, SEARCH, jql="project = OPS ORDER BY status")) for _run in range(3)]
    assert len({tuple(run) for run in runs}) > 1
    jql = "project = OPS ORDER BY status, key"
    assert keys(get(sandbox, SEARCH, jql=jql)) == keys(get(sandbox, SEARCH, jql=jql))


def test_result_window_is_limited(sandbox: Sandbox) -> None:
    response = get(sandbox, SEARCH, jql="", startAt=9990, maxResults=50)
    assert response.status_code == 500
    assert response.headers["content-type"].startswith("application/xml")
    assert "Search limit exceeded" in response.text


def test_long_query_needs_post(sandbox: Sandbox) -> None:
    jql = "key in (" + ", ".join(f"OPS-{number}" for number in range(1, 131)) + ")"
    jql += " or summary ~ '" + "x" * 8000 + "'"
    refused = get(sandbox, SEARCH, jql=jql)
    assert refused.status_code == 414
    assert refused.headers["content-type"].startswith("text/html")
    assert post(sandbox, SEARCH, {"jql": jql, "maxResults": 0}).json()["total"] == 130


def test_post_with_unknown_members_is_rejected(sandbox: Sandbox) -> None:
    body = {"jql": "key = REL-1", "fields": ["summary"], "fieldsByKeys": True}
    assert keys(post(sandbox, SEARCH, body)) == ["REL-1"]
    sandbox.settings("tracker", unrecognized=["fieldsByKeys"])
    refused = post(sandbox, SEARCH, body)
    assert refused.status_code == 400
    assert 'Unrecognized field "fieldsByKeys"' in refused.json()["errorMessages"][0]


def test_search_returns_requested_fields(sandbox: Sandbox) -> None:
    query = {"jql": "key = REL-1", "fields": "*all,-comment", "expand": "names,schema"}
    response = get(sandbox, SEARCH, **query, properties="release").json()
    fields = response["issues"][0]["fields"]
    assert "attachment" in fields
    assert "comment" not in fields
    assert response["issues"][0]["properties"] == {"release": {"train": "spring", "weight": 3}}
    assert response["names"]["issuetype"] == "Issue Type"
    assert response["schema"]["labels"]["type"] == "array"
    default = get(sandbox, SEARCH, jql="key = REL-1").json()["issues"][0]["fields"]
    assert "attachment" not in default
    assert default["status"]["statusCategory"]["key"] == "done"


def test_cloud_search_is_paged_by_token(sandbox: Sandbox) -> None:
    sandbox.settings("tracker", deployment="Cloud")
    gone = get(sandbox, SEARCH, jql="project = OPS")
    assert gone.status_code == 410
    assert "/rest/api/3/search/jql" in gone.json()["errorMessages"][0]

    first = get(sandbox, CLOUD_SEARCH, jql="project = OPS", maxResults=500).json()
    assert set(first) == {"issues", "nextPageToken", "isLast"}
    assert len(first["issues"]) == 100
    assert set(first["issues"][0]) == {"id"}
    following = {"jql": "project = OPS", "nextPageToken": first["nextPageToken"]}
    last = post(sandbox, CLOUD_SEARCH, {**following, "fields": ["key"]}).json()
    assert (len(last["issues"]), last["isLast"], "nextPageToken" in last) == (30, True, False)
    other = {"jql": "project = REL", "nextPageToken": first["nextPageToken"]}
    assert post(sandbox, CLOUD_SEARCH, other).status_code == 400
    assert get(sandbox, CLOUD_SEARCH, jql="ORDER BY key").status_code == 400


# -- login ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "status", "pattern"),
    [
        ("html", 401, "<html>.*"),
        ("text", 401, "Basic Authentication Failure.*"),
        ("json", 401, "{.*"),
        ("empty", 200, ""),
    ],
)
def test_wrong_login_is_rejected(sandbox: Sandbox, shape: str, status: int, pattern: str) -> None:
    sandbox.settings("tracker", refusal=shape)
    address = sandbox.urls["tracker"] + "/rest/api/2/project"
    response = requests.get(address, auth=("reporter", "wrong"), timeout=10)
    assert response.status_code == status
    assert re.fullmatch(pattern, response.text, re.DOTALL)
    assert response.headers["X-Seraph-LoginReason"] == "AUTHENTICATED_FAILED"


def test_wrong_login_may_count_as_anonymous(sandbox: Sandbox) -> None:
    sandbox.settings("tracker", anonymous_on_bad_login=True)
    base = sandbox.urls["tracker"]
    wrong = ("reporter", "wrong")
    projects = requests.get(base + "/rest/api/2/project", auth=wrong, timeout=10)
    assert (projects.status_code, projects.json()) == (200, [])
    assert projects.headers["X-Seraph-LoginReason"] == "AUTHENTICATED_FAILED"
    assert projects.headers["X-AUSERNAME"] == "anonymous"
    query = {"jql": "project = REL"}
    assert requests.get(base + SEARCH, params=query, auth=wrong, timeout=10).status_code == 400
    issue = requests.get(base + "/rest/api/2/issue/REL-1", auth=wrong, timeout=10)
    assert issue.status_code == 401
    assert "Login Required" in issue.json()["errorMessages"]


def test_captcha_rejects_the_correct_password(sandbox: Sandbox) -> None:
    sandbox.settings("tracker", captcha=True)
    response = get(sandbox, "/rest/api/2/project")
    assert response.status_code == 403
    assert response.headers["X-Seraph-LoginReason"] == "AUTHENTICATION_DENIED"
    assert response.headers["X-Authentication-Denied-Reason"].startswith("CAPTCHA_CHALLENGE")


def test_responses_name_the_account(sandbox: Sandbox) -> None:
    response = get(sandbox, "/rest/api/2/serverInfo")
    assert response.json()["deploymentType"] == "Server"
    assert response.headers["X-AUSERNAME"] == "reporter"
    assert response.headers["X-AREQUESTID"]


# -- attachments ---------------------------------------------------------------------------------


def attachments(client: Any) -> list[Any]:
    found: list[Any] = client.issue("REL-2", fields="attachment").fields.attachment
    return found


def media_requests(sandbox: Sandbox) -> list[dict[str, Any]]:
    return [
        request for request in sandbox.requests("tracker") if request["path"].startswith("/media/")
    ]


def test_cloud_redirects_attachments_to_another_host(client: Any, sandbox: Sandbox) -> None:
    sandbox.settings("tracker", deployment="Cloud")
    first = attachments(client)[0]
    assert first.content.endswith("/rest/api/2/attachment/content/501")

    assert first.get() == b"12:00 upload\n12:01 broken pipe\n"

    (sent,) = media_requests(sandbox)
    assert "authorization" not in sent["headers"]
    assert sent["query"].startswith("token=")
    direct = get(sandbox, "/rest/api/2/attachment/content/501", redirect="false")
    assert direct.content == first.get()
    part = requests.get(first.content, auth=LOGIN, headers={"Range": "bytes=6-11"}, timeout=10)
    assert (part.status_code, part.content) == (206, b"upload")


def test_signed_address_is_valid_for_one_attachment(sandbox: Sandbox) -> None:
    sandbox.settings("tracker", deployment="Cloud")
    address = sandbox.urls["tracker"] + "/rest/api/3/attachment/content/501"
    handed = requests.get(address, auth=LOGIN, allow_redirects=False, timeout=10)
    assert handed.status_code == 303
    signed = handed.headers["Location"]
    assert urlsplit(signed).hostname == "localhost"
    assert requests.get(signed, timeout=10).status_code == 200
    for forged in (signed.replace("/501", "/502"), signed + "0", signed.partition("?")[0]):
        assert requests.get(forged, timeout=10).status_code == 403
    anonymous = requests.get(address, allow_redirects=False, timeout=10)
    assert anonymous.status_code == 401


def test_old_server_redirects_a_token_to_the_login_page(sandbox: Sandbox) -> None:
    sandbox.settings("tracker", attachment_logins=["basic"])
    by_token = JIRA(sandbox.urls["tracker"], token_auth=TOKEN, max_retries=0)
    first = attachments(by_token)[0]

    assert b'type="password"' in first.get()  # the client returns the login page as the attachment

    bearer = {"Authorization": f"Bearer {TOKEN}"}
    refused = requests.get(first.content, headers=bearer, allow_redirects=False, timeout=10)
    assert refused.status_code == 302
    assert "/login.jsp?" in refused.headers["Location"]
    assert len(requests.get(first.content, auth=LOGIN, timeout=10).content) == first.size


def test_wrong_login_is_redirected_to_the_login_page(sandbox: Sandbox) -> None:
    sandbox.settings("tracker", anonymous_on_bad_login=True)
    address = sandbox.urls["tracker"] + "/secure/attachment/501/server%20log.txt"
    refused = requests.get(address, auth=("a", "b"), allow_redirects=False, timeout=10)
    assert (refused.status_code, refused.headers["X-AUSERNAME"]) == (302, "anonymous")


def test_names_have_the_language_of_the_account_unless_forced(sandbox: Sandbox) -> None:
    sandbox.settings("tracker", account_language="de")
    languages = {"X-Force-Accept-Language": "true", "Accept-Language": "en"}
    for headers, expected in (({}, "Fertig"), (languages, "Done")):
        own: Any = JIRA(sandbox.urls["tracker"], basic_auth=LOGIN, options={"headers": headers})
        assert own.issue("REL-2").fields.status.name == expected
    assert keys(get(sandbox, SEARCH, jql="key = REL-2 AND status = Done")) == ["REL-2"]


def test_cloud_lists_projects_by_page(sandbox: Sandbox) -> None:
    assert get(sandbox, "/rest/api/2/project/search").status_code == 404
    sandbox.settings("tracker", deployment="Cloud")
    page = get(sandbox, "/rest/api/2/project/search", startAt=1, maxResults=1).json()
    assert [project["key"] for project in page["values"]] == ["REL"]
    assert (page["total"], page["isLast"]) == (2, True)


# -- the written interface -----------------------------------------------------------------------


def test_documented_flavour_has_only_documented_routes(sandbox: Sandbox) -> None:
    sandbox.settings("tracker", flavour="written")

    found = get(sandbox, SEARCH, jql="key = REL-2").json()
    assert set(found) == {"issues"}
    issue = found["issues"][0]
    assert set(issue) == {"key", "fields"}
    assert issue["fields"]["status"] == {"name": "Done"}
    assert set(issue["fields"]) == {
        *("summary", "status", "issuetype", "updated", "created", "attachment")
    }
    attachment = issue["fields"]["attachment"][2]
    assert set(attachment) == {"id", "content"}
    assert requests.get(attachment["content"], auth=LOGIN, timeout=10).content == b"a;b\n1;2\n"
    only = get(sandbox, "/rest/api/2/issue/REL-2", fields="summary").json()
    assert set(only["fields"]) == {"summary"}
    assert get(sandbox, "/rest/api/2/project").json()[0] == {"key": "OPS", "name": " Operations"}
    for path in (
        "/rest/api/2/serverInfo",
        "/rest/api/2/project/REL",
        "/login.jsp",
        "/media/file/501",
        CLOUD_SEARCH,
    ):
        assert get(sandbox, path).status_code == 404
    assert post(sandbox, SEARCH, {"jql": ""}).status_code == 404
    assert "X-AUSERNAME" not in get(sandbox, "/rest/api/2/project").headers
