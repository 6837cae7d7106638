# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the sandbox's CI server with third-party clients and plain HTTP requests."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import jenkins
import jenkinsapi.jenkins
import pytest
import requests

from sandbox.client import Sandbox
from tests.integration.sandbox.clients import until

USER, PASSWORD, TOKEN = "builder", "builder-password", "builder-api-token-1234567890"
VIEWER = ("viewer", "viewer-api-token-1234567890")
OPERATOR = ("operator", "operator-api-token-1234567890")
MARKER = "0f0f0f0f0f0f0f0f"
CRUMB_XPATH = 'concat(//crumbRequestField,":",//crumb)'

#: Flavour of the fixture `sandbox`.
FLAVOUR = "real"


@pytest.fixture
def url(sandbox: Sandbox) -> str:
    return sandbox.urls["ci"]


@pytest.fixture
def server(url: str) -> jenkins.Jenkins:
    return jenkins.Jenkins(url, USER, TOKEN)


@pytest.fixture
def session() -> Iterator[requests.Session]:
    """Open a session with an API token, which needs no crumb."""
    with _session(USER, TOKEN) as found:
        yield found


@pytest.fixture
def password_session() -> Iterator[requests.Session]:
    with _session(USER, PASSWORD) as found:
        yield found


def _session(user: str, secret: str) -> requests.Session:
    found = requests.Session()
    found.trust_env = False
    found.auth = (user, secret)
    return found


def _post(session: requests.Session, address: str, **keywords: Any) -> requests.Response:
    return session.post(address, allow_redirects=False, timeout=10, **keywords)


def _get(session: requests.Session, address: str, **query: str) -> requests.Response:
    return session.get(address, params=query, timeout=10)


def _finished(session: requests.Session, build: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        response = _get(session, f"{build}/api/json")
        data: dict[str, Any] = response.json() if response.status_code == 200 else {}
        return data if data.get("inProgress") is False else None

    return until(look)


def _queue_item(session: requests.Session, trigger: requests.Response) -> dict[str, Any]:
    found: dict[str, Any] = _get(session, f"{trigger.headers['Location']}api/json").json()
    return found


# --- python-jenkins ---------------------------------------------------------------------------


def test_python_jenkins_identifies_user_and_server(server: jenkins.Jenkins) -> None:
    assert server.get_whoami()["fullName"] == USER
    assert server.get_version() == "2.479.3"


def test_python_jenkins_with_password_needs_crumb_and_session(url: str) -> None:
    server = jenkins.Jenkins(url, USER, PASSWORD)
    assert server.build_job("no-parameters") > 0
    assert server.get_job_info("no-parameters")["fullName"] == "no-parameters"


def test_python_jenkins_rejects_wrong_credentials(url: str) -> None:
    with pytest.raises(jenkins.JenkinsException, match=r"\[401\]"):
        jenkins.Jenkins(url, USER, "wrong").get_whoami()


def test_python_jenkins_builds_with_parameters(server: jenkins.Jenkins) -> None:
    item = server.build_job("delivery/toolchain", {"VERSION": "1.2.3", "CHANNEL": "beta"})
    queued = until(lambda: server.get_queue_item(item).get("executable"))
    number = queued["number"]

    def ended() -> dict[str, Any] | None:
        build = server.get_build_info("delivery/toolchain", number)
        return None if build["building"] else build

    build = until(ended)
    assert build["result"] == "SUCCESS"
    assert build["queueId"] == item
    actions = {action.get("_class"): action for action in build["actions"]}
    parameters = actions["hudson.model.ParametersAction"]["parameters"]
    assert {entry["name"]: entry["value"] for entry in parameters} == {
        "VERSION": "1.2.3",
        "PUBLISH": True,
        "CHANNEL": "beta",
    }
    log = server.get_build_console_output("delivery/toolchain", number)
    assert "Building version 1.2.3 for channel beta\n" in log
    assert log.endswith("Finished: SUCCESS\n")


def test_python_jenkins_stops_a_build(server: jenkins.Jenkins) -> None:
    server.build_job("slow")
    until(lambda: server.get_job_info("slow")["lastBuild"])
    server.stop_build("slow", 1)
    assert server.get_build_info("slow", 1)["result"] == "ABORTED"


def test_python_jenkins_runs_scripts(server: jenkins.Jenkins) -> None:
    assert server.run_script("println 'hello'") == "hello"
    assert server.run_script("Jenkins.instance.pluginManager.plugins") == (
        "git\nworkflow-aggregator"
    )
    with pytest.raises(jenkins.JenkinsException, match="IllegalStateException: no"):
        server.run_script("throw new IllegalStateException('no')")


def test_python_jenkins_reads_plugins_folders_and_configuration(server: jenkins.Jenkins) -> None:
    assert server.get_plugin_info("git")["version"] == "5.2.2"
    names = {job["fullname"] for job in server.get_all_jobs()}
    assert {"delivery/toolchain", "delivery/service/feature%2Fx"} <= names
    assert server.get_job_config("delivery/toolchain").startswith("<?xml version='1.1'")
    assert len(server.get_job_info("long-history", fetch_all_builds=True)["builds"]) == 120


def test_python_jenkins_cancels_a_queue_item(server: jenkins.Jenkins) -> None:
    item = server.build_job("offline")
    assert [entry["id"] for entry in server.get_queue_info()] == [item]
    server.cancel_queue(item)
    assert server.get_queue_info() == []
    assert server.get_queue_item(item)["cancelled"] is True


# --- jenkinsapi -------------------------------------------------------------------------------


def test_jenkinsapi_builds_and_reads(url: str) -> None:
    server = jenkinsapi.jenkins.Jenkins(url, USER, PASSWORD)
    assert server.version == "2.479.3"
    assert "delivery/toolchain" in server.jobs
    item = server["delivery/toolchain"].invoke(build_params={"VERSION": "3.0"})
    item.block_until_complete(delay=0.02)
    build = server["delivery/toolchain"].get_last_build()
    assert build.get_status() == "SUCCESS"
    assert build.get_params()["VERSION"] == "3.0"


def test_jenkinsapi_follows_stops_and_reads_the_log(url: str) -> None:
    server = jenkinsapi.jenkins.Jenkins(url, USER, TOKEN)
    item = server["slow"].invoke()
    item.block_until_building(delay=0.02)
    build = item.get_build()
    assert (build.get_number(), build.is_running()) == (1, True)
    assert build.stop() is True
    assert build.poll()["result"] == "ABORTED"
    assert f"Aborted by {USER}" in build.get_console()
    assert server["slow"].is_queued_or_running() is False


def test_both_clients_read_the_same_builds(url: str, server: jenkins.Jenkins) -> None:
    other = jenkinsapi.jenkins.Jenkins(url, USER, TOKEN)["long-history"]
    numbers = [build["number"] for build in server.get_job_info("long-history", depth=1)["builds"]]
    assert numbers == list(range(120, 20, -1))
    assert list(other.get_build_ids())[: len(numbers)] == numbers
    assert other.get_last_failed_buildnumber() == 120
    assert other.get_last_good_buildnumber() == 119
    assert other.get_params_list() == ["VERSION"]
    assert other.get_build(120).get_params() == {"VERSION": "2.0.0"}


def test_python_jenkins_waits_for_a_merged_item(server: jenkins.Jenkins) -> None:
    first = server.build_job("offline")
    assert server.get_queue_item(first)["stuck"] is True
    queued = server.get_job_info("offline")
    assert (queued["inQueue"], queued["queueItem"]["id"]) == (True, first)
    assert server.get_running_builds() == []


# --- login, crumbs, permissions ---------------------------------------------------------------


def test_wrong_basic_credentials_are_challenged(url: str) -> None:
    response = _get(_session(USER, "wrong"), f"{url}/login")
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"] == 'Basic realm="Jenkins"'


def test_anonymous_request_names_the_missing_permission(url: str) -> None:
    response = requests.get(f"{url}/api/json", timeout=10)
    assert response.status_code == 403
    assert "WWW-Authenticate" not in response.headers
    assert response.headers["X-Required-Permission"] == "hudson.model.Hudson.Read"
    assert response.headers["X-You-Are-Authenticated-As"] == "anonymous"
    assert "Authentication required" in response.text
    login = requests.get(f"{url}/login", timeout=10)
    assert login.status_code == 200
    assert login.headers["X-Jenkins"] == "2.479.3"
    assert login.headers["X-Jenkins-Session"] == response.headers["X-Jenkins-Session"]


@pytest.mark.parametrize(
    ("login", "method", "path", "permission"),
    [
        (VIEWER, "POST", "/job/no-parameters/build", "hudson.model.Item.Build"),
        (VIEWER, "GET", "/job/no-parameters/config.xml", "hudson.model.Item.ExtendedRead"),
        (VIEWER, "GET", "/pluginManager/api/json?depth=1", "hudson.model.Hudson.SystemRead"),
        (OPERATOR, "POST", "/scriptText", "hudson.model.Hudson.Administer"),
        (OPERATOR, "POST", "/safeRestart", "hudson.model.Hudson.Manage"),
    ],
)
def test_missing_permission_is_rejected(
    url: str, login: tuple[str, str], method: str, path: str, permission: str
) -> None:
    response = _session(*login).request(method, url + path, timeout=10)
    assert response.status_code == 403
    assert response.headers["X-Required-Permission"] == permission
    assert "No valid crumb" not in response.text


def test_post_with_password_needs_a_crumb_of_its_session(
    url: str, password_session: requests.Session
) -> None:
    address = f"{url}/job/no-parameters/build"
    refused = _post(password_session, address)
    assert refused.status_code == 403
    assert "No valid crumb was included in the request" in refused.text
    issued = _get(password_session, f"{url}/crumbIssuer/api/json").json()
    assert issued["_class"] == "hudson.security.csrf.DefaultCrumbIssuer"
    header = {issued["crumbRequestField"]: issued["crumb"]}
    assert _post(password_session, address, headers=header).status_code == 201
    # reject the crumb without its cookie, and in another session
    assert _post(_session(USER, PASSWORD), address, headers=header).status_code == 403
    other = _session(USER, PASSWORD)
    _get(other, f"{url}/crumbIssuer/api/json")
    assert _post(other, address, headers=header).status_code == 403


def test_crumb_is_available_in_two_text_formats(
    sandbox: Sandbox, url: str, password_session: requests.Session
) -> None:
    address = f"{url}/crumbIssuer/api/xml"
    text = _get(password_session, address, xpath=CRUMB_XPATH).text
    field, _colon, crumb = text.partition(":")
    assert field == "Jenkins-Crumb"
    equals = _get(password_session, address, xpath=CRUMB_XPATH.replace('":"', "'='"))
    assert equals.text == f"Jenkins-Crumb={crumb}"
    other = _get(password_session, address, xpath=CRUMB_XPATH.replace('":"', "':'"))
    assert other.status_code == 403
    sandbox.settings("ci", flavour="written")
    other = _get(password_session, address, xpath=CRUMB_XPATH.replace('":"', "':'"))
    assert other.text == f"Jenkins-Crumb:{crumb}"


def test_crumbs_may_be_disabled_renamed_or_without_session(sandbox: Sandbox, url: str) -> None:
    build = f"{url}/job/no-parameters/build"
    sandbox.settings("ci", crumb_issuer=False)
    with _session(USER, PASSWORD) as session:
        assert _get(session, f"{url}/crumbIssuer/api/json").status_code == 404
        assert _post(session, build).status_code == 201
    sandbox.settings("ci", crumb_issuer=True, crumb_field=".crumb", crumb_needs_session=False)
    crumb = requests.get(f"{url}/crumbIssuer/api/json", timeout=10).json()["crumb"]
    # the session keeps no cookies; the crumb may be a form field instead of a header
    assert _post(_session(USER, PASSWORD), build, data={".crumb": crumb}).status_code in (201, 303)


# --- triggering -------------------------------------------------------------------------------


def test_build_trigger_has_its_statuses(url: str, session: requests.Session) -> None:
    def build(job: str, **form: str) -> requests.Response:
        return _post(session, f"{url}/job/{job}/build", data=form)

    started = build("no-parameters")
    assert started.status_code == 201
    assert started.headers["Location"].startswith(f"{url}/queue/item/")
    assert build("disabled").status_code == 409
    refused = build("refused")
    assert (refused.status_code, refused.headers["Location"]) == (302, "/ci/job/refused/")
    assert build("nowhere").status_code == 404
    assert build("delivery").status_code == 404
    assert session.get(f"{url}/job/no-parameters/build", timeout=10).status_code == 405

    parameterised = "delivery/job/toolchain"
    assert "X-Error" not in build("disabled").headers
    assert build(parameterised).headers["X-Error"] == "Nothing is submitted"
    assert build(parameterised, x="1").headers["X-Error"] == "This page expects a form submission"
    assert build(parameterised, json="{}").status_code == 201
    given = json.dumps({"parameter": {"name": "VERSION", "value": "7"}})
    assert build(parameterised, json=given).status_code == 201
    unknown = json.dumps({"parameter": [{"name": "NOPE", "value": "7"}]})
    assert build(parameterised, json=unknown).status_code == 500
    illegal = json.dumps({"parameter": [{"name": "CHANNEL", "value": "nightly"}]})
    assert build(parameterised, json=illegal).status_code == 500


def test_build_trigger_with_parameters_has_its_statuses(
    sandbox: Sandbox, url: str, session: requests.Session
) -> None:
    def build(job: str, form: Any) -> requests.Response:
        return _post(session, f"{url}/job/{job}/buildWithParameters", data=form)

    response = build(
        "delivery/job/toolchain", {"VERSION": "5", "NOPE": "ignored", "PUBLISH": "yes"}
    )
    assert response.status_code == 201
    item = _queue_item(session, response)
    assert item["params"] == "\nVERSION=5\nPUBLISH=false\nCHANNEL=stable"
    repeated = [("VERSION", "5"), ("VERSION", "6")]
    assert build("delivery/job/toolchain", repeated).status_code == 500
    hosts = build("multi-value", [("HOSTS", "a"), ("HOSTS", "b")])
    assert "HOSTS=a,b" in _queue_item(session, hosts)["params"]
    assert build("no-parameters", {"A": "1"}).status_code == 400
    sandbox.settings("ci", not_parameterized_status=500)
    assert build("no-parameters", {"A": "1"}).status_code == 500


@pytest.mark.parametrize("flavour", ["real", "written"])
def test_identical_queue_items_are_merged(
    sandbox: Sandbox, url: str, session: requests.Session, flavour: str
) -> None:
    sandbox.settings("ci", flavour=flavour)
    address = f"{url}/job/delivery/job/toolchain/buildWithParameters"
    first = _post(session, address, params={"delay": "60sec"}, data={"VERSION": "1"})
    again = _post(session, address, params={"delay": "60sec"}, data={"VERSION": "1"})
    other = _post(session, address, params={"delay": "60sec"}, data={"VERSION": "2"})
    assert [first.status_code, again.status_code, other.status_code] == [201, 303, 201]
    assert first.headers["Location"] == again.headers["Location"] != other.headers["Location"]


def test_queue_items_wait_block_leave_and_vanish(
    sandbox: Sandbox, url: str, session: requests.Session
) -> None:
    slow, delayed = f"{url}/job/slow/build", f"{url}/job/no-parameters/build"
    waiting = _queue_item(session, _post(session, delayed, params={"delay": "60sec"}))
    assert waiting["_class"] == "hudson.model.Queue$WaitingItem"
    assert waiting["why"].startswith("In the quiet period")
    assert "executable" not in waiting
    until(lambda: _queue_item(session, _post(session, slow)).get("executable"))
    blocked = _queue_item(session, _post(session, slow))
    assert blocked["_class"] == "hudson.model.Queue$BlockedItem"
    stuck = _queue_item(session, _post(session, f"{url}/job/offline/build"))
    assert (stuck["_class"], stuck["stuck"]) == ("hudson.model.Queue$BuildableItem", True)
    job = _get(session, f"{url}/job/offline/api/json").json()
    assert (job["inQueue"], job["queueItem"]["id"]) == (True, stuck["id"])
    sandbox.settings("ci", executable_lag_seconds=60)
    left = _get(session, f"{url}/queue/item/{waiting['id'] + 1}/api/json").json()
    assert (left["_class"], left["executable"], left["cancelled"]) == (
        "hudson.model.Queue$LeftItem",
        None,
        False,
    )
    sandbox.settings("ci", queue_item_seconds=0)
    gone = _get(session, f"{url}/queue/item/{left['id']}/api/json")
    assert gone.status_code == 404
    builds = _get(session, f"{url}/job/slow/api/json", tree="builds[number,queueId]{0,50}").json()
    assert builds["builds"][0]["queueId"] == left["id"]


def test_queue_item_is_cancelled(sandbox: Sandbox, url: str, session: requests.Session) -> None:
    item = _queue_item(session, _post(session, f"{url}/job/offline/build"))
    cancel = f"{url}/queue/cancelItem"
    assert _post(session, cancel, params={"id": item["id"]}).status_code == 204
    assert _post(session, cancel, params={"id": item["id"]}).status_code == 404
    assert _post(session, cancel, params={"id": 999999}).status_code == 404
    again = _queue_item(session, _post(session, f"{url}/job/offline/build"))
    viewer = _session(*VIEWER)
    assert _post(viewer, cancel, params={"id": again["id"]}).status_code == 422
    assert _post(session, f"{url}/queue/item/{again['id']}/cancelQueue").status_code == 204
    assert _post(session, f"{url}/queue/item/{again['id']}/cancelQueue").status_code == 204
    # older releases do not report the outcome of a cancellation
    sandbox.settings("ci", version="2.204.1")
    old = _post(session, cancel, params={"id": 999999})
    assert (old.status_code, old.headers["Location"]) == (302, "/ci/")
    last = _queue_item(session, _post(session, f"{url}/job/offline/build?delay=60sec"))["id"]
    for number in (last, 999999):
        old = _post(session, f"{url}/queue/item/{number}/cancelQueue")
        assert (old.status_code, old.headers["Location"]) == (302, "/ci/")
    left = _get(session, f"{url}/queue/item/{last}/api/json").json()
    assert left["cancelled"] is True


def test_stop_term_and_kill_end_a_build(url: str, session: requests.Session) -> None:
    def start(job: str) -> str:
        _post(session, f"{url}/job/{job}/build")
        address = f"{url}/job/{job}/1"
        until(lambda: _get(session, f"{address}/api/json").status_code == 200 or None)
        return address

    stubborn = start("stubborn")
    for way in ("stop", "term"):
        assert _post(session, f"{stubborn}/{way}").status_code == 302
        assert _get(session, f"{stubborn}/api/json").json()["building"] is True
    assert _post(session, f"{stubborn}/kill").status_code == 302
    killed = _finished(session, stubborn)
    assert killed["result"] == "ABORTED"
    assert "Hard kill!" in _get(session, f"{stubborn}/consoleText").text
    freestyle = start("slow-freestyle")
    refused = _post(session, f"{freestyle}/kill")
    assert (refused.status_code, refused.headers["Location"]) == (
        302,
        f"{freestyle.replace(url, '/ci')}/kill/",
    )
    assert _get(session, f"{freestyle}/kill/").status_code == 404
    assert _get(session, f"{freestyle}/api/json").json()["building"] is True
    assert _post(session, f"{url}/job/slow-freestyle/lastBuild/stop").status_code == 302
    assert _finished(session, freestyle)["result"] == "ABORTED"
    # stopping a finished build is not an error
    assert _post(session, f"{freestyle}/stop").status_code == 302


# --- data -------------------------------------------------------------------------------------


def test_tree_selects_from_a_long_history(url: str, session: requests.Session) -> None:
    job = f"{url}/job/long-history/api/json"
    full = _get(session, job).json()
    assert len(full["builds"]) == 100
    assert "allBuilds" not in full
    assert set(full["builds"][0]) == {"_class", "number", "url"}
    assert len(_get(session, job, tree="allBuilds[number]").json()["allBuilds"]) == 120
    cut = _get(session, job, tree="builds[id,number,nope]{1,3},lastFailedBuild[result]").json()
    assert [build["number"] for build in cut["builds"]] == [119, 118]
    assert "nope" not in cut["builds"][0]
    assert cut["lastFailedBuild"]["result"] == "FAILURE"
    assert "timestamp" in _get(session, job, depth="1").json()["builds"][0]
    assert _get(session, job, tree="builds[number").status_code == 500
    assert _get(session, job, depth="deep").status_code == 500
    last_good = f"{url}/job/long-history/lastStableBuild/api/json"
    assert _get(session, last_good).json()["number"] == 119
    assert _get(session, f"{url}/job/slow/lastBuild/api/json").status_code == 404


def test_xpath_selects_nodes(sandbox: Sandbox, url: str, session: requests.Session) -> None:
    build = f"{url}/job/long-history/120/api/xml"
    value = "//action/parameter[name='VERSION']/value"
    found = _get(session, build, xpath=value)
    assert (found.status_code, found.text) == (200, "<value>2.0.0</value>")
    text = _get(session, build, xpath=f"{value}/text()")
    assert (text.status_code, "primitive XPath" in text.headers["X-Error"]) == (403, True)
    assert _get(session, build, xpath="string(//result)").status_code == 403
    assert _get(session, build, xpath="//nothing").status_code == 404
    assert _get(session, build, xpath="//action").status_code == 500
    wrapped = _get(session, build, xpath="//action/parameter", wrapper="all")
    assert wrapped.text.startswith("<all><parameter ")
    assert _get(session, build, xpath="//x", wrapper="1 2").status_code == 400
    relative = value.removeprefix("//")
    assert _get(session, build, xpath=relative).status_code == 404
    sandbox.settings("ci", flavour="written", xpath_primitives=True)
    assert _get(session, build, xpath=relative).text == "<value>2.0.0</value>"
    assert _get(session, build, xpath="string(//result)").text == "FAILURE"


def test_branch_names_are_encoded_twice(url: str, session: requests.Session) -> None:
    branches = f"{url}/job/delivery/job/service/job"
    branch = _get(session, f"{branches}/feature%252Fx/api/json").json()
    assert branch["url"] == f"{branches}/feature%252Fx/"
    assert (branch["name"], branch["displayName"]) == ("feature%2Fx", "feature/x")
    assert _get(session, f"{branches}/feature%2Fx/api/json").status_code == 404


def test_secrets_are_not_shown(url: str, session: requests.Session) -> None:
    job = f"{url}/job/secret-parameters"
    _post(session, f"{job}/buildWithParameters", data={"PASSWORD": "hush"})
    _finished(session, f"{job}/1")
    shown = _get(session, f"{job}/1/api/json", tree="actions[parameters[*]]")
    values = next(entry for entry in shown.json()["actions"] if "parameters" in entry)
    password = next(entry for entry in values["parameters"] if entry["name"] == "PASSWORD")
    assert "value" not in password
    masked = _get(_session(*OPERATOR), f"{job}/config.xml").text
    assert "********" in masked
    assert "default-secret" not in masked
    assert "hush" not in shown.text + _get(session, f"{job}/1/consoleText").text


def test_log_grows(url: str, session: requests.Session) -> None:
    _post(session, f"{url}/job/slow/build")
    log = f"{url}/job/slow/1/logText/progressiveText"

    def first() -> requests.Response | None:
        response = _get(session, log, start="0")
        return response if response.status_code == 200 else None

    begun = until(first)
    assert begun.headers["X-More-Data"] == "true"
    size = begun.headers["X-Text-Size"]
    assert begun.text.startswith("Started by user \x1b[8mha:")
    assert int(size) == len(begun.content.replace(b"\r\n", b"\n"))
    assert _get(session, log, start=size).content == b""
    _post(session, f"{url}/job/slow/1/stop")
    rest = _get(session, log, start=size)
    assert "X-More-Data" not in rest.headers
    assert rest.text.endswith("Finished: ABORTED\r\n")
    assert _get(session, log, start="99999").content == begun.content + rest.content


def test_successful_build_deploys_to_the_repository(
    sandbox: Sandbox, url: str, session: requests.Session
) -> None:
    job = f"{url}/job/delivery/job/toolchain"
    _post(session, f"{job}/buildWithParameters", data={"VERSION": "8.1"})

    def published() -> requests.Response | None:
        # poll the repository only; do not send requests to the CI server
        response = requests.get(
            f"{sandbox.urls['repo']}/api/build/toolchain",
            auth=("deployer", "deployer-password"),
            timeout=10,
        )
        return response if response.status_code == 200 and "/1" in response.text else None

    builds = until(published).json()["buildsNumbers"]
    assert [build["uri"] for build in builds].count("/1") == 1
    build = _finished(session, f"{job}/1")
    assert build["result"] == "SUCCESS"


# --- scripts ----------------------------------------------------------------------------------


def _wrapper(script: str, check_mode: bool = False, **args: Any) -> dict[str, str]:
    payload = json.dumps({"script": script, "args": args, "check_mode": check_mode})
    coded = base64.b64encode(payload.encode()).decode()
    text = f"// toolchain-wrapper v1\ndef payload = '{coded}'\ndef marker = '{MARKER}'\n"
    return {"script": text}


def _played(url: str, session: requests.Session, form: dict[str, str]) -> tuple[str, str, Any]:
    """Run a wrapped script. Return its output, `OK` or `FAIL`, and the data of the marker line."""
    response = _post(session, f"{url}/scriptText", data=form)
    assert response.status_code == 200
    printed, _marker, last = response.text.removesuffix("\n").rpartition(f"{MARKER}:")
    word, _colon, coded = last.partition(":")
    return printed, word, json.loads(base64.b64decode(coded))


def test_plain_scripts_always_return_200(url: str, session: requests.Session) -> None:
    def run(script: str) -> str:
        response = _post(session, f"{url}/scriptText", data={"script": script})
        assert response.status_code == 200
        return response.text

    assert run("println 'a' + 1\nreturn [x: 1]") == "a1\nResult: {x=1}\n"
    assert run("throw new RuntimeException('boom')").startswith(
        "java.lang.RuntimeException: boom\n\tat "
    )
    assert "sandbox cannot evaluate this script" in run("Jenkins.get().doSomething { it.else }")
    assert run("") == ""
    assert session.get(f"{url}/scriptText", timeout=10).status_code == 405


def test_wrapped_scripts_return_output_and_result(url: str, session: requests.Session) -> None:
    printed, word, data = _played(
        url, session, _wrapper('print "Hello ${args.name}"\nargs.count + 1', name="Zoë", count=2)
    )
    assert (printed, word, data) == ("Hello Zoë\n", "OK", {"result": 3, "text": "3"})
    printed, word, data = _played(
        url, session, _wrapper("println 'so far'\nthrow new IllegalStateException('no')")
    )
    assert (printed, word) == ("so far\n", "FAIL")
    assert data["exception"] == "java.lang.IllegalStateException: no"
    assert data["line"] == 2
    assert "\tat Script1.run" in data["trace"]
    _printed, word, data = _played(url, session, _wrapper("thisDoesNotCompile("))
    assert (word, "MultipleCompilationErrorsException" in data["exception"]) == ("FAIL", True)
    ended = _post(session, f"{url}/scriptText", data=_wrapper("println 'x'; System.exit(1)"))
    assert (ended.status_code, ended.text) == (200, "x\n")


def test_script_rules_keep_state(sandbox: Sandbox, url: str, session: requests.Session) -> None:
    rules = [
        {"match": "isDone", "when": {"done": True}, "result": True},
        {"match": "isDone", "result": False},
        {"match": "makeDone", "output": "made ${what}", "sets": {"done": True}},
    ]
    sandbox.settings("ci", scripts=rules)
    assert _played(url, session, _wrapper("isDone()"))[2]["result"] is False
    assert _played(url, session, _wrapper("makeDone()", what="it"))[0] == "made it\n"
    assert _played(url, session, _wrapper("isDone()"))[2] == {"result": True, "text": "true"}


def test_script_rule_changes_nothing_in_check_mode(
    sandbox: Sandbox, url: str, session: requests.Session
) -> None:
    rules = [{"match": "isDone", "when": {"done": True}, "result": 1}, {"match": "isDone"}]
    sandbox.settings("ci", scripts=[*rules, {"match": "makeDone", "sets": {"done": True}}])
    _played(url, session, _wrapper("makeDone()", check_mode=True))
    assert _played(url, session, _wrapper("isDone()"))[2]["result"] is None
    _played(url, session, _wrapper("makeDone()"))
    assert _played(url, session, _wrapper("isDone()"))[2]["result"] == 1


def test_scripts_know_the_runtime(sandbox: Sandbox, url: str, session: requests.Session) -> None:
    sandbox.settings("ci", java="21", version="2.492.1")
    text = "[java: System.getProperty('java.specification.version'), release: Jenkins.VERSION]"
    assert _played(url, session, _wrapper(text))[2]["result"] == {
        "java": "21",
        "release": "2.492.1",
    }
    for unknown in ("System.getProperty('user.home')", "Jenkins.instance", "System.nanoTime()"):
        assert _played(url, session, _wrapper(unknown))[1] == "FAIL"


def test_login_page_names_the_ssh_server(
    sandbox: Sandbox, url: str, session: requests.Session
) -> None:
    assert "X-SSH-Endpoint" not in _get(session, f"{url}/login").headers
    sandbox.settings("ci", ssh_endpoint="ci.example:2222")
    assert _get(session, f"{url}/login").headers["X-SSH-Endpoint"] == "ci.example:2222"


def test_script_in_check_mode_is_not_logged_as_a_write(
    sandbox: Sandbox, url: str, session: requests.Session
) -> None:
    mark = sandbox.mark()
    _played(url, session, _wrapper("return true", check_mode=True))
    _played(url, session, _wrapper("return true"))
    assert [entry["write"] for entry in sandbox.requests("ci", since=mark)] == [False, True]


# --- restart and flavours ---------------------------------------------------------------------


def test_safe_restart_shows_all_phases(
    sandbox: Sandbox, url: str, session: requests.Session, password_session: requests.Session
) -> None:
    phases = ("down", "refused", "without_users", "boot")
    sandbox.settings("ci", **{f"restart_{phase}_seconds": 1.0 for phase in phases})
    before = _get(session, f"{url}/login").headers["X-Jenkins-Session"]
    issued = _get(password_session, f"{url}/crumbIssuer/api/json").json()
    form = _get(session, f"{url}/safeRestart")
    assert form.status_code == 200
    _post(session, f"{url}/job/no-parameters/build")
    until(lambda: _get(session, f"{url}/job/no-parameters/1/api/json").ok or None)
    assert _post(session, f"{url}/safeRestart").status_code == 302
    draining = _get(session, f"{url}/api/json")
    assert draining.json()["quietingDown"] is True
    seen: list[str] = []

    def back() -> requests.Response | None:
        try:
            response = _get(session, f"{url}/login")
        except requests.ConnectionError:
            seen.append("no answer")
            return None
        if response.status_code == 401:
            page = requests.get(f"{url}/login", timeout=10)
            assert "getting ready" in page.text
        message = "restarting" if "restarting" in response.text else "getting ready"
        seen.append(message if response.status_code == 503 else str(response.status_code))
        return response if response.headers["X-Jenkins-Session"] != before else None

    assert until(back).status_code == 200
    assert list(dict.fromkeys(seen)) == ["200", "restarting", "no answer", "401", "getting ready"]
    header = {issued["crumbRequestField"]: issued["crumb"]}
    stale = _post(password_session, f"{url}/job/slow/build", headers=header)
    assert stale.status_code == 403
    sandbox.settings("ci", restart_supported=False)
    assert _post(session, f"{url}/safeRestart").status_code == 500


def test_safe_restart_waits_for_builds_and_can_be_cancelled(
    url: str, session: requests.Session
) -> None:
    before = _get(session, f"{url}/login").headers["X-Jenkins-Session"]
    for job in ("slow", "slow-freestyle"):
        _post(session, f"{url}/job/{job}/build")
    tree = "busyExecutors,computer[executors[currentExecutable[number]],oneOffExecutors[idle]]"

    def both() -> dict[str, Any] | None:
        shown = _get(session, f"{url}/computer/api/json", tree=tree).json()
        return shown if shown["busyExecutors"] == 2 else None

    (node,) = until(both)["computer"]
    (executor,) = node["executors"]
    assert executor["currentExecutable"]["number"] == 1
    assert len(node["oneOffExecutors"]) == 1
    _post(session, f"{url}/safeRestart")
    assert _get(session, f"{url}/api/json").json()["quietingDown"] is True
    _post(session, f"{url}/safeRestart", data={"cancel": "true"})
    assert _get(session, f"{url}/api/json").json()["quietingDown"] is False
    assert _get(session, f"{url}/login").headers["X-Jenkins-Session"] == before


def test_restart_completes_pending_plugin_changes(
    sandbox: Sandbox, url: str, session: requests.Session
) -> None:
    waiting = [
        {"shortName": "enabled", "enabled": True, "active": False},
        {"shortName": "removed", "deleted": True},
        {"shortName": "updated", "version": "1.0", "update_waiting": "2.0"},
        {"shortName": "broken", "active": False, "fails_to_load": True},
    ]
    sandbox.seed({"ci": {"plugins": waiting}})

    def plugins() -> dict[str, Any]:
        tree = "plugins[shortName,version,active]"
        shown = _get(session, f"{url}/pluginManager/api/json", tree=tree).json()["plugins"]
        return {one["shortName"]: (one["version"], one["active"]) for one in shown}

    def restart_needed() -> bool:
        shown = _get(session, f"{url}/updateCenter/api/json").json()
        return bool(shown["restartRequiredForCompletion"])

    before = plugins()
    assert before["updated"] == ("1.0", True)
    assert restart_needed()
    mark = _get(session, f"{url}/login").headers["X-Jenkins-Session"]
    _post(session, f"{url}/safeRestart")

    def back() -> bool | None:
        try:
            response = _get(session, f"{url}/login")
        except requests.ConnectionError:
            return None
        return response.headers["X-Jenkins-Session"] != mark or None

    until(back)
    after = plugins()
    assert set(before) - set(after) == {"removed"}
    assert after["enabled"] == ("1.0", True)
    assert after["updated"] == ("2.0", True)
    assert after["broken"] == ("1.0", False)
    assert not restart_needed()


def test_nothing_starts_during_quiet_down(url: str, session: requests.Session) -> None:
    assert _post(session, f"{url}/quietDown").status_code == 302
    item = _queue_item(session, _post(session, f"{url}/job/no-parameters/build"))
    assert item["why"] == "Jenkins is about to shut down"
    assert _post(session, f"{url}/cancelQuietDown").status_code == 302
    assert _finished(session, f"{url}/job/no-parameters/1")["result"] == "SUCCESS"


def test_documented_flavour_has_only_documented_routes(
    sandbox: Sandbox, url: str, session: requests.Session
) -> None:
    sandbox.settings("ci", flavour="written")
    job = f"{url}/job/delivery/job/toolchain"
    trigger = _post(session, f"{job}/buildWithParameters", data={"VERSION": "1"})
    assert trigger.status_code == 201
    assert _get(session, f"{trigger.headers['Location']}api/json").status_code == 404
    build = _finished(session, f"{job}/1")
    assert {"artifact", "builtOn", "queueId"} <= set(build)
    assert "artifacts" not in build
    values = next(entry for entry in build["actions"] if "parameters" in entry)["parameters"]
    assert {entry["name"]: entry["value"] for entry in values}["PUBLISH"] == "true"
    assert _get(session, f"{job}/1/consoleText").status_code == 404
    assert _get(session, f"{url}/pluginManager/api/json", depth="1").ok
    sandbox.settings("ci", unlisted_endpoints=True)
    assert _get(session, f"{trigger.headers['Location']}api/json").status_code == 200


def test_plugins_show_fields_only_on_request(url: str, session: requests.Session) -> None:
    address = f"{url}/pluginManager/api/json"
    assert _get(session, address).json()["plugins"] == [{}] * 4
    asked = _get(session, address, tree="plugins[shortName,enabled]", pretty="1")
    assert {"shortName": "ant", "enabled": False} in asked.json()["plugins"]
    assert "\n" in asked.text


def test_state_survives_a_restart_of_the_sandbox(tmp_path: Any) -> None:
    database = str(tmp_path / "state.db")
    with _session(USER, TOKEN) as session:
        with Sandbox.start(flavour="real", database=database) as sandbox:
            job = f"{sandbox.urls['ci']}/job/no-parameters"
            _post(session, f"{job}/build")
            first = _finished(session, f"{job}/1")
            mark = _get(session, job).headers["X-Jenkins-Session"]
        with Sandbox.start(flavour="real", database=database) as sandbox:
            job = f"{sandbox.urls['ci']}/job/no-parameters"
            again = _get(session, f"{job}/1/api/json")
    assert again.json()["timestamp"] == first["timestamp"]
    assert again.headers["X-Jenkins-Session"] != mark
