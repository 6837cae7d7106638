# SPDX-License-Identifier: GPL-3.0-or-later
"""Test credentials, nodes and views of the sandbox's CI server with third-party clients."""

from __future__ import annotations

from collections.abc import Callable

import jenkins
import pytest

from sandbox.client import Sandbox

USER, TOKEN = "builder", "builder-api-token-1234567890"
CREDENTIAL = """<org.jenkinsci.plugins.plaincredentials.impl.StringCredentialsImpl>
  <scope>GLOBAL</scope><id>token</id><description>{}</description><secret>hush</secret>
</org.jenkinsci.plugins.plaincredentials.impl.StringCredentialsImpl>"""


@pytest.fixture
def server(fresh: Callable[[str], Sandbox]) -> jenkins.Jenkins:
    return jenkins.Jenkins(fresh("real").urls["ci"], USER, TOKEN)


def test_python_jenkins_manages_credentials(server: jenkins.Jenkins) -> None:
    server.create_credential("delivery", CREDENTIAL.format("one"))
    assert server.list_credentials("delivery") == [
        {"_class": server.list_credentials("delivery")[0]["_class"], "id": "token"}
    ]
    assert server.get_credential_info("token", "delivery")["description"] == "one"
    server.reconfig_credential("delivery", CREDENTIAL.format("two"))
    shown = server.get_credential_config("token", "delivery")
    assert "two" in shown
    assert "hush" not in shown
    server.delete_credential("token", "delivery")
    assert not server.credential_exists("token", "delivery")
