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

VIEW = """<hudson.model.ListView><name>Release</name>
  <jobNames><string>no-parameters</string></jobNames>
</hudson.model.ListView>"""


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


def test_python_jenkins_manages_nodes(server: jenkins.Jenkins) -> None:
    server.create_node("linux-1", 2, "A node", "/srv", "linux docker")
    assert server.get_node_info("linux-1")["numExecutors"] == 2
    assert "<label>linux docker</label>" in server.get_node_config("linux-1")
    assert server.get_node_info("linux-1")["offline"]  # no agent has connected
    config = server.get_node_config("linux-1").replace("A node", "Another one")
    server.reconfig_node("linux-1", config)
    assert server.get_node_info("linux-1")["description"] == "Another one"
    assert [node["name"] for node in server.get_nodes()] == ["Built-In Node", "linux-1"]
    server.delete_node("linux-1")
    assert not server.node_exists("linux-1")


def test_python_jenkins_takes_nodes_offline(fresh: Callable[[str], Sandbox]) -> None:
    sandbox = fresh("real")
    sandbox.seed({"ci": {"nodes": [{"name": "up"}]}})
    server = jenkins.Jenkins(sandbox.urls["ci"], USER, TOKEN)
    server.disable_node("up", "maintenance")
    assert server.get_node_info("up")["temporarilyOffline"]
    assert server.get_node_info("up")["offlineCauseReason"] == "maintenance"
    server.enable_node("up")
    assert not server.get_node_info("up")["offline"]


def test_python_jenkins_manages_views(server: jenkins.Jenkins) -> None:
    server.create_view("Release", jenkins.EMPTY_VIEW_CONFIG_XML)
    assert server.view_exists("Release")
    assert "ListView" in server.get_view_config("Release")
    server.reconfig_view("Release", VIEW)
    assert [job["name"] for job in server.get_jobs(view_name="Release")] == ["no-parameters"]
    server.create_view("delivery/inner", jenkins.EMPTY_VIEW_CONFIG_XML)
    assert server.view_exists("delivery/inner")
    assert "Release" in [view["name"] for view in server.get_views()]
    server.delete_view("Release")
    assert not server.view_exists("Release")
