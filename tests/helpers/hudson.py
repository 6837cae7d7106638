# SPDX-License-Identifier: GPL-3.0-or-later
"""Run Hudson, the predecessor of today's CI server, on loopback.

Its jobs, builds, results, logs, configurations and error responses are real. The version is from
2015. A trigger responds with 302 and without a queue item. There are no crumbs and no list of
plugins, and the script console returns nothing. These parts of the sandbox are not compared with
Hudson. Hudson rejects ranges in `tree` (`builds[number]{0,5}`): a proxy removes them, and the
response contains everything. Hudson sends its version with HTML pages only: the proxy adds it to
all responses.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

from tests.helpers import installed, programs, rewriting_proxy

USER, PASSWORD = "builder", "builder-password"
_STARTER = installed.JAVA_CLIENTS / "hudson" / "Hudson.java"
_APPLICATION = "hudson-war-3.3.2"
# Hudson was written for Java 7. Later versions close these packages to reflection.
_OPENED = (
    *("java.base/java.io", "java.base/java.lang", "java.base/java.lang.ref"),
    *("java.base/java.lang.reflect", "java.base/java.net", "java.base/java.text"),
    *("java.base/java.util", "java.base/java.util.concurrent", "java.desktop/java.awt.font"),
)
_SETTINGS = {
    "java.awt.headless": "true",
    "skipInitSetup": "true",
    # On later Java versions, Hudson cannot find the child processes of a stopped build, either.
    "hudson.util.ProcessTree.disable": "true",
    # Hudson looks for updates and for other instances. Make these requests fail.
    "http.proxyHost": "127.0.0.1",
    "http.proxyPort": "9",
    "hudson.DNSMultiCast.disabled": "true",
    "hudson.udp": "0",
}
_VERSION = {"X-Hudson": "3.3.2"}
_SERVER = "<hudson><numExecutors>4</numExecutors><quietPeriod>0</quietPeriod></hudson>"
_SECURITY = """
<hudsonSecurityManager>
  <useSecurity>true</useSecurity>
  <authorizationStrategy class="hudson.security.FullControlOnceLoggedInAuthorizationStrategy"/>
  <securityRealm class="hudson.security.HudsonPrivateSecurityRealm"/>
  <slaveAgentPort>-1</slaveAgentPort>
</hudsonSecurityManager>
"""
_ACCOUNT = """
<user>
  <fullName>{user}</fullName>
  <properties>
    <hudson.security.HudsonPrivateSecurityRealm_-Details>
      <passwordHash>salt:{digest}</passwordHash>
    </hudson.security.HudsonPrivateSecurityRealm_-Details>
  </properties>
</user>
"""


class Hudson:
    """A running server; calls are authenticated."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._session = requests.Session()
        self._session.trust_env = False
        self._session.auth = (USER, PASSWORD)

    def __call__(
        self, method: str, path: str, content: str = "", **query: str
    ) -> requests.Response:
        """Send a raw request. Do not follow redirects."""
        return self._session.request(
            method,
            f"{self.url}/{path}",
            params=query,
            data=content.encode(),
            # Hudson's error responses have a wrong Content-Encoding: their content is not encoded.
            headers={
                "Accept-Encoding": "identity",
                **({"Content-Type": "application/xml"} if content else {}),
            },
            allow_redirects=False,
            timeout=30,
        )

    def create(self, name: str, configuration: str) -> None:
        self("POST", "createItem", configuration, name=name).raise_for_status()


@contextmanager
def running(folder: Path) -> Iterator[Hudson]:
    """Start a server that keeps its data in `folder`."""
    files = installed.java_files("hudson")
    assert files is not None
    application = files / _APPLICATION
    command: list[str | Path] = [
        *(
            installed.program("java") or "java",
            "-Xmx256m",
            "-XX:TieredStopAtLevel=1",
            "-XX:+UseSerialGC",
        ),
        *(f"--add-opens={package}=ALL-UNNAMED" for package in _OPENED),
        *(f"-D{name}={value}" for name, value in _SETTINGS.items()),
        *(f"-DHUDSON_HOME={_home(folder)}", "-cp", f"{application}/libs/*"),
        *(_STARTER, application),
    ]
    # Hudson uses this character set for file names.
    variables = {**os.environ, **installed.environment(), "LC_ALL": "C.UTF-8"}
    with programs.started(command, folder, variables) as program:
        port = program.until(lambda: re.search(r"^port (\d+)$", _read(program.log), re.M))
        with rewriting_proxy.started(int(port[1]), _without_ranges, _VERSION) as url:
            hudson = Hudson(url)
            program.until(lambda: hudson("GET", "api/json").status_code == 200 or None)
            yield hudson


def _without_ranges(address: str) -> str:
    return re.sub("%7B[0-9,%C]*%7D", "", address)


def _home(folder: Path) -> Path:
    """Prepare the home of a configured server with an account."""
    account = folder / "users" / USER
    account.mkdir(parents=True)
    digest = hashlib.sha256(f"{PASSWORD}{{salt}}".encode()).hexdigest()
    for path, text in (
        (folder / "config.xml", _SERVER),
        (folder / "hudson-security.xml", _SECURITY),
        (account / "config.xml", _ACCOUNT.format(user=USER, digest=digest)),
    ):
        path.write_text(text, encoding="utf-8")
    return folder


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")
