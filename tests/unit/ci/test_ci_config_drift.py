# SPDX-License-Identifier: GPL-3.0-or-later
"""Test configurations as XML: differences, masked values, and configurations that
cannot be read.
"""

from __future__ import annotations

import re

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci import xml_reader
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.jobs import (
    configuration,
    kept_secrets,
)

ENCRYPTED = "{AQAAABAAAAAwAAAA/+09azAZ==}"
BOMB = """<?xml version='1.0'?>
<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<a>&b;</a>"""
EXTERNAL = '<!DOCTYPE a [<!ENTITY f SYSTEM "file:///etc/passwd">]><a>&f;</a>'


OWNER = "<owner class='x.Project' reference='../..'/>"
VIEW = (
    "<hudson.model.AllView><owner class='x' reference='..'/><name>All</name></hudson.model.AllView>"
)
FACTORY = "org.jenkinsci.plugins.workflow.multibranch.WorkflowBranchProjectFactory"
#: Members that the server adds.
ADDED = [
    f"<icon class='jenkins.branch.MetadataActionFolderIcon' plugin='branch-api@2'>{OWNER}</icon>",
    "<icon class='com.cloudbees.hudson.plugins.folder.icons.StockFolderIcon'/>",
    f"<folderViews class='jenkins.branch.MultiBranchProjectViewHolder'>{OWNER}</folderViews>",
    (
        "<folderViews class='com.cloudbees.hudson.plugins.folder.views.DefaultFolderViewHolder'><views>"
        f"{VIEW}</views><tabBar class='hudson.views.DefaultViewsTabBar'/></folderViews>"
    ),
    (
        "<orphanedItemStrategy class='com.cloudbees.hudson.plugins.folder.computed."
        "DefaultOrphanedItemStrategy'><pruneDeadBranches>true</pruneDeadBranches><daysToKeep>-1"
        "</daysToKeep><numToKeep>-1</numToKeep><abortBuilds>false</abortBuilds></orphanedItemStrategy>"
    ),
    f"<factory class='x.Factory'>{OWNER}</factory>",
    (
        "<launcher class='x.L'><workDirSettings><disabled>false</disabled><internalDir>remoting"
        "</internalDir></workDirSettings></launcher>"
    ),
    (
        "<launcher class='x.L'><workDirSettings><disabled>true</disabled><internalDir>remoting"
        "</internalDir></workDirSettings></launcher>"
    ),
    "<source class='x.S'><id>made</id></source>",
    f"<factory class='{FACTORY}'>{OWNER}<scriptPath>Jenkinsfile</scriptPath></factory>",
]
ARCHIVER = "hudson.tasks.ArtifactArchiver"


@pytest.mark.parametrize("added", ADDED)
def test_members_that_the_server_adds_are_no_difference(added: str) -> None:
    wanted = re.sub(r"(<(?:factory|launcher|source)\b[^>]*>).*", r"\1", added)
    name = re.match(r"<(\w+)", added)
    closed = f"{wanted}</{name[1]}>" if name and wanted != added else ""
    assert not configuration.drift(f"<a>{added}</a>", f"<a>{closed}</a>").found
    # the server lacks the value of the task, or a user has set another one
    assert configuration.drift(f"<a>{closed}</a>", f"<a>{added}</a>").found
    for old, new in (("-1", "7"), ("remoting", "other"), ("Jenkinsfile", "Other")):
        if old in added:
            live = added.replace(old, new)
            assert configuration.drift(f"<a>{live}</a>", f"<a>{closed}</a>").found


def test_factory_that_the_server_adds_is_no_difference() -> None:
    added = f"<factory class='{FACTORY}'>{OWNER}<scriptPath>Jenkinsfile</scriptPath></factory>"
    assert not configuration.drift(f"<a>{added}</a>", "<a/>").found
    for old, new in (("Jenkinsfile", "Other"), ("WorkflowBranch", "Other")):
        found = configuration.drift(f"<a>{added.replace(old, new)}</a>", "<a/>")
        assert found.paths("extra") == ["factory"]


@pytest.mark.parametrize("member", ["caseSensitive", "defaultExcludes", "followSymlinks"])
def test_members_that_are_true_if_they_are_missing(member: str) -> None:
    without = f"<a><b><{ARCHIVER}><artifacts>*</artifacts></{ARCHIVER}></b></a>"
    added, other = (
        without.replace("</artifacts>", f"</artifacts><{member}>{value}</{member}>")
        for value in ("true", "false")
    )
    assert not configuration.drift(added, without).found
    assert not configuration.drift(without, added).found
    path = f"b/{ARCHIVER}/{member}"
    assert configuration.drift(other, without).paths("extra") == [path]
    assert configuration.drift(without, other).paths("missing") == [path]


def _multibranch(*sources: tuple[str, str]) -> str:
    inner = "".join(
        f"<jenkins.branch.BranchSource><source class='x.Git'>{f'<id>{id_}</id>' if id_ else ''}"
        f"<remote>{remote}</remote></source></jenkins.branch.BranchSource>"
        for id_, remote in sources
    )
    return f"<a><sources><data>{inner}</data></sources></a>"


@pytest.mark.parametrize(
    ("live", "wanted", "ids"),
    [
        ([("1", "u")], [("", "u")], ["1"]),
        ([("1", "u")], [("", "moved")], ["1"]),
        ([("1", "u"), ("2", "v")], [("", "v"), ("", "u")], ["2", "1"]),
        ([("1", "u"), ("2", "v")], [("", "v"), ("", "w")], ["2"]),
        ([("1", "u"), ("2", "u")], [("2", "u"), ("", "u")], ["2", "1"]),
        ([("1", "u"), ("2", "u")], [("", "u")], []),
    ],
)
def test_ids_of_branch_sources_are_kept(
    live: list[tuple[str, str]], wanted: list[tuple[str, str]], ids: list[str]
) -> None:
    text = kept_secrets.with_kept_ids(_multibranch(*live), _multibranch(*wanted))
    assert re.findall("<id>(.*)</id>", text) == ids


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
        # references in CDATA sections and comments are text
        ("<a><![CDATA[x&#27;[0m]]></a>", "<a>x&amp;#27;[0m</a>"),
        ("<a>x<!-- &#27; --></a>", "<a>x</a>"),
        # the order of an object's members, defaults that are missing on either side
        ("<a><b>1</b><c>2</c></a>", "<a><c>2</c><b>1</b></a>"),
        (
            "<a><actions/><scm class='hudson.scm.NullSCM'/><triggers class='vector'/></a>",
            "<a><disabled>false</disabled><canRoam>false</canRoam></a>",
        ),
        ("<a/>", "<a><description/><keepDependencies> false </keepDependencies></a>"),
        ("<a><b>\n  </b></a>", "<a><b/></a>"),
        ("<a><n> 5 </n></a>", "<a><n>5</n></a>"),
        ("<hudson.model.FreeStyleProject/>", "<project/>"),
        # an old configuration, which the server moves
        (
            (
                "<project><properties><a.B/><jenkins.model.BuildDiscarderProperty><strategy"
                " class='hudson.tasks.LogRotator'><daysToKeep>3</daysToKeep></strategy>"
                "</jenkins.model.BuildDiscarderProperty></properties></project>"
            ),
            (
                "<project><logRotator><daysToKeep>3</daysToKeep></logRotator><properties><a.B/>"
                "</properties></project>"
            ),
        ),
        (
            (
                "<project><properties><jenkins.model.BuildDiscarderProperty><strategy"
                " class='x'/></jenkins.model.BuildDiscarderProperty></properties></project>"
            ),
            (
                "<project><logRotator><daysToKeep>3</daysToKeep></logRotator><properties>"
                "<jenkins.model.BuildDiscarderProperty><strategy class='x'/>"
                "</jenkins.model.BuildDiscarderProperty></properties></project>"
            ),
        ),
        # the array in a list, which depends on the program that wrote the configuration
        (
            (
                "<a><b class='java.util.Arrays$ArrayList'><a class='string-array'><string>x</string>"
                "</a></b></a>"
            ),
            "<a><b class='java.util.ArrayList'><string>x</string></b></a>",
        ),
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
        # members that are false if they are missing [ci-15]
        ("<a><canRoam>true</canRoam></a>", "<a/>"),
        ("<a><script>x</script><sandbox>true</sandbox></a>", "<a><script>x</script></a>"),
        # blanks are a value, layout is none
        ("<a><defaultValue> </defaultValue></a>", "<a><defaultValue/></a>"),
        ("<a/>", "<a><defaultValue>  </defaultValue></a>"),
        ("<a><string> one</string></a>", "<a><string>one</string></a>"),
        # names that look secret, with values that the server does not encrypt
        (
            "<a><injectGlobalPasswords>false</injectGlobalPasswords></a>",
            "<a><injectGlobalPasswords>true</injectGlobalPasswords></a>",
        ),
        ("<a><useToken>true</useToken></a>", "<a><useToken>false</useToken></a>"),
        ("<a><token>one</token></a>", "<a><token>two</token></a>"),
        ("<a><password>one</password></a>", "<a><password>two</password></a>"),
        ("<a><b password='one'/></a>", "<a><b password='two'/></a>"),
        # a secret that is removed
        (f"<a><password>{ENCRYPTED}</password></a>", "<a><password/></a>"),
        (f"<a><password>{ENCRYPTED}</password></a>", "<a/>"),
        # braces that are no encrypted value
        ("<a><b>${WORKSPACE}</b></a>", "<a><b>${WORKTREES}</b></a>"),
        ("<a><b>{abcdefghij}</b></a>", "<a><b>{abcdefghik}</b></a>"),
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


@pytest.mark.parametrize(
    ("element", "plain"),
    [
        ("<injectGlobalPasswords>{}</injectGlobalPasswords>", "true"),
        ("<token>{}</token>", "false"),
        ("<token>{}</token>", "123456"),
        ("<passwordStrategy>{}</passwordStrategy>", "plain-text"),
        ("<credentialsId>{}</credentialsId>", "deploy-key"),
        ("<secret>{}</secret>", "NOT_USED"),
        ("<token>{}</token>", "$NEW_TAG"),
        ("<token>{}</token>", "${TOKEN}"),
    ],
)
def test_names_alone_make_no_secret(element: str, plain: str) -> None:
    text = f"<a>{element.format(plain)}</a>"
    assert configuration.secrets(text) == []
    assert plain in configuration.normalized(text)
    assert kept_secrets.without_secrets(text) == (text, 0)


def test_changed_plain_secret_is_masked_in_the_diff() -> None:
    found = configuration.drift(
        "<a><trigger><token>old-trigger</token></trigger><b password='old-password'/></a>",
        "<a><trigger><token>new-trigger</token></trigger><b password='new-password'/></a>",
    )
    assert [difference.path for difference in found.differences] == ["trigger/token", "b"]
    assert found.uncompared == ()
    assert not re.search("old|new-", found.before + found.after)
    assert found.after.count("(new secret)") == 2


def test_encrypted_attributes_are_secrets() -> None:
    pair = "<a><varPasswordPairs><varPasswordPair var='X' password='{}'/></varPasswordPairs></a>"
    live, wanted = pair.format(ENCRYPTED), pair.format("hush-hush")
    found = configuration.drift(live, wanted)
    assert not found.found
    assert found.uncompared == ("varPasswordPairs/varPasswordPair",)
    assert "hush" not in found.after + configuration.normalized(wanted)
    assert configuration.secrets(wanted) == ["hush-hush"]
    text, count = kept_secrets.without_secrets(live)
    assert (ENCRYPTED in text, count) == (False, 1)
    assert kept_secrets.with_secrets(live, text)[1] == []
    assert ENCRYPTED in kept_secrets.with_secrets(live, text)[0]
    assert ENCRYPTED in kept_secrets.with_kept_secrets(live, wanted)


def test_secret_is_masked_next_to_a_difference() -> None:
    found = configuration.drift(
        f"<a><b x='1' token='same-token'>{ENCRYPTED}</b></a>",
        "<a><b x='2' token='same-token'>hush-hush</b></a>",
    )
    assert [difference.path for difference in found.differences] == ["b"]
    assert found.secrets == ("hush-hush",)
    assert found.before == '<a>\n  <b token="***" x="1">***</b>\n</a>\n'
    assert found.after == '<a>\n  <b token="***" x="2">***</b>\n</a>\n'


def test_secret_of_an_unknown_class_is_returned() -> None:
    found = configuration.drift(f"<a><b>{ENCRYPTED}</b></a>", "<a><b>hush-hush</b></a>")
    assert (found.uncompared, found.secrets) == (("b",), ("hush-hush",))
    assert "hush" not in found.after


def test_members_that_a_class_encrypts_are_secret() -> None:
    text = (
        "<p><hudson.model.PasswordParameterDefinition><name>KEY</name>"
        "<defaultValue>hush-hush</defaultValue></hudson.model.PasswordParameterDefinition>"
        "<hudson.model.StringParameterDefinition><defaultValue>not secret</defaultValue>"
        "</hudson.model.StringParameterDefinition><credentialsId>deploy</credentialsId></p>"
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
      </builders><quietPeriod>5</quietPeriod><canRoam>true</canRoam><disabled>false</disabled></project>"""
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
        ("canRoam", "extra"),
        ("node", "missing"),
    ]
    assert "disabled" not in found.before + found.after
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
