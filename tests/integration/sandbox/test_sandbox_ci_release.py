# SPDX-License-Identifier: GPL-3.0-or-later
"""Test jobs, plugins and artifacts of the sandbox's CI server with third-party clients."""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import jenkins
import jenkinsapi.jenkins
import pytest
import requests
from jenkinsapi.plugin import Plugin

from sandbox.ci.jobs import ciphers
from sandbox.client import Sandbox
from tests.integration.sandbox.clients import Client, until

USER, TOKEN = "builder", "builder-api-token-1234567890"
FOLDER_CLASS = "com.cloudbees.hudson.plugins.folder.Folder"
MULTIBRANCH = "org.jenkinsci.plugins.workflow.multibranch.WorkflowMultiBranchProject"
FACTORY = "org.jenkinsci.plugins.workflow.multibranch.WorkflowBranchProjectFactory"
SOURCES = "jenkins.branch.MultiBranchProject$BranchSourceList"
SOURCE = "jenkins.plugins.git.GitSCMSource"
CONFIG = """<?xml version='1.1' encoding='UTF-8'?>
<project>
  <description>Zoë's job</description>
  <unheardOf>x</unheardOf>
  <builders>
    <hudson.tasks.Shell><command>make</command><nonsense/></hudson.tasks.Shell>
    <hudson.plugins.timestamper.Step/>
  </builders>
  <properties>
    <hudson.model.ParametersDefinitionProperty><parameterDefinitions>
      <hudson.model.StringParameterDefinition>
        <name>VERSION</name><defaultValue>1</defaultValue>
      </hudson.model.StringParameterDefinition>
      <hudson.model.PasswordParameterDefinition>
        <name>KEY</name><defaultValue>hush</defaultValue>
      </hudson.model.PasswordParameterDefinition>
    </parameterDefinitions></hudson.model.ParametersDefinitionProperty>
  </properties>
  <scm class="hudson.plugins.git.GitSCM" plugin="git@1.0"><password>hush</password></scm>
</project>"""


@pytest.fixture
def sandbox(fresh: Callable[[str], Sandbox]) -> Sandbox:
    found = fresh("real")
    found.settings("ci", install_seconds=0.05)
    return found


class Ci(Client):
    """Send requests as a user with an API token."""

    def __init__(self, sandbox: Sandbox, login: tuple[str, str] = (USER, TOKEN)) -> None:
        super().__init__(sandbox, "ci", login)

    def data(self, path: str, **query: str) -> dict[str, Any]:
        response = self("GET", f"{path}/api/json", params=query)
        assert response.status_code == 200, response.text
        found: dict[str, Any] = response.json()
        return found

    def create(self, name: str, text: str = CONFIG, folder: str = "") -> requests.Response:
        headers = {"Content-Type": "application/xml; charset=utf-8"}
        path = f"{folder}/createItem"
        return self("POST", path, params={"name": name}, data=text.encode(), headers=headers)

    def config(self, job: str) -> str:
        return self("GET", f"/job/{job}/config.xml").text

    def save(self, job: str, text: str) -> requests.Response:
        headers = {"Content-Type": "application/xml; charset=utf-8"}
        return self("POST", f"/job/{job}/config.xml", data=text.encode(), headers=headers)

    def built(self, job: str, number: int = 1) -> dict[str, Any]:
        """Wait until a build has finished, and return it."""

        def look() -> dict[str, Any] | None:
            response = self("GET", f"{job}/{number}/api/json")
            found: dict[str, Any] = response.json() if response.status_code == 200 else {}
            return found if found.get("inProgress") is False else None

        return until(look)


@pytest.fixture
def ci(sandbox: Sandbox) -> Iterator[Ci]:
    found = Ci(sandbox)
    with found.session:
        yield found


@pytest.fixture
def server(sandbox: Sandbox) -> jenkins.Jenkins:
    return jenkins.Jenkins(sandbox.urls["ci"], USER, TOKEN)


@pytest.fixture
def other(sandbox: Sandbox) -> jenkinsapi.jenkins.Jenkins:
    return jenkinsapi.jenkins.Jenkins(sandbox.urls["ci"], USER, TOKEN)


# --- third-party clients --------------------------------------------------------------------------


def test_python_jenkins_manages_jobs(server: jenkins.Jenkins) -> None:
    server.create_job("made", CONFIG)
    assert server.get_job_info("made")["description"] == "Zoë's job"
    with pytest.raises(jenkins.JenkinsException, match="already exists"):
        server.create_job("made", CONFIG)
    server.reconfig_job("made", CONFIG.replace("Zoë", "Joe"))
    assert "Joe" in server.get_job_config("made")
    server.disable_job("made")
    assert server.get_job_info("made")["buildable"] is False
    server.enable_job("made")
    server.copy_job("made", "copied")
    assert server.get_job_info("copied")["buildable"] is False
    server.rename_job("made", "renamed")
    assert server.job_exists("renamed")
    assert not server.job_exists("made")
    server.delete_job("renamed")
    assert not server.job_exists("renamed")


def test_python_jenkins_manages_folders(server: jenkins.Jenkins) -> None:
    server.create_folder("made")
    server.create_job("made/inner", jenkins.EMPTY_CONFIG_XML)
    assert server.is_folder("made")
    assert [job["name"] for job in server.get_job_info("made")["jobs"]] == ["inner"]
    server.delete_job("made")
    assert not server.job_exists("made/inner")


def test_jenkinsapi_manages_jobs(other: jenkinsapi.jenkins.Jenkins) -> None:
    job = other.jobs.create("made", CONFIG)
    assert job.get_params_list() == ["VERSION", "KEY"]
    job.disable()
    job.poll()
    assert not job.is_enabled()
    job.update_config(CONFIG.removeprefix("<?xml version='1.1' encoding='UTF-8'?>\n"))
    assert job.is_enabled()
    assert other.jobs.copy("made", "copied").name == "copied"
    other.jobs.rename("copied", "renamed")
    del other.jobs["renamed"]
    assert "renamed" not in other.jobs


def test_jenkinsapi_manages_api_tokens(sandbox: Sandbox, other: jenkinsapi.jenkins.Jenkins) -> None:
    secret = other.generate_new_api_token("build trigger")
    issued = jenkinsapi.jenkins.Jenkins(sandbox.urls["ci"], USER, secret)
    issued.revoke_api_token("of nobody")
    address = f"{sandbox.urls['ci']}/me/descriptorByName/jenkins.security.ApiTokenProperty"
    given = {"newTokenName": "other"}
    made = requests.post(f"{address}/generateNewToken", given, auth=(USER, secret), timeout=10)
    data = made.json()["data"]
    # not even an administrator creates the tokens of others
    address = address.replace("/me/", "/user/viewer/")
    made = requests.post(f"{address}/generateNewToken", given, auth=(USER, secret), timeout=10)
    assert made.status_code == 403
    other.revoke_api_token(data["tokenUuid"])
    with pytest.raises(requests.HTTPError, match="401"):
        jenkinsapi.jenkins.Jenkins(sandbox.urls["ci"], USER, data["tokenValue"])


def test_jenkinsapi_sends_files(other: jenkinsapi.jenkins.Jenkins, tmp_path: Path) -> None:
    settings = BytesIO(b"[main]\n" * 1000)
    item = other["delivery/package"].invoke(
        build_params={"VERSION": "2.0"}, files={"SETTINGS": settings}
    )
    item.block_until_complete(delay=0.02)
    build = other["delivery/package"].get_last_build()
    artifacts = build.get_artifact_dict()
    assert sorted(artifacts) == ["dist/app-2.0.txt", "dist/doc/readme.txt", "settings.ini"]
    assert artifacts["settings.ini"].get_data() == settings.getvalue()
    # the client compares the digest with the server's fingerprint
    saved = artifacts["dist/app-2.0.txt"].save(str(tmp_path / "app-2.0.txt"), True)
    assert Path(saved).read_text() == "app 2.0\n"


def test_jenkinsapi_manages_plugins(other: jenkinsapi.jenkins.Jenkins) -> None:
    plugins = other.plugins
    plugins._install_plugin_from_updatecenter(Plugin("timestamper@latest"))
    until(lambda: plugins._plugin_has_finished_installation(Plugin("timestamper@latest")) or None)
    plugins.poll()
    assert plugins["timestamper"].version == "1.28"
    assert plugins.restart_required is False
    plugins.disable_plugin("git")
    plugins.enable_plugin("ant")
    plugins.poll()
    assert (plugins["git"].enabled, plugins["ant"].enabled) == (False, True)
    del plugins["git"]
    assert plugins["git"].deleted is True


def test_jenkinsapi_updates_a_plugin_and_restarts(other: jenkinsapi.jenkins.Jenkins) -> None:
    plugins = other.plugins
    before, wanted = plugins["git"].version, Plugin("git@5.7.0")
    plugins._install_plugin_from_updatecenter(wanted)
    until(lambda: plugins._plugin_has_finished_installation(wanted) or None)
    plugins.poll()
    # the old version stays active until the server restarts
    assert (plugins["git"].version, plugins.restart_required) == (before, True)
    other.safe_restart(wait_for_reboot=False)

    def loaded() -> bool | None:
        try:
            plugins.poll()
        except requests.RequestException:
            return None
        return plugins["git"].version == "5.7.0" or None

    assert until(loaded)


def test_python_jenkins_reads_artifacts_and_deletes_builds(server: jenkins.Jenkins) -> None:
    item = server.build_job("delivery/package", {"VERSION": "2.0"})
    number = until(lambda: server.get_queue_item(item).get("executable"))["number"]
    until(lambda: server.get_build_info("delivery/package", number)["result"])
    shown = server.get_build_info("delivery/package", number)["artifacts"]
    assert [one["relativePath"] for one in shown[:2]] == ["dist/app-2.0.txt", "dist/doc/readme.txt"]
    content = server.get_build_artifact_as_bytes("delivery/package", number, "dist/app-2.0.txt")
    assert content == b"app 2.0\n"
    server.delete_build("delivery/package", number)
    with pytest.raises(jenkins.JenkinsException, match="does not exist"):
        server.get_build_info("delivery/package", number)


# --- jobs -----------------------------------------------------------------------------------------


def test_invalid_creation_is_rejected(ci: Ci) -> None:
    def error(response: requests.Response) -> tuple[int, str]:
        return response.status_code, response.headers.get("X-Error", "")

    assert ci.create("made").content == b""
    assert error(ci.create("made")) == (400, "A job already exists with the name  made")
    assert error(ci.create("a/b")) == (400, "/  is an unsafe character")
    assert ci.create("made%20 ".replace("%20", "")).status_code == 400
    assert ci.create("x", folder="/job/nowhere").status_code == 404
    assert ci.create("x", folder="/job/made").status_code == 404
    assert ci.create("x", "<project>").status_code == 500
    assert ci.create("x", "<maven2-moduleset/>").status_code == 500
    create = "/createItem?name=x"
    assert error(ci("POST", create)) == (400, "No Content-Type header set")
    typed = {"Content-Type": "text/plain"}
    assert error(ci("POST", create, headers=typed)) == (400, "No mode given")
    assert error(ci("POST", "/createItem", data={"name": "x", "mode": "nonsense"}))[0] == 400
    assert error(ci("POST", f"{create}&mode=copy&from=y")) == (400, "No such job: y")
    assert ci("GET", "/job/x/api/json").status_code == 404
    assert ci("GET", create).status_code == 405


def test_copied_job_is_held_until_saved(ci: Ci) -> None:
    copied = ci("POST", "/createItem?name=x&mode=copy&from=/no-parameters")
    address = "/ci/job/x/configure"
    assert (copied.status_code, copied.headers["Location"]) == (302, address)
    assert ci("POST", "/job/x/build").status_code == 409
    assert ci.data("/job/x")["buildable"] is False
    ci("POST", "/job/x/disable")
    ci("POST", "/job/x/enable")
    assert ci("POST", "/job/x/build").status_code == 409
    assert ci.save("x", ci.config("x")).status_code == 200
    assert ci("POST", "/job/x/build").status_code == 201


def test_copied_folder_contains_its_jobs(ci: Ci) -> None:
    assert ci("POST", "/createItem?name=x&mode=copy&from=delivery").status_code == 302
    assert {job["name"] for job in ci.data("/job/x")["jobs"]} >= {"toolchain", "package"}
    assert ci.data("/job/x/job/service")["name"] == "service"


def test_stored_configuration_differs_from_the_sent_one(ci: Ci) -> None:
    ci.create("x")
    stored = ci.config("x")
    assert stored.startswith("<?xml version='1.1' encoding='UTF-8'?>")
    assert "unheardOf" not in stored
    assert "nonsense" not in stored
    assert "timestamper" not in stored
    assert "<command>make</command>" in stored
    assert "<configuredLocalRules/>" in stored
    assert "<canRoam>false</canRoam>" in stored
    assert '<scm class="hudson.plugins.git.GitSCM" plugin="git@5.2.2">' in stored
    assert "hush" not in stored
    assert stored.index("<properties>") < stored.index("<scm") < stored.index("<builders>")


def test_server_completes_configurations(ci: Ci) -> None:
    old = "<project><logRotator><daysToKeep>3</daysToKeep></logRotator></project>"
    owned = 'reference="../.."/>'
    added = {
        old: ["BuildDiscarderProperty", '<strategy class="hudson.tasks.LogRotator">'],
        f"<{FOLDER_CLASS}/>": ["DefaultFolderViewHolder", "AllView", "StockFolderIcon"],
        f'<{MULTIBRANCH}><factory class="{FACTORY}"/><sources class="{SOURCES}"><data>'
        f'<jenkins.branch.BranchSource><source class="{SOURCE}"/></jenkins.branch.BranchSource>'
        f"</data></sources></{MULTIBRANCH}>": ["DefaultOrphanedItemStrategy", "<id>", owned],
    }
    for text, parts in added.items():
        ci.create("x", text)
        first = ci.config("x")
        assert all(part in first for part in parts), first
        assert "<actions/>" not in first
        assert "<actions/>" in ci.config("x")
        ci("POST", "/job/x/doDelete")


def _secrets(text: str) -> list[str | None]:
    return [ciphers.decrypt(found) for found in re.findall(r"\{[A-Za-z0-9+/=]+\}", text)]


def test_secrets_are_encrypted_again_at_every_save(ci: Ci) -> None:
    ci.create("x")
    ci.config("x")  # adds `actions`
    first = ci.config("x")
    assert _secrets(first) == ["hush", "hush"]
    assert "{AQAAABAAAAAQ" in first
    assert ci.config("x") == first
    ci.save("x", first)
    second = ci.config("x")
    assert second != first
    # the server decrypts a saved secret instead of encrypting it again
    assert _secrets(second) == ["hush", "hush"]


def test_masked_secrets_sent_back_are_stored(sandbox: Sandbox, ci: Ci) -> None:
    reader = Ci(sandbox, ("operator", "operator-api-token-1234567890"))
    masked = reader.config("secret-parameters")
    assert "<defaultValue>********</defaultValue>" in masked
    assert _secrets(ci.config("secret-parameters")) == ["default-secret"]
    ci.save("secret-parameters", masked)
    assert _secrets(ci.config("secret-parameters")) == ["********"]


@pytest.mark.parametrize("text", ["<project>", "<flow-definition/>", "<unheard-of/>"])
def test_invalid_configuration_is_rejected(ci: Ci, text: str) -> None:
    before = ci.config("no-parameters")
    assert ci.save("no-parameters", text).status_code == 500
    assert ci.config("no-parameters") == before


def test_disabled_job_drops_queued_items(ci: Ci) -> None:
    ci("POST", "/job/offline/build")
    disabled = ci("POST", "/job/offline/disable")
    address = "/ci/job/offline/"
    assert (disabled.status_code, disabled.headers["Location"]) == (302, address)
    assert ci.data("/queue")["items"] == []
    assert "<disabled>true</disabled>" in ci.config("offline")
    assert ci("POST", "/job/delivery/disable").status_code == 404
    text = ci.config("offline").replace("<disabled>true", "<disabled>false")
    ci.save("offline", text)
    assert ci.data("/job/offline")["buildable"] is True


def test_deletion_removes_everything_below(ci: Ci) -> None:
    ci("POST", "/job/slow/build")
    until(lambda: ci.data("/job/slow")["lastBuild"])
    assert ci("DELETE", "/job/slow/").status_code == 204
    assert ci("DELETE", "/job/slow/").status_code == 404
    ci.create("slow")
    assert ci.data("/job/slow")["nextBuildNumber"] == 1
    gone = ci("POST", "/job/delivery/job/service/doDelete")
    assert (gone.status_code, gone.headers["Location"]) == (302, "/ci/job/delivery/")
    assert ci("GET", "/job/delivery/job/service/job/main/api/json").status_code == 404
    assert ci("GET", "/job/delivery/job/toolchain/api/json").status_code == 200


# --- builds, files, queue -------------------------------------------------------------------------


@pytest.fixture
def package(ci: Ci) -> str:
    """Return the path of a finished build with artifacts."""
    form = {"VERSION": (None, "3.0"), "SETTINGS": ("dir\\s.ini", b"0123456789")}
    response = ci("POST", "/job/delivery/job/package/buildWithParameters", files=form)
    assert response.status_code == 201
    ci.built("/job/delivery/job/package")
    return "/job/delivery/job/package/1"


def test_artifacts_have_names_and_fingerprints(ci: Ci, package: str) -> None:
    build = ci.data(package)
    assert "fingerprint" not in build
    assert [set(entry) for entry in build["artifacts"]] == [
        {"displayPath", "fileName", "relativePath"}
    ] * 3
    shown = ci.data(package, tree="fingerprint[fileName,hash]")["fingerprint"]
    digests = {entry["fileName"]: entry["hash"] for entry in shown}
    md5 = hashlib.md5(b"0123456789").hexdigest()
    assert digests["settings.ini"] == md5
    origin = ci.data(f"/fingerprint/{md5}")
    assert origin["original"] == {"name": "delivery/package", "number": 1}
    assert ci("GET", f"/fingerprint/{'0' * 32}/api/json").status_code == 404


@pytest.mark.parametrize(
    ("path", "headers", "expected"),
    [
        ("settings.ini", {}, (200, b"0123456789")),
        ("settings.ini", {"Range": "bytes=2-4"}, (206, b"234")),
        ("settings.ini", {"Range": "bytes=7-"}, (206, b"789")),
        ("settings.ini", {"Range": "bytes=99-"}, (200, b"0123456789")),
        ("settings.ini", {"If-Modified-Since": "Fri, 31 Dec 2100 00:00:00 GMT"}, (304, b"")),
        ("dist/app-3.0.txt", {}, (200, b"app 3.0\n")),
        ("dist", {}, (302, b"")),
        ("missing", {}, (404, None)),
        ("..%2Fconfig.xml", {}, (400, None)),
    ],
)
def test_artifacts_are_fetched(
    ci: Ci,
    package: str,
    path: str,
    headers: dict[str, str],
    expected: tuple[int, bytes | None],
) -> None:
    status, content = expected
    response = ci("GET", f"{package}/artifact/{path}", headers=headers)
    assert response.status_code == status
    assert content is None or response.content == content
    assert "ETag" not in response.headers


def test_artifacts_are_served_by_head_as_archive_and_from_a_store(
    sandbox: Sandbox, ci: Ci, package: str
) -> None:
    head = ci("HEAD", f"{package}/artifact/settings.ini")
    assert (head.headers["Content-Length"], head.headers["Accept-Ranges"]) == ("10", "bytes")
    index = ci("GET", f"{package}/artifact/dist/")
    assert "text/html" in index.headers["Content-Type"]
    zipped = ci("GET", f"{package}/artifact/*zip*/archive.zip")
    assert "Content-Length" not in zipped.headers
    with zipfile.ZipFile(BytesIO(zipped.content)) as archive:
        assert archive.read("archive/settings.ini") == b"0123456789"
    sandbox.settings("ci", artifact_redirect=True)
    address = ci("GET", f"{package}/artifact/settings.ini").headers["Location"]
    assert ci("GET", address).status_code == 400
    assert requests.get(address, timeout=10).content == b"0123456789"


def test_file_parameters_are_stored(ci: Ci, package: str) -> None:
    actions = ci.data(package)["actions"]
    values = next(entry["parameters"] for entry in actions if "parameters" in entry)
    assert values[1] == {
        "_class": "hudson.model.FileParameterValue",
        "name": "SETTINGS",
        "originalFileName": "s.ini",
    }
    job = "/job/delivery/job/package"
    # a part without a file name is a plain field; the server ignores it
    field = {"SETTINGS": (None, "text")}
    assert ci("POST", f"{job}/buildWithParameters", files=field).status_code == 201
    second = ci.built(job, 2)
    assert "settings.ini" not in [entry["fileName"] for entry in second["artifacts"]]
    given = json.dumps({"parameter": [{"name": "SETTINGS", "file": "file0"}]})
    form = {"json": (None, given), "file0": ("x", b"file")}
    assert ci("POST", f"{job}/build", files=form).status_code == 201
    missing = {"json": (None, given)}
    assert ci("POST", f"{job}/build", files=missing).status_code == 500


def test_builds_with_files_are_never_merged(ci: Ci) -> None:
    places = set()
    for _trigger in range(2):
        response = ci(
            "POST",
            "/job/delivery/job/package/buildWithParameters?delay=60sec",
            files={"SETTINGS": ("s.ini", b"x")},
        )
        assert response.status_code == 201
        places.add(response.headers["Location"])
    assert len(places) == 2


def test_large_files_are_streamed(sandbox: Sandbox, ci: Ci) -> None:
    content = bytes(range(256)) * 40_000
    response = ci(
        "POST",
        "/job/delivery/job/package/buildWithParameters",
        files={"SETTINGS": ("large", content)},
    )
    assert response.status_code == 201
    ci.built("/job/delivery/job/package")
    fetched = ci("GET", "/job/delivery/job/package/1/artifact/settings.ini")
    assert hashlib.sha256(fetched.content).digest() == hashlib.sha256(content).digest()


def test_complete_log_has_no_length(ci: Ci, package: str) -> None:
    log = ci("GET", f"{package}/consoleText")
    assert log.text.endswith("Finished: SUCCESS\n")
    assert "Content-Length" not in log.headers


def test_addresses_are_relative_and_suffixes_ignored(ci: Ci, package: str) -> None:
    stopped = ci("POST", f"{package}/stop")
    assert (stopped.status_code, stopped.headers["Location"]) == (302, f"/ci{package}/")
    back = ci("POST", f"{package}/stop", headers={"Referer": "http://example.com/"})
    assert back.headers["Location"] == "http://example.com/"
    assert ci("GET", f"{package}/api/json/of/anything").json()["number"] == 1
    number = ci("GET", "/job/delivery/job/package/lastBuild/buildNumber")
    assert (number.text, number.headers["Content-Type"]) == ("1", "text/plain; charset=utf-8")
    root = ci("GET", "/")
    for name in ("X-Jenkins", "X-Hudson", "X-Instance-Identity", "Server"):
        assert root.headers[name]


# --- plugins --------------------------------------------------------------------------------------


def _install(ci: Ci, *wanted: str) -> requests.Response:
    lines = "".join(f'<install plugin="{each}"/>' for each in wanted)
    headers = {"Content-Type": "text/xml"}
    path = "/pluginManager/installNecessaryPlugins"
    return ci("POST", path, data=f"<jenkins>{lines}</jenkins>", headers=headers)


def _ended(ci: Ci) -> dict[str, tuple[str, str | None]]:
    """Wait until all installations have finished. Return the status type and error by plugin."""
    tree = "jobs[id,type,errorMessage,status[type,success],plugin[name,version]]"

    def look() -> dict[str, tuple[str, str | None]] | None:
        found = [job for job in ci.data("/updateCenter", tree=tree)["jobs"] if "plugin" in job]
        states = {
            job["plugin"]["name"]: (job["status"]["type"], job["errorMessage"]) for job in found
        }
        busy = {"Pending", "Installing"} & {state for state, _error in states.values()}
        return None if busy else states

    return until(look)


def _plugins(ci: Ci) -> dict[str, dict[str, Any]]:
    tree = "plugins[shortName,version,active,enabled,deleted,hasUpdate]"
    found = ci.data("/pluginManager", tree=tree)["plugins"]
    return {each["shortName"]: each for each in found}


def test_plugins_are_installed_with_dependencies(ci: Ci) -> None:
    response = _install(ci, "slack@0", "unheard-of@1", "timestamper@99", "ant@1.0")
    updates = "/ci/pluginManager/updates/"
    assert (response.status_code, response.headers["Location"]) == (302, updates)
    # the server does not report unknown names, or versions newer than the update site has
    assert _ended(ci) == {"plain-credentials": ("Success", None), "slack": ("Success", None)}
    assert _plugins(ci)["slack"]["active"] is True
    assert ci.data("/updateCenter")["restartRequiredForCompletion"] is False
    assert _install(ci, "slack").status_code == 500


def test_update_waits_for_a_restart(sandbox: Sandbox, ci: Ci) -> None:
    _install(ci, "git@5.7.0", "late@1")
    ended = _ended(ci)
    assert {name: state for name, (state, _error) in ended.items()} == {
        "git": "SuccessButRequiresRestart",
        "late": "SuccessButRequiresRestart",
    }
    assert _plugins(ci)["git"]["version"] == "5.2.2"
    assert "late" not in _plugins(ci)
    assert ci.data("/updateCenter")["restartRequiredForCompletion"] is True
    mark = ci("GET", "/login").headers["X-Jenkins-Session"]
    sandbox.settings("ci", restart_refused_seconds=0, restart_down_seconds=0)
    ci("POST", "/safeRestart")
    until(lambda: ci("GET", "/login").headers["X-Jenkins-Session"] != mark or None)
    assert _plugins(ci)["git"]["version"] == "5.7.0"
    assert _plugins(ci)["late"]["active"] is True
    shown = ci.data("/updateCenter")
    assert (shown["restartRequiredForCompletion"], shown["jobs"]) == (False, [])


def test_failed_installation_has_a_reason(sandbox: Sandbox, ci: Ci) -> None:
    needy = {"name": "needy", "version": "1.0", "dependencies": ["broken"]}
    sandbox.seed({"ci": {"update_site": [needy]}})
    sent = ci("POST", "/pluginManager/installPlugins", json={"plugins": ["needy"]}).json()
    ended = _ended(ci)
    assert ended["broken"][0] == ended["needy"][0] == "Failure"
    assert "Failed to download" in str(ended["broken"][1])
    assert ended["needy"][1] == "Failed to load: needy - Plugin is missing: broken"
    correlation = sent["data"]["correlationId"]
    found = ci("GET", f"/updateCenter/installStatus?correlationId={correlation}").json()["data"]
    assert [
        (job["name"], job["installStatus"], job["requiresRestart"]) for job in found["jobs"]
    ] == [("needy", "Failure", "false")]
    unknown = ci("POST", "/pluginManager/installPlugins", json={"plugins": ["unheard-of"]}).json()
    assert unknown == {"status": "error", "message": "No such plugin: unheard-of"}


def test_progress_of_installations_is_shown(sandbox: Sandbox, ci: Ci) -> None:
    sandbox.settings("ci", install_seconds=60)
    _install(ci, "timestamper@0", "slack@0")
    jobs = ci("GET", "/updateCenter/installStatus").json()["data"]["jobs"]
    assert [(job["name"], job["installStatus"]) for job in jobs] == [
        ("timestamper", "Installing"),
        ("plain-credentials", "Pending"),
        ("slack", "Pending"),
    ]


def test_update_site_lists_offers(sandbox: Sandbox, ci: Ci) -> None:
    tree = "sites[availables[name,version],updates[name,version]]"
    (site,) = ci.data("/updateCenter", tree=tree)["sites"]
    assert {update["name"]: update["version"] for update in site["updates"]}["git"] == "5.7.0"
    assert "timestamper" in {available["name"] for available in site["availables"]}
    assert ci.data("/updateCenter/site/default", tree="updates[name]")["updates"]
    sandbox.settings("ci", site_fetched=False)
    assert ci.data("/updateCenter", tree=tree)["sites"][0]["updates"] == []
    assert ci("POST", "/pluginManager/checkUpdatesServer").status_code == 200
    assert ci.data("/updateCenter", tree=tree)["sites"][0]["updates"]


def test_checking_prerequisites_is_not_logged_as_a_write(sandbox: Sandbox, ci: Ci) -> None:
    mark = sandbox.mark()
    text = '<x><y plugin="git@5.6"/><z plugin="nope@1"/><z plugin="ant@1.13"/></x>'
    response = ci("POST", "/pluginManager/prevalidateConfig", data=text)
    assert response.json() == [
        {"name": "git", "version": "5.6", "mode": "old"},
        {"name": "nope", "version": "1", "mode": "missing"},
    ]
    assert sandbox.requests("ci", writes=True, since=mark) == []


def test_plugin_changes_wait_for_a_restart(ci: Ci) -> None:
    manager = "/pluginManager/plugin"
    assert ci("POST", f"{manager}/git/makeDisabled").status_code == 200
    assert ci("POST", f"{manager}/ant/makeEnabled").status_code == 200
    assert ci("POST", f"{manager}/credentials/doUninstall").status_code == 302
    assert ci("POST", f"{manager}/unheard-of/doUninstall").status_code == 404
    assert ci("GET", f"{manager}/git/doUninstall").status_code == 405
    shown = _plugins(ci)
    assert (shown["git"]["enabled"], shown["git"]["active"]) == (False, True)
    assert (shown["ant"]["enabled"], shown["ant"]["active"]) == (True, False)
    assert (shown["credentials"]["deleted"], shown["credentials"]["active"]) == (True, True)
    # no such change counts as waiting for a restart
    assert ci.data("/updateCenter")["restartRequiredForCompletion"] is False
