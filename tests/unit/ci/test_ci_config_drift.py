# SPDX-License-Identifier: GPL-3.0-or-later
"""Test configurations as XML: differences, masked values, and configurations that
cannot be read.
"""

from __future__ import annotations

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils.ci import xml_reader
from ansible_collections.delivery.toolchain.plugins.module_utils.ci.jobs import configuration

ENCRYPTED = "{AQAAABAAAAAwAAAA/+09azAZ==}"
BOMB = """<?xml version='1.0'?>
<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<a>&b;</a>"""
EXTERNAL = '<!DOCTYPE a [<!ENTITY f SYSTEM "file:///etc/passwd">]><a>&f;</a>'


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("<?xml version='1.1' encoding='UTF-8'?>\n<a/>", "<a></a>"),
        ("<a x='1' y='2'/>", '<a  y="2"   x="1" />'),
        ("<a plugin='git@5.2.2'><b/></a>", "<a plugin='git@5.3'>\n\n  <b/></a>"),
        ("<a plugin='git@5.2.2'/>", "<a/>"),
        ("<a>\n  text\n</a>", "<a>text</a>"),
        ("<a>one&#xd;\ntwo</a>", "<a>one\ntwo</a>"),
        ("<a><![CDATA[1 < 2]]></a>", "<a>1 &lt; 2</a>"),
        ("<a><!-- words --><b/></a>", "<a><b/></a>"),
        (f"<a><apiToken>{ENCRYPTED}</apiToken></a>", "<a><apiToken>********</apiToken></a>"),
        (f"<a><x>{ENCRYPTED}</x></a>", "<a><x>{AQAAABAAAAAQbbbbbbbbbbbb=}</x></a>"),
        ("<a>&#x1b;[0m</a>", "<a>&#27;[0m</a>"),
        ("\ufeff<a/>", "<a/>"),
        # the order of an object's members, defaults that are missing on either side
        ("<a><b>1</b><c>2</c></a>", "<a><c>2</c><b>1</b></a>"),
        (
            "<a><actions/><scm class='hudson.scm.NullSCM'/><triggers class='vector'/></a>",
            "<a><disabled>false</disabled><canRoam>true</canRoam></a>",
        ),
        ("<a/>", "<a><description/><keepDependencies> false </keepDependencies></a>"),
        ("<hudson.model.FreeStyleProject/>", "<project/>"),
        # a plain text that the server has encrypted, regardless of the element's name
        (f"<a><value>{ENCRYPTED}</value></a>", "<a><value>plain</value></a>"),
    ],
)
def test_equivalent_configurations_do_not_differ(one: str, other: str) -> None:
    found = configuration.drift(one, other)
    assert not found.found, found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("<a/>", "<b/>"),
        ("<a x='1'/>", "<a x='2'/>"),
        ("<a>1</a>", "<a>2</a>"),
        ("<a>if x:\n  y</a>", "<a>if x:\n    y</a>"),
        # the order of list entries, whose elements are named by their classes or have the same name
        ("<a><x.B/><x.C/></a>", "<a><x.C/><x.B/></a>"),
        ("<a><b>1</b><b>2</b></a>", "<a><b>2</b><b>1</b></a>"),
        ("<a><x.B/></a>", "<a/>"),
        ("<a><canRoam>false</canRoam></a>", "<a><canRoam>true</canRoam></a>"),
        ("<a><concurrentBuild>true</concurrentBuild></a>", "<a/>"),
        ("<a/>", "<a><node>linux</node></a>"),
        ("<a><scm class='hudson.plugins.git.GitSCM'/></a>", "<a/>"),
        ("<a><b/></a>", "<a><b/><b/></a>"),
        ("<a><password/></a>", "<a><password>x</password></a>"),
        (f"<a>one {ENCRYPTED}</a>", f"<a>two {ENCRYPTED}</a>"),
        ("<a>&#x1b;</a>", "<a>&#x1c;</a>"),
    ],
)
def test_different_configurations_differ(one: str, other: str) -> None:
    assert configuration.drift(one, other).found


@pytest.mark.parametrize(
    "name",
    [
        "secret",
        "password",
        "token",
        "apiToken",
        "passphrase",
        "privateKey",
        "hudson.util.Secret",
        "secretToken",
        "apiKey",
    ],
)
def test_secrets_are_masked_by_element_name(name: str) -> None:
    found = configuration.drift(f"<a><{name}>hush &amp; hush</{name}></a>", "<a/>")
    assert "hush" not in found.before
    assert f"<{name}>***</{name}>" in found.before
    assert configuration.secrets(f"<a><{name}>hush-hush</{name}></a>") == ["hush-hush"]
    assert configuration.masked_secrets(f"<a><{name}>*****</{name}></a>") == [name]


def test_only_defaults_of_password_parameters_are_secret() -> None:
    text = (
        "<p><hudson.model.PasswordParameterDefinition><name>KEY</name>"
        "<defaultValue>hush-hush</defaultValue></hudson.model.PasswordParameterDefinition>"
        "<credentialsId>deploy</credentialsId></p>"
    )
    assert configuration.secrets(text) == ["hush-hush"]
    assert "<name>KEY</name>" in configuration.drift(text, text).before


@pytest.mark.parametrize(
    "text",
    [
        "",
        "words",
        f"<a>&#{'9' * 5000};</a>",
        "<a>",
        "<a></b>",
        "<a/><b/>",
        "<a>&none;</a>",
        BOMB,
        EXTERNAL,
        "<a>" * 1000,
    ],
)
def test_malformed_xml_is_rejected(text: str) -> None:
    with pytest.raises(xml_reader.UnreadableXml):
        xml_reader.parse(text)


def test_element_is_shown_line_by_line_with_entities() -> None:
    root = xml_reader.parse("<a b='1 &lt; &quot;2&quot;'>x<c>&amp;&#x1b;</c>y<d/></a>")
    assert xml_reader.shown(root) == (
        '<a b="1 &lt; &quot;2&quot;">\n  xy\n  <c>&amp;&#x1b;</c>\n  <d/>\n</a>\n'
    )
    assert root.whole_text() == "xy&\ue01b"


def test_differences_have_a_path_and_kind() -> None:
    live = """<project><builders>
      <hudson.tasks.Shell><command>make</command></hudson.tasks.Shell>
      <hudson.tasks.Shell><command>two</command><more>x</more></hudson.tasks.Shell>
      </builders><quietPeriod>5</quietPeriod><canRoam>true</canRoam></project>"""
    expected = """<project><node>linux</node><builders>
      <hudson.tasks.Shell><command>make</command></hudson.tasks.Shell>
      <hudson.tasks.Ant/>
      <hudson.tasks.Shell><command>2</command></hudson.tasks.Shell>
      </builders></project>"""
    found = configuration.drift(live, expected)
    assert [(difference.path, difference.kind) for difference in found.differences] == [
        ("builders/hudson.tasks.Ant", "missing"),
        ("builders/hudson.tasks.Shell[2]/command", "changed"),
        ("builders/hudson.tasks.Shell[2]/more", "extra"),
        ("quietPeriod", "extra"),
        ("node", "missing"),
    ]
    assert "canRoam" not in found.before + found.after
    assert found.before.index("<quietPeriod>") > found.before.index("<builders>")


def test_secrets_on_both_sides_are_reported_as_not_compared() -> None:
    found = configuration.drift(
        f"<a><apiToken>{ENCRYPTED}</apiToken><b><value>{ENCRYPTED}</value></b></a>",
        "<a><apiToken>other</apiToken><b><value>plain</value></b></a>",
    )
    assert not found.found
    assert found.uncompared == ("apiToken", "b/value")
    assert "plain" not in found.after
    assert "AQAA" not in configuration.normalized(f"<a><b>{ENCRYPTED}</b></a>")
