# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the framework of the sandbox: store, log, faults, control interface, process."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from base64 import b64encode
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
import requests

from sandbox import __main__
from sandbox.app import build_app
from sandbox.client import Sandbox
from sandbox.faults import Faults
from sandbox.log import KEPT, Entry, Log, mask, mask_headers
from sandbox.store import Blob, Store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, MutableMapping

ROOT = Path(__file__).parents[3]
LOGIN = ("deployer", "deployer-password")
FILE = "/generic-staging-local/a.txt"


@pytest.fixture
def sandbox(fresh: Callable[[str], Sandbox]) -> Sandbox:
    return fresh("real")


@pytest.fixture
def session() -> Iterator[requests.Session]:
    with requests.Session() as session:
        session.trust_env = False
        session.auth = LOGIN
        yield session


# --- store ----------------------------------------------------------------------------------------


@pytest.fixture(params=["memory", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    store = Store(None if request.param == "memory" else str(tmp_path / "state.db"))
    yield store
    store.close()


def test_documents_are_stored_by_kind_and_key(store: Store) -> None:
    store.put("a.x", "p/1", {"n": 1})
    store.put("a.x", "p/2", {"n": 2})
    store.put("a.x", "q", {"n": 3})
    store.put("a.y", "p/1", {"n": 4})
    assert store.get("a.x", "p/1") == {"n": 1}
    assert store.get("a.x", "p/3") is None
    assert store.keys("a.x") == ["p/1", "p/2", "q"]
    assert store.items("a.x", "p/") == [("p/1", {"n": 1}), ("p/2", {"n": 2})]
    assert store.values("a.x", "p/") == [{"n": 1}, {"n": 2}]
    store.put("a.x", "p/1", {"n": 5})
    assert store.get("a.x", "p/1") == {"n": 5}
    assert store.delete("a.x", "p/1")
    assert not store.delete("a.x", "p/1")
    assert store.get("a.y", "p/1") == {"n": 4}


def test_documents_are_found_by_mentioned_values(store: Store) -> None:
    documents: list[dict[str, Any]] = [
        {"user": 'a "b"\\é'},
        {'a "b"\\é': 1},
        {"user": 'x a "b"\\é'},
        {"user": "é"},
    ]
    for number, document in enumerate(documents):
        store.put("a.x", str(number), document)
    store.put("a.y", "4", documents[0])
    assert store.mentioning("a.x", 'a "b"\\é') == [("0", documents[0]), ("1", documents[1])]


def test_returned_document_is_a_copy(store: Store) -> None:
    store.put("a.x", "1", {"list": []})
    first = store.get("a.x", "1")
    assert first is not None
    first["list"].append("changed")
    assert store.get("a.x", "1") == {"list": []}


def test_failed_transaction_changes_nothing(store: Store) -> None:
    def fail() -> None:
        with store.transaction():
            store.put("a.x", "1", {})
            with store.transaction():
                store.put("a.x", "2", {})
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert store.keys("a.x") == []


def test_clear_removes_everything(store: Store) -> None:
    blob = store.blobs.put(b"content")
    store.put("a.x", "1", {})
    store.next_id("n")
    store.clear()
    assert store.is_empty()
    assert not store.blobs.path(blob.sha256).exists()
    assert store.next_id("n") == 1


def test_snapshot_is_restored(store: Store) -> None:
    seeded = store.blobs.put(b"content")
    store.put("a.x", "1", {"n": 1})
    store.next_id("n")
    snapshot = store.snapshot()
    later = store.blobs.put(b"other content")
    store.put("a.x", "1", {"n": 2})
    store.put("a.x", "2", {})
    store.next_id("n")
    store.restore(snapshot)
    assert store.items("a.x") == [("1", {"n": 1})]
    assert store.next_id("n") == 2
    assert store.blobs.read(seeded.sha256) == b"content"
    assert not store.blobs.path(later.sha256).exists()


def test_state_survives_a_restart(tmp_path: Path) -> None:
    path = str(tmp_path / "state.db")
    first = Store(path)
    first.put("a.x", "1", {"n": 1})
    assert [first.next_id("n"), first.next_id("n")] == [1, 2]
    blob = first.blobs.put(b"content")
    first.close()
    second = Store(path)
    assert not second.is_empty()
    assert second.get("a.x", "1") == {"n": 1}
    assert second.next_id("n") == 3
    assert second.blobs.read(blob.sha256) == b"content"
    second.close()


def run_stream(store: Store, chunks: AsyncIterator[bytes]) -> Blob:
    import asyncio

    return asyncio.run(store.blobs.put_stream(chunks))


def test_stream_is_stored_like_bytes(store: Store) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        yield b"con"
        yield b"tent"

    assert run_stream(store, chunks()) == store.blobs.put(b"content")
    assert store.blobs.put(b"").size == 0


def test_broken_stream_leaves_no_file(tmp_path: Path) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"con"
        raise OSError("gone")

    store = Store(str(tmp_path / "state.db"))
    with pytest.raises(OSError, match="gone"):
        run_stream(store, broken())
    assert list((tmp_path / "state.db.blobs").iterdir()) == []
    store.close()


# --- log and faults, without a server -------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("user=a&ltoken=secret&x=1", "user=a&ltoken=***&x=1"),
        ("password=secret", "password=***"),
        ("sourcePassword=s%26e", "sourcePassword=***"),
        ('{"password": "se\\"cret", "name": "a"}', '{"password": "***", "name": "a"}'),
        ("name=password", "name=password"),
    ],
)
def test_secrets_are_masked(text: str, shown: str) -> None:
    assert mask(text) == shown


def test_credentials_in_headers_are_masked() -> None:
    headers = [
        (b"Authorization", b"Basic c2VjcmV0"),
        (b"X-Vendor-Art-Api", b"s"),
        (b"Accept", b"a"),
    ]
    assert mask_headers(headers) == {
        "authorization": "Basic ***",
        "x-vendor-art-api": "***",
        "accept": "a",
    }


def test_faults_apply_in_order_and_are_used_up() -> None:
    faults = Faults()
    faults.add({"service": "repo", "method": "PUT", "path": "^/a", "status": 500})
    faults.add({"service": "repo", "match": "name=x", "status": 501, "times": 2})
    assert faults.take("ci", "PUT", "/a", "") is None
    assert faults.take("repo", "GET", "/a", "") is None
    hits = [faults.take("repo", "PUT", "/a", "name=x") for _request in range(4)]
    assert [hit and hit.status for hit in hits] == [500, 501, 501, None]
    assert faults.pending == []


def test_fault_may_skip_requests() -> None:
    faults = Faults()
    faults.add({"service": "repo", "method": "PUT", "status": 500, "skip": 2})
    hits = [faults.take("repo", method, "/a", "") for method in ("PUT", "GET", "PUT", "PUT", "PUT")]
    assert [hit and hit.status for hit in hits] == [None, None, None, 500, None]


def test_fault_may_apply_to_writes_only() -> None:
    faults = Faults()
    faults.add({"service": "repo", "write": True, "status": 500})
    hits = [faults.take("repo", "POST", "/a", "", write=write) for write in (False, True, True)]
    assert [hit and hit.status for hit in hits] == [None, 500, None]


def test_log_keeps_the_newest_requests_and_counts_the_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sandbox.log.KEPT", 3)
    log = Log()
    for number in range(1, 4):
        log.add(Entry("repo", "GET", f"/{number}", "", {}, 0))
    assert (len(log.select()), log.last, log.forgotten) == (3, 3, 0)
    log.add(Entry("wiki", "GET", "/newest", "", {}, 0, write=True))
    assert (len(log.select()), log.last, log.forgotten) == (3, 4, 1)
    assert [entry["path"] for entry in log.select(since=2)] == ["/3", "/newest"]
    assert [entry["seq"] for entry in log.select("wiki", writes=True)] == [4]
    log.clear()
    assert (log.select(), log.last, log.forgotten) == ([], 4, 0)


def test_documentation_names_the_number_of_kept_requests() -> None:
    assert f"the newest {KEPT:,} requests" in (ROOT / "docs/sandbox.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "data", [{"service": "repo", "sttaus": 1}, {}, {"service": "r", "path": "("}]
)
def test_invalid_faults_are_rejected(data: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="fault"):
        Faults().add(data)


# --- a running sandbox ----------------------------------------------------------------------------


def test_requests_are_logged_without_credentials(
    sandbox: Sandbox, session: requests.Session
) -> None:
    mark = sandbox.mark()
    session.put(sandbox.urls["repo"] + FILE, data=b"content")
    session.get(sandbox.urls["repo"] + "/api/storage/generic-staging-local/a%2Fb?x=%7C")
    session.post(sandbox.urls["repo"] + "/api/search/aql", data="items.find({})")
    put, get, query = sandbox.requests("repo", since=mark)
    assert (put["method"], put["path"], put["status"], put["write"]) == ("PUT", FILE, 201, True)
    assert (put["body"], put["body_bytes"]) == (None, 7)
    assert put["headers"]["authorization"] == "Basic ***"
    assert (get["path"], get["query"]) == ("/api/storage/generic-staging-local/a%2Fb", "x=%7C")
    assert (get["status"], get["write"], query["write"]) == (404, False, False)
    assert put["connection"] == get["connection"] > 0
    assert put["seq"] < get["seq"] < query["seq"] == sandbox.mark()
    assert [entry["seq"] for entry in sandbox.requests(writes=True)] == [put["seq"]]
    assert sandbox.requests("ci") == []


def test_text_body_is_logged(sandbox: Sandbox, session: requests.Session) -> None:
    body = {"status": "x", "password": "secret"}
    session.post(sandbox.urls["repo"] + "/api/build/promote/a/1", json=body)
    entry = sandbox.requests()[-1]
    assert json.loads(entry["body"]) == {"status": "x", "password": "***"}


def test_fault_replaces_the_response_of_the_service(
    sandbox: Sandbox, session: requests.Session
) -> None:
    sandbox.fault(service="repo", status=503, headers={"Retry-After": "1"}, body={"a": 1})
    url = sandbox.urls["repo"] + FILE
    response = session.put(url, data=b"x")
    assert (response.status_code, response.headers["Retry-After"]) == (503, "1")
    assert response.json() == {"a": 1}
    assert session.get(url).status_code == 404
    assert sandbox.pending_faults() == []


def test_redirect_fault_redirects(sandbox: Sandbox, session: requests.Session) -> None:
    sandbox.fault(service="repo", redirect="http://127.0.0.1:1/elsewhere")
    response = session.get(sandbox.urls["repo"] + FILE, allow_redirects=False)
    assert (response.status_code, response.headers["Location"]) == (
        302,
        "http://127.0.0.1:1/elsewhere",
    )


@pytest.mark.parametrize(("after", "status"), [(False, 404), (True, 200)])
def test_cut_fault_closes_the_connection(
    sandbox: Sandbox, session: requests.Session, after: bool, status: int
) -> None:
    url = sandbox.urls["repo"] + FILE
    sandbox.fault(service="repo", method="PUT", cut=True, after=after)
    with pytest.raises(requests.exceptions.ConnectionError):
        session.put(url, data=b"x")
    assert session.get(url).status_code == status
    assert sandbox.requests("repo")[0]["status"] is None


def test_lost_response_may_have_another_status(sandbox: Sandbox, session: requests.Session) -> None:
    url = sandbox.urls["repo"] + FILE
    sandbox.fault(service="repo", method="PUT", status=502, body="bad gateway", after=True)
    assert session.put(url, data=b"x").text == "bad gateway"
    assert session.get(url).content == b"x"
    put, get = sandbox.requests("repo")[-2:]
    assert (put["status"], put["served"]) == (502, 201)
    assert (get["status"], get["served"]) == (200, 200)


def test_fault_replacing_the_service_serves_nothing(
    sandbox: Sandbox, session: requests.Session
) -> None:
    url = sandbox.urls["repo"] + FILE
    sandbox.fault(service="repo", method="PUT", status=502)
    session.put(url, data=b"x")
    (put,) = sandbox.requests("repo")
    assert (put["status"], put["served"]) == (502, None)


def test_delayed_response_follows_the_completed_write(
    sandbox: Sandbox, session: requests.Session
) -> None:
    url = sandbox.urls["repo"] + FILE
    sandbox.fault(service="repo", method="PUT", late=1)
    with pytest.raises(requests.Timeout):
        session.put(url, data=b"x", timeout=(10, 0.2))
    assert session.get(url).content == b"x"


def test_truncated_response_announces_the_complete_length(
    sandbox: Sandbox, session: requests.Session
) -> None:
    url = sandbox.urls["repo"] + FILE
    session.put(url, data=b"0123456789")
    sandbox.fault(service="repo", method="GET", truncate=4)
    response = session.get(url, stream=True)
    assert (response.status_code, response.headers["Content-Length"]) == (200, "10")
    with pytest.raises(requests.exceptions.ChunkedEncodingError):
        list(response.iter_content())
    assert session.get(url).content == b"0123456789"


@pytest.mark.parametrize(("count", "lines"), [(0, 1), (1, 2), (-1, 5)])
def test_cut_head_fault_truncates_the_head(
    sandbox: Sandbox, session: requests.Session, count: int, lines: int
) -> None:
    url = sandbox.urls["repo"] + FILE
    sandbox.fault(service="repo", method="PUT", cut_head=count)
    address = urlsplit(url)
    with socket.create_connection((address.hostname or "", address.port or 0), 5) as client:
        token = b64encode(":".join(LOGIN).encode()).decode()
        client.sendall(
            f"PUT {address.path} HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {token}\r\n"
            "Content-Length: 1\r\n\r\nx".encode()
        )
        head = b"".join(iter(lambda: client.recv(1000), b""))
    assert head.startswith(b"HTTP/1.1 201")
    assert (head.count(b"\r\n") if count >= 0 else lines, head[-2:]) == (lines, b"\r\n")
    assert b"\r\n\r\n" not in head
    assert session.get(url).content == b"x"


def test_delay_fault_keeps_the_response(sandbox: Sandbox, session: requests.Session) -> None:
    sandbox.fault(service="repo", delay=0.05)
    assert session.get(sandbox.urls["repo"] + "/api/repositories").status_code == 200
    sandbox.fault(service="repo", delay=1, match="never")
    sandbox.clear_faults()
    assert sandbox.pending_faults() == []


def test_fault_matches_form_fields(sandbox: Sandbox, session: requests.Session) -> None:
    sandbox.fault(service="repo", match=r"^name=a b$|(?m:^name=a b$)", status=418)
    url = sandbox.urls["repo"] + "/api/search/aql"
    assert session.post(url, data={"name": "a c"}).status_code != 418
    assert session.post(url, data={"name": "a b"}).status_code == 418


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda sandbox: sandbox.settings("repo", nope=1), "no setting nope"),
        (lambda sandbox: sandbox.settings("repo", flavour="wild"), "no flavour wild"),
        (lambda sandbox: sandbox.settings("nope", flavour="real"), "unknown service"),
        (lambda sandbox: sandbox.seed({"nope": {}}), "unknown"),
        (lambda sandbox: sandbox.fault(service="repo", nope=1), "unknown fault fields: nope"),
        (lambda sandbox: sandbox.fault(service="nope", status=500), "unknown services: nope"),
    ],
)
def test_control_rejects_unknown_names(
    sandbox: Sandbox, change: Callable[[Sandbox], Any], message: str
) -> None:
    with pytest.raises(RuntimeError, match=message):
        change(sandbox)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/requests?since=x", ""),
        ("POST", "/faults", "{"),
        ("POST", "/faults", "[1]"),
        ("PATCH", "/settings", "[]"),
        ("PATCH", "/settings", '{"repo": 1}'),
        ("POST", "/seed", "null"),
        ("POST", "/seed", '{"repo": 1}'),
        ("POST", "/seed", '{"repo": {"files": [{"path": "a"}]}}'),
    ],
)
def test_control_reports_invalid_requests(
    sandbox: Sandbox, session: requests.Session, method: str, path: str, body: str
) -> None:
    response = session.request(method, sandbox.control + path, data=body)
    assert response.status_code == 400
    assert response.json()["error"]


# at the second reset there is a snapshot
@pytest.mark.parametrize("_time", [1, 2])
def test_reset_restores_the_seed(sandbox: Sandbox, session: requests.Session, _time: int) -> None:
    url = sandbox.urls["repo"] + FILE
    session.put(url, data=b"x")
    sandbox.settings("repo", flavour="written", delay_ms=1)
    sandbox.seed({"repo": {"credentials": {"users": {"extra": {"password": "p", "admin": True}}}}})
    assert session.get(url, auth=("extra", "p")).status_code == 200
    sandbox.reset()
    assert sandbox.settings("repo")["flavour"] == "real"
    assert session.get(url, auth=("extra", "p")).status_code == 401
    assert session.get(url).status_code == 404


def test_reset_prepares_the_next_test(sandbox: Sandbox, session: requests.Session) -> None:
    url = sandbox.urls["repo"] + FILE
    assert session.get(url).status_code == 404
    last = sandbox.reset(
        {"repo": {"flavour": "written"}},
        {"repo": {"credentials": {"users": {"extra": {"password": "p", "admin": True}}}}},
        [{"service": "repo", "status": 500}],
    )
    assert last == sandbox.mark() > 0
    assert sandbox.settings("repo")["flavour"] == "written"
    assert session.get(url, auth=("extra", "p")).status_code == 500
    assert session.get(url, auth=("extra", "p")).status_code == 404
    assert sandbox.replace_faults([{"service": "repo", "status": 501}]) == last + 2
    sandbox.replace_faults([{"service": "repo", "status": 502}])
    assert [fault["status"] for fault in sandbox.pending_faults()] == [502]
    with pytest.raises(RuntimeError, match="the body must be a JSON object"):
        sandbox._call("POST", "/reset", [])


def test_reset_discards_pending_requests(sandbox: Sandbox, session: requests.Session) -> None:
    url = sandbox.urls["repo"] + FILE
    sandbox.fault(service="repo", delay=3)
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(session.put, url, data=b"a", timeout=20)
        for _attempt in range(1000):
            if sandbox.requests("repo"):
                break
            time.sleep(0.01)
        sandbox.reset()
        with pytest.raises(requests.ConnectionError):
            late.result()
    assert session.get(url, timeout=20).status_code == 404


def test_response_is_sent_in_one_segment(sandbox: Sandbox) -> None:
    request = b"GET /repo/api/repositories HTTP/1.1\r\nHost: x\r\n\r\n"
    with socket.create_connection(("127.0.0.1", sandbox.port), timeout=10) as connection:
        for _request in range(5):
            connection.sendall(request)
            response = connection.recv(65536)
            head, _blank_line, body = response.partition(b"\r\n\r\n")
            length = re.search(rb"content-length: (\d+)", head)
            assert length is not None
            assert len(body) == int(length[1]) > 0


def test_file_is_open_before_the_head_is_sent(store: Store) -> None:
    """Verify that the client of an empty file may reset the sandbox once it has the response.

    If the file was removed before it was opened, the server would close the connection.
    """
    app = build_app(store, flavours={"repo": "real"})
    uploads = "/repo/api/docker/docker-staging-local/v2/app/blobs"
    digest = f"sha256:{hashlib.sha256().hexdigest()}"
    sent: list[dict[str, Any]] = []

    async def request(method: str, path: str, query: str = "") -> None:
        async def receive() -> dict[str, Any]:
            await asyncio.Event().wait()  # the client stays connected
            raise AssertionError

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(dict(message))
            if message["type"] == "http.response.start" and method == "GET":
                app.state.reset()

        scope = {
            "type": "http",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [
                (b"host", b"127.0.0.1"),
                (b"authorization", b"Bearer repo-token-1234567890"),
            ],
        }
        await app(scope, receive, send)

    asyncio.run(request("POST", f"{uploads}/uploads/", f"digest={digest}"))
    asyncio.run(request("GET", f"{uploads}/{digest}"))
    assert [message.get("status", message.get("body")) for message in sent] == [201, b"", 200, b""]


def test_expect_continue_is_answered(sandbox: Sandbox) -> None:
    head = (
        "PUT /repo/generic-staging-local/a.txt HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n"
        "Authorization: Bearer repo-token-1234567890\r\nExpect: 100-continue\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", sandbox.port), timeout=10) as connection:
        connection.sendall(head.encode())
        assert connection.recv(65536).startswith(b"HTTP/1.1 100 ")
        connection.sendall(b"x")
        assert connection.recv(65536).startswith(b"HTTP/1.1 201 ")


# --- the process ----------------------------------------------------------------------------------


def test_database_survives_and_is_seeded_once(tmp_path: Path, session: requests.Session) -> None:
    database = str(tmp_path / "state.db")
    seed = {"repo": {"files": [{"repo": "generic-staging-local", "path": "s.txt", "content": "s"}]}}
    with Sandbox.start(seed=seed, flavour="real", database=database) as first:
        session.put(first.urls["repo"] + FILE, data=b"kept")
        session.delete(first.urls["repo"] + "/generic-staging-local/s.txt")
        first.settings("repo", link_flavour="none")
        assert first.stop() == 0
    with Sandbox.start(seed=seed, flavour=None, database=database) as second:
        assert session.get(second.urls["repo"] + FILE).content == b"kept"
        gone = session.get(second.urls["repo"] + "/generic-staging-local/s.txt")
        assert gone.status_code == 404
        settings = second.settings("repo")
        assert (settings["flavour"], settings["link_flavour"]) == ("real", "none")


def test_addresses_are_printed_and_interrupt_exits_cleanly(tmp_path: Path) -> None:
    ready = tmp_path / "ready.json"
    command = [sys.executable, "-m", "sandbox", "--flavour", "repo=written", "--ready-file"]
    process = subprocess.Popen([*command, str(ready)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    lines = [process.stdout.readline().split() for _line in range(6)]
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == 0
    process.stdout.close()
    names = ["repo", "tracker", "wiki", "ci", "analysis", "control"]
    assert [line[0] for line in lines] == names
    data = json.loads(ready.read_text())
    assert data["urls"] == {name: url for name, url, *_login in lines[:-1]}
    users, secrets = [line[2] for line in lines[:-1]], [line[-1] for line in lines[:-1]]
    assert users == ["admin", "reporter", "reporter", "builder", "analyst"]
    assert secrets[:2] == ["admin-password", "reporter-password"]
    assert data["pid"] == process.pid
    assert data["control"].endswith("/_sandbox")
    assert not os.path.exists(f"{ready}.partial")


@pytest.mark.parametrize(
    ("seed", "words"),
    [
        ("a: [", "is not YAML"),
        ("- a", "is not a seed: it must be a mapping"),
        ("nope: {}", "unknown services: nope"),
        ("repo: {files: [{path: a}]}", "the seed of repo cannot be read: KeyError('content')"),
        ("wiki: {page: []}", "unknown key, page: known are credentials, groups, pages, settings"),
        ("wiki: {deployment: Cloud}", "deployment: it is a setting, so write it under wiki.set"),
        ("repo: {tokens: {}}", "unknown key, tokens: write it under repo.credentials"),
        ("ci: {credentials: {tokens: {}}}", "under credentials, tokens: known are anonymous_p"),
        ("wiki: {settings: {version2: true}}", "wiki has no setting version2"),
        (None, "No such file"),
    ],
)
def test_failed_start_is_explained_in_one_line_and_leaves_an_empty_database(
    tmp_path: Path,
    seed: str | None,
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file, database = tmp_path / "seed.yml", tmp_path / "state.db"
    if seed is not None:
        file.write_text(seed)
    command = ["sandbox", "--no-default-seed", "--seed", str(file), "--database", str(database)]
    monkeypatch.setattr(sys, "argv", command)
    assert __main__.main() == 1
    printed = capsys.readouterr().err
    assert printed.startswith("python -m sandbox: ")
    assert words in printed
    assert printed.count("\n") == 1 or seed == "a: ["  # YAML shows the place
    store = Store(str(database))
    assert store.is_empty()
    store.close()


def test_port_in_use_is_explained(sandbox: Sandbox) -> None:
    command = [sys.executable, "-m", "sandbox", "--no-default-seed", "--port", str(sandbox.port)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Address already in use" in done.stderr
    assert "Traceback" not in done.stderr


def test_unknown_flavour_is_rejected() -> None:
    with pytest.raises(RuntimeError, match="--flavour is 'wild'"):
        Sandbox.start(flavour="wild")
