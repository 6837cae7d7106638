# SPDX-License-Identifier: GPL-3.0-or-later
"""Test logins that are exchanged for an access token."""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection import (
    options,
    short_lived,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection.connection import (
    Connection,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.module.task import Task
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.secret import hidden
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.services import SERVICES
from tests.unit.stub import Reply, Seen, Stub

IDENTITY, CLIENT_SECRET = "eyJ0.identity-7f3a.c2ln", "client-secret-91bc"
EXCHANGE, CLOUD_EXCHANGE = "/base/access/api/v1/oidc/token", "/base/oauth/token"
OIDC = {"oidc_provider": "gitlab", "oidc_token": IDENTITY}
K8S = {"oidc_provider": "k8s"}
OAUTH2 = {"oauth2_client_id": "robot", "oauth2_client_secret": CLIENT_SECRET}


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """Return the time of the logins as a list with one number; start without tokens."""
    now = [1000.0]
    monkeypatch.setattr(short_lived, "monotonic", lambda: now[0])
    shared_tokens = short_lived.shared_tokens
    shared_tokens.cache_clear()
    hidden.clear()
    yield now
    shared_tokens.cache_clear()


class Server:
    """A service with its token service. It accepts the newest token; `status` may replace 200.

    `answers`: bodies of the exchanges instead of a new token.
    """

    def __init__(self, life: Any = 3600) -> None:
        self.life, self.issued, self.applied = life, 0, 0
        self.accepted: set[str] = set()
        self.exchanges: list[dict[str, Any]] = []
        self.answers: list[Reply] = []

    def __call__(self, seen: Seen) -> Reply:
        if seen.path in (EXCHANGE, CLOUD_EXCHANGE):
            return self._exchange(seen)
        token = seen.headers.get("Authorization", "").removeprefix("Bearer ")
        if token not in self.accepted:
            return Reply(401, {"errors": [{"status": 401, "message": f"Bad token {token}"}]})
        self.applied += seen.method == "PUT"
        return Reply(200, {"ok": True})

    def _exchange(self, seen: Seen) -> Reply:
        self.exchanges.append(json.loads(seen.body))
        assert "Authorization" not in seen.headers
        assert seen.headers["Content-Type"] == "application/json"
        if self.answers:
            return self.answers.pop(0)
        self.issued += 1
        token = f"access-{self.issued:03}-5e1d"
        self.accepted = {token}
        life = {} if self.life == "missing" else {"expires_in": self.life}
        return Reply(200, {"access_token": token, "token_type": "Bearer", **life})


def connection(url: str, service: str = "repo", **given: Any) -> Connection:
    known: dict[str, Any] = {"url": url, "timeout": 5, "retries": 0, "retry_max_wait": 1, **given}
    return options.resolve(SERVICES[service], known.get, {})


def task(stub: Stub, read_only: bool = False, given: dict[str, str] = OIDC) -> Task:
    return Task(connection(stub.url, **given), pytest.fail, read_only=read_only)


def test_exchange_sends_what_the_vendor_documents() -> None:
    server = Server()
    further = {"oidc_project_key": "rel", "oidc_identity_mapping_name": "main"}
    with Stub(response=server) as stub:
        task(stub, given={**OIDC, **further}).transport().read("reading", "x")
        cloud = connection(stub.url, "tracker", oauth2_url=f"{stub.url}/", **OAUTH2)
        Task(cloud, pytest.fail, read_only=True).transport().read("reading", "x")
        assert [seen.target for seen in stub.seen[::2]] == [EXCHANGE, CLOUD_EXCHANGE]
    assert server.exchanges == [
        {
            "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
            "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
            "subject_token": IDENTITY,
            "provider_name": "gitlab",
            "project_key": "rel",
            "identity_mapping_name": "main",
        },
        {
            "grant_type": "client_credentials",
            "client_id": "robot",
            "client_secret": CLIENT_SECRET,
        },
    ]


def test_platform_is_next_to_the_repository_manager() -> None:
    found = connection("https://repo.example.org/artifactory", **OIDC).exchange
    assert found is not None
    assert found.url == "https://repo.example.org"
    named = connection("https://r.example.org", platform_url="https://p.example.org/", **OIDC)
    assert named.exchange is not None
    assert named.exchange.url == "https://p.example.org"
    cloud = connection("https://x.atlassian.net", "tracker", cloud_id="1-2", **OAUTH2).exchange
    assert cloud is not None
    assert (cloud.url, cloud.path) == ("https://auth.atlassian.com", "oauth/token")


def test_client_credentials_go_to_the_gateway() -> None:
    server = Server()
    with Stub(response=server) as stub:
        for service, below in (("tracker", "/ex/jira/1-2"), ("wiki", "/ex/confluence/1-2/wiki")):
            addresses = {"cloud_gateway": stub.url, "oauth2_url": stub.url, "cloud_id": "1-2"}
            site = connection("http://127.0.0.1:9", service, **addresses, **OAUTH2)
            Task(site, pytest.fail, read_only=True).transport().read("reading", "x")
            assert stub.seen[-1].path == f"/base{below}/x"
    assert len(server.exchanges) == 1  # both services have the same client


def test_one_exchange_serves_tasks_threads_and_forked_workers() -> None:
    server = Server()
    with Stub(response=server) as stub:
        short_lived.shared_tokens()  # as the action does before Ansible forks
        workers = []
        for _worker in range(3):
            worker = os.fork()
            if worker == 0:
                code = 1
                try:
                    task(stub).transport().read("reading", "x")
                    code = 0
                finally:
                    os._exit(code)
            workers.append(worker)
        assert [os.waitpid(worker, 0)[1] for worker in workers] == [0, 0, 0]
        tasks = [task(stub, read_only=True) for _ in range(8)]
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda each: each.transport().read("reading", "x"), tasks))
    assert len(server.exchanges) == 1


class Counting:
    """The shared tokens; counts the threads and processes that are about to exchange a login."""

    def __init__(self) -> None:
        self.tokens = short_lived.shared_tokens()
        self.waiting = multiprocessing.get_context("fork").Semaphore(0)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tokens, name)

    def exchanging(self, login: str, patience: float) -> AbstractContextManager[None]:
        self.waiting.release()
        return self.tokens.exchanging(login, patience)

    def wait(self, count: int) -> None:
        assert all(self.waiting.acquire(timeout=10) for _one in range(count))


@pytest.fixture
def counting(monkeypatch: pytest.MonkeyPatch) -> Counting:
    found = Counting()
    monkeypatch.setattr(short_lived, "shared_tokens", lambda: found)
    return found


def test_threads_that_wait_for_a_rejected_exchange_do_not_repeat_it(counting: Counting) -> None:
    server = Server()
    server.answers = [Reply(401, {"errors": [{"message": "no"}]})] * 9

    def respond(seen: Seen) -> Reply:
        counting.wait(8)
        return server(seen)

    with Stub(response=respond) as stub:
        transport = task(stub).transport()

        def read(_number: int) -> str:
            with pytest.raises(ToolchainError) as caught:
                transport.read("reading", "x")
            return caught.value.message

        with ThreadPoolExecutor(8) as pool:
            messages = set(pool.map(read, range(8)))
    assert len(messages) == 1
    assert len(server.exchanges) == 1


def reading(stub: Stub, expected: str, given: dict[str, str] = OIDC) -> int:
    """Fork a worker that reads; its exit code is 0 if the error contains the expected text."""
    worker = os.fork()
    if worker == 0:
        code, found = 1, ""
        try:
            try:
                task(stub, given=given).transport().read("reading", "x")
            except ToolchainError as error:
                found = f"{error.kind} {error.login_status} {error.message}"
            code = int(expected not in found or bool(found) != bool(expected))
        finally:
            os._exit(code)
    return worker


def test_workers_that_wait_for_a_rejected_exchange_share_its_error(counting: Counting) -> None:
    server = Server()
    server.answers = [Reply(403, {"errors": [{"message": "no mapping"}]})] * 9

    def respond(seen: Seen) -> Reply:
        counting.wait(4)
        return server(seen)

    with Stub(response=respond) as stub:
        workers = [reading(stub, "no mapping") for _worker in range(4)]
        assert [os.waitpid(worker, 0)[1] for worker in workers] == [0, 0, 0, 0]
    assert len(server.exchanges) == 1


def test_slow_exchange_does_not_hold_up_another_login() -> None:
    server, other = Server(), threading.Event()
    short_lived.shared_tokens()

    def respond(seen: Seen) -> Reply:
        if seen.path == EXCHANGE and json.loads(seen.body)["subject_token"] == IDENTITY:
            assert other.wait(10)  # the slow service responds after the other task has ended
        return server(seen)

    with Stub(response=respond) as stub:
        slow = reading(stub, "")
        while not stub.seen:
            time.sleep(0.01)
        quick = reading(stub, "", {**OIDC, "oidc_token": "eyJ1.other.c2ln"})
        assert os.waitpid(quick, 0)[1] == 0
        other.set()
        os.waitpid(slow, 0)


def test_worker_that_is_killed_does_not_block_the_others(counting: Counting) -> None:
    server, held = Server(), threading.Event()

    def respond(seen: Seen) -> Reply:
        if not held.is_set():
            held.set()
            return Reply(hold=True)
        return server(seen)

    with Stub(response=respond) as stub:
        killed = reading(stub, "")
        assert held.wait(10)
        waiting = reading(stub, "")
        counting.wait(2)
        os.kill(killed, signal.SIGKILL)
        assert os.waitpid(waiting, 0)[1] == 0
        os.waitpid(killed, 0)


def test_task_waits_no_longer_than_its_patience() -> None:
    tokens = short_lived.shared_tokens()
    ready, holds = os.pipe()
    worker = os.fork()
    if worker == 0:
        with tokens.exchanging("ab" * 32, 60):
            os.write(holds, b"x")
            signal.pause()
    try:
        os.read(ready, 1)
        for login, patience in (("ab", 0.05), ("cd", 60)):
            with tokens.exchanging(login * 32, patience):
                pass
    finally:
        os.kill(worker, signal.SIGKILL)
        os.waitpid(worker, 0)
        os.close(ready)
        os.close(holds)


def test_another_login_gets_its_own_token() -> None:
    server = Server()
    with Stub(response=server) as stub:
        for token in (IDENTITY, "eyJ1.other.c2ln"):
            task(stub, given={**OIDC, "oidc_token": token}).transport().read("reading", "x")
    assert len(server.exchanges) == 2


#: With these the token serves until the server rejects it.
NO_LIFETIMES: tuple[Any, ...] = ("missing", 0, -5, None, "soon", True, [], {}, 10**400)


@pytest.mark.parametrize(
    ("life", "after", "exchanges"),
    [
        (3600, 3539, 1),
        (3600, 3541, 2),
        (60, 53, 1),
        (60, 55, 2),
        ("3600", 3541, 2),
        (2.5, 2.4, 2),
        *((odd, 10**6, 1) for odd in NO_LIFETIMES),
        (10**30, 10**6, 1),
    ],
)
def test_token_is_renewed_before_it_expires(
    clock: list[float], life: Any, after: float, exchanges: int
) -> None:
    server = Server(life)
    with Stub(response=server) as stub:
        transport = task(stub).transport()
        transport.read("reading", "x")
        clock[0] += after
        transport.read("reading", "x")
        task(stub).transport().read("reading", "x")
    assert len(server.exchanges) == exchanges
    assert [seen for seen in stub.seen if seen.path == "/base/x"][-1].headers[
        "Authorization"
    ] == f"Bearer access-{exchanges:03}-5e1d"


def test_token_serves_until_it_expires_if_the_renewal_fails(clock: list[float]) -> None:
    server = Server(100)
    with Stub(response=server) as stub:
        transport = task(stub).transport()
        transport.read("reading", "x")
        server.answers = [Reply(400, {"errors": [{"message": "Invalid audience"}]})] * 2
        clock[0] += 95
        transport.read("reading", "x")
        transport.read("reading", "x")
        assert len(server.exchanges) == 2
        clock[0] += 6
        with pytest.raises(ToolchainError, match="Invalid audience"):
            transport.read("reading", "x")
    assert len(server.exchanges) == 3


def test_write_is_sent_once_more_after_a_401_and_applied_once() -> None:
    server = Server()
    with Stub(response=server) as stub:
        found = task(stub)
        transport = found.transport()
        transport.read("reading", "x")
        for _time in range(2):  # each time the server has accepted the token before
            server.accepted = set()
            large: dict[str, Any] = {"open_body": lambda: io.BytesIO(bytes(70_000))}
            transport.write("writing", "PUT", "x", size=70_000, **large)
    assert (server.applied, len(server.exchanges)) == (2, 3)
    assert found.accounting.acknowledged == 2


def test_token_that_another_worker_renewed_is_taken_over() -> None:
    server = Server()
    with Stub(response=server) as stub:
        first, second = task(stub).transport(), task(stub).transport()
        first.read("reading", "x")
        second.read("reading", "x")
        server.accepted = set()
        first.read("reading", "x")
        second.read("reading", "x")
    assert len(server.exchanges) == 2


def test_login_that_stays_rejected_is_renewed_only_once() -> None:
    server = Server()
    server.answers = [Reply(200, {"access_token": f"dead-token-{n}"}) for n in range(3)]
    with Stub(response=server) as stub:
        transport = task(stub).transport()
        for _time in range(2):
            with pytest.raises(ToolchainError) as caught:
                transport.write("writing", "PUT", "x")
            assert (caught.value.kind, caught.value.outcome_unknown) == ("auth", False)
    assert (len(server.exchanges), server.applied) == (2, 0)


def test_exchange_is_a_read_of_check_mode_and_a_rejected_write_stays_unsent() -> None:
    server = Server()
    with Stub(response=server) as stub:
        found = task(stub, read_only=True)
        found.transport().read("reading", "x")
        assert found.accounting.as_dict()["writes"] == 0
        with pytest.raises(ToolchainError, match="check mode"):
            found.transport().write("writing", "PUT", "x")
    assert server.applied == 0


def test_memory_that_is_full_keeps_the_newest_tokens() -> None:
    tokens = short_lived.SharedTokens()
    tokens.add_failure("f", ToolchainError("auth", "x" * 100_000))
    for number in range(5):
        tokens.add(str(number), short_lived.AccessToken("x" * 100_000, None, None))
    known = [tokens.of(str(number))[0] is not None for number in range(5)]
    assert known == [False, False, False, True, True]
    assert tokens.of("f") == (None, None)
    tokens.add("huge", short_lived.AccessToken("x" * 10**6, None, None))
    assert tokens.of("huge") == (None, None)


PAGE = "<!DOCTYPE html><html><head><title>Proxy</title></head><body>Hello</body></html>"
FAILURES = {
    "400": (
        Reply(400, {"errors": [{"code": "BAD_REQUEST", "message": "Invalid audience"}]}),
        "auth",
    ),
    "401": (Reply(401, {"error": "access_denied", "error_description": "Unauthorized"}), "auth"),
    "403": (Reply(403, "no identity mapping"), "auth"),
    "404": (Reply(404, PAGE), "auth"),
    "409": (Reply(409, {"errors": [{"message": "conflict"}]}), "auth"),
    "429": (Reply(429, "slow down", {"Retry-After": "9"}), "rate_limited"),
    "500": (Reply(500, PAGE), "server"),
    "HTML": (Reply(200, PAGE), "protocol"),
    "a login page": (Reply(200, '<html><input type="password"></html>'), "auth"),
    "no JSON": (Reply(200, "access_token=leaked-4711&x=1"), "protocol"),
    "a list": (Reply(200, '["leaked-4711"]'), "protocol"),
    "a broken token": (Reply(200, {"access_token": "leaked-4711\nX: y"}), "protocol"),
    "no token": (Reply(200, {"token": "leaked-4711"}), "protocol"),
    "an echo": (Reply(400, {"errors": [{"message": f"bad {IDENTITY} eyJh.eyJi.sig"}]}), "auth"),
    "another host": (Reply(307, "", {"Location": "https://evil.example.org/token"}), "protocol"),
    "same host": (Reply(302, "", {"Location": "/base/elsewhere"}), "protocol"),
    "no response": (Reply(cut=True), "network"),
}


@pytest.mark.parametrize(("reply", "kind"), FAILURES.values(), ids=FAILURES)
@pytest.mark.parametrize("method", ["GET", "DELETE", "POST"])
def test_failed_exchange_is_one_sentence_without_secrets(
    reply: Reply, kind: str, method: str
) -> None:
    server = Server()
    server.answers = [reply] * 9
    with Stub(response=server) as stub:
        found = task(stub)
        transport = found.transport()
        with pytest.raises(ToolchainError) as caught:
            transport.send("acting", method, "x", reads=method == "GET", expect=(200, 404))
        assert not [seen for seen in stub.seen if seen.path != EXCHANGE]
        stub.replies.clear()
    failure = found.failure(caught.value)
    assert failure["error"]["kind"] == kind
    assert failure["error"]["status"] == (None if reply.cut else reply.status)
    # an operation must not take the response of the token service for an absent object
    assert (caught.value.status, caught.value.outcome_unknown) == (None, False)
    assert "oidc_token" in failure["msg"]
    assert "check oidc_token, oidc_provider" in failure["msg"]
    assert "\n" not in failure["msg"]
    assert "<html" not in failure["msg"]
    assert failure["http"]["writes"] == 0
    assert failure["changed"] is False
    shown = json.dumps(failure)
    assert not [secret for secret in ("leaked-4711", IDENTITY, "eyJh") if secret in shown]


def test_access_token_is_masked_in_what_the_server_says() -> None:
    server = Server()
    with Stub(response=server) as stub:
        found = task(stub)
        transport = found.transport()
        server.answers = [Reply(200, {"access_token": "dead-token-4711"})] * 2
        with pytest.raises(ToolchainError) as caught:
            transport.read("reading", "x")
    failure = found.failure(caught.value)
    assert "Bad token ***" in failure["msg"]
    assert "the task sent an access token of a short-lived login" in failure["msg"]
    assert "dead-token" not in json.dumps(failure)


def test_token_file_is_read_for_each_exchange(clock: list[float], tmp_path: Path) -> None:
    """GitLab, GitHub and Kubernetes rotate identity tokens."""
    file, target = tmp_path / "token", tmp_path / "data"
    file.symlink_to(target)  # as Kubernetes mounts it
    target.write_text("eyJ0.first.c2ln\n", encoding="ascii")
    server = Server(100)
    with Stub(response=server) as stub:
        transport = task(stub, given={**K8S, "oidc_token_file": str(file)}).transport()
        transport.read("reading", "x")
        target.write_text("eyJ0.second.c2ln", encoding="ascii")
        transport.read("reading", "x")
        clock[0] += 99
        transport.read("reading", "x")
    sent = [each["subject_token"] for each in server.exchanges]
    assert sent == ["eyJ0.first.c2ln", "eyJ0.second.c2ln"]
    assert hidden.mask("eyJ0.second.c2ln") == "***"


def _folder(path: Path) -> None:
    path.mkdir()


def _pipe(path: Path) -> None:
    os.mkfifo(path)


BAD_FILES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "missing": (lambda _path: None, "No such file"),
    "folder": (_folder, "Is a directory"),
    "pipe": (_pipe, "a pipe"),
    "empty": (lambda path: path.write_bytes(b" \n"), "is empty"),
    "huge": (lambda path: path.write_bytes(b"x" * 10**6), "nothing else"),
    "binary": (lambda path: path.write_bytes(b"\x00\xff"), "nothing else"),
    "two lines": (lambda path: path.write_bytes(b"secret-1\nsecret-2"), "nothing else"),
}


@pytest.mark.parametrize(("make", "reason"), BAD_FILES.values(), ids=BAD_FILES)
def test_bad_token_file_is_invalid(
    make: Callable[[Path], Any], reason: str, tmp_path: Path
) -> None:
    file = tmp_path / "token"
    make(file)
    with Stub() as stub:
        transport = task(stub, given={**K8S, "oidc_token_file": str(file)}).transport()
        with pytest.raises(ToolchainError) as caught:
            transport.read("reading", "x")
    assert caught.value.kind == "invalid"
    assert "oidc_token_file" in str(caught.value)
    assert reason in str(caught.value)
    assert "secret-1" not in str(caught.value)


INVALID: dict[str, tuple[str, dict[str, Any], str]] = {
    "both tokens": (
        "repo",
        {**OIDC, "oidc_token_file": "f"},
        "oidc_token and oidc_token_file are both set",
    ),
    "no token": ("repo", {"oidc_provider": "x"}, "without oidc_token or oidc_token_file"),
    "no provider": ("repo", {"oidc_token": "x"}, "oidc_token without oidc_provider"),
    "key alone": ("repo", {"oidc_project_key": "x"}, "without oidc_provider"),
    "blank provider": ("repo", {**OIDC, "oidc_provider": " "}, "oidc_provider of the repo"),
    "line break": ("repo", {**OIDC, "oidc_token": "a\nb"}, "oidc_token for the repo"),
    "with a token": ("repo", {**OIDC, "token": "t"}, "several login methods"),
    "with a key": ("repo", {**OIDC, "api_key": "t"}, "several login methods"),
    "with a password": ("repo", {**OIDC, "password": "p"}, "several login methods"),
    "with a user": ("repo", {**OIDC, "username": "u"}, "username cannot be combined"),
    "user info": ("repo", {**OIDC, "url": "https://u:p@r.example.org"}, "several login methods"),
    "no secret": ("wiki", {"oauth2_client_id": "x"}, "without oauth2_client_secret"),
    "no client": ("tracker", {"oauth2_client_secret": "x"}, "without oauth2_client_id"),
    "with OAuth 1": ("tracker", {**OAUTH2, "oauth_consumer_key": "c"}, "several login methods"),
    "at the site": (
        "tracker",
        {**OAUTH2, "url": "https://x.atlassian.net"},
        "set cloud_id to the id of the site, or to auto",
    ),
    "http": ("tracker", {**OAUTH2, "oauth2_url": "http://auth.example.org"}, "unencrypted"),
    "http platform": ("repo", {**OIDC, "platform_url": "http://p.example.org"}, "unencrypted"),
    "no address": ("wiki", {**OAUTH2, "oauth2_url": "auth.example.org"}, "oauth2_url"),
    "user info of tokens": ("wiki", {**OAUTH2, "oauth2_url": "https://u:p@a.org"}, "user info"),
}


@pytest.mark.parametrize(("service", "given", "reason"), INVALID.values(), ids=INVALID)
def test_incomplete_login_is_invalid(service: str, given: dict[str, Any], reason: str) -> None:
    with pytest.raises(ToolchainError) as caught:
        connection(**{"url": "https://repo.example.org", "service": service, **given})
    assert caught.value.kind == "invalid"
    assert reason in str(caught.value)
    assert IDENTITY not in str(caught.value)
    assert CLIENT_SECRET not in str(caught.value)


ENVIRONMENT = {
    "TOOLCHAIN_TRACKER_URL": "https://jira.example.org",
    "TOOLCHAIN_TRACKER_OAUTH2_CLIENT_ID": "robot",
    "TOOLCHAIN_TRACKER_OAUTH2_CLIENT_SECRET": CLIENT_SECRET,
}


def test_login_of_the_environment_belongs_to_its_address() -> None:
    own = {"url": "https://jira.example.org"}
    found = options.resolve(SERVICES["tracker"], own.get, ENVIRONMENT)
    assert found.exchange is not None
    assert found.exchange.secret is not None
    assert "from the environment" in found.login
    for other in ({"url": "https://evil.example.org"}, {**own, "oauth2_url": "https://evil.org"}):
        with pytest.raises(ToolchainError, match="are not sent to https://evil"):
            options.resolve(SERVICES["tracker"], other.get, ENVIRONMENT)
