# SPDX-License-Identifier: GPL-3.0-or-later
"""Schema of `config.xml`: elements and their order, defaults, classes of plugins.

Server facts [ci-15, ci-21]: the server saves the objects that it loaded, not the XML that was sent.
It drops unknown elements silently and adds defaults to the other elements.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from copy import deepcopy

from lxml import etree

from sandbox.ci.jobs import ciphers, jobs

_GENERIC_FIRST = ("description", "displayName", "keepDependencies", "properties")
#: Elements below the root element, in the order in which the server saves them.
ELEMENTS: dict[str, tuple[str, ...]] = {
    jobs.FREESTYLE: (
        "actions",
        *_GENERIC_FIRST,
        "scm",
        "quietPeriod",
        "scmCheckoutRetryCount",
        "assignedNode",
        "canRoam",
        "disabled",
        "blockBuildWhenDownstreamBuilding",
        "blockBuildWhenUpstreamBuilding",
        "jdk",
        "authToken",
        "triggers",
        "concurrentBuild",
        "customWorkspace",
        "builders",
        "publishers",
        "buildWrappers",
    ),
    jobs.PIPELINE: (
        "actions",
        *_GENERIC_FIRST,
        "definition",
        "triggers",
        "quietPeriod",
        "authToken",
        "disabled",
        "concurrentBuild",
    ),
    jobs.FOLDER: ("actions", *_GENERIC_FIRST, "folderViews", "healthMetrics", "icon"),
    jobs.MULTIBRANCH: (
        "actions",
        *_GENERIC_FIRST,
        "folderViews",
        "healthMetrics",
        "icon",
        "orphanedItemStrategy",
        "triggers",
        "disabled",
        "sources",
        "factory",
    ),
    jobs.ORGANIZATION: (
        "actions",
        *_GENERIC_FIRST,
        "folderViews",
        "healthMetrics",
        "icon",
        "orphanedItemStrategy",
        "triggers",
        "disabled",
        "navigators",
        "projectFactories",
    ),
}
_COMPUTED_DEFAULTS = {
    "orphanedItemStrategy": (
        '<orphanedItemStrategy class="com.cloudbees.hudson.plugins.folder.computed.'
        'DefaultOrphanedItemStrategy"><pruneDeadBranches>true</pruneDeadBranches>'
        "<daysToKeep>-1</daysToKeep><numToKeep>-1</numToKeep><abortBuilds>false</abortBuilds>"
        "</orphanedItemStrategy>"
    ),
    "triggers": "<triggers/>",
}


def _owner(kind: str, depth: int) -> str:
    return f'<owner class="{jobs.CLASSES[kind]}" reference="{"/".join([".."] * depth)}"/>'


def _folder_defaults(holder: str, icon: str, views: str, in_icon: str) -> dict[str, str]:
    """Return the elements that the server adds to folders (server fact [ci-15])."""
    return {
        "folderViews": f'<folderViews class="{holder}">{views}</folderViews>',
        "healthMetrics": "<healthMetrics/>",
        "icon": f'<icon class="{icon}">{in_icon}</icon>',
    }


_FACTORY = "org.jenkinsci.plugins.workflow.multibranch.WorkflowBranchProjectFactory"
#: Elements that the server adds to each saved configuration.
DEFAULTS: dict[str, dict[str, str]] = {
    jobs.FREESTYLE: {
        "scm": '<scm class="hudson.scm.NullSCM"/>',
        # server fact [ci-15]: a missing boolean is false
        "canRoam": "<canRoam>false</canRoam>",
        "blockBuildWhenDownstreamBuilding": (
            "<blockBuildWhenDownstreamBuilding>false</blockBuildWhenDownstreamBuilding>"
        ),
        "blockBuildWhenUpstreamBuilding": (
            "<blockBuildWhenUpstreamBuilding>false</blockBuildWhenUpstreamBuilding>"
        ),
        "triggers": "<triggers/>",
        "builders": "<builders/>",
        "publishers": "<publishers/>",
        "buildWrappers": "<buildWrappers/>",
    },
    jobs.PIPELINE: {"triggers": "<triggers/>"},
    jobs.FOLDER: _folder_defaults(
        "com.cloudbees.hudson.plugins.folder.views.DefaultFolderViewHolder",
        "com.cloudbees.hudson.plugins.folder.icons.StockFolderIcon",
        f"<views><hudson.model.AllView>{_owner(jobs.FOLDER, 4)}<name>All</name>"
        '<properties class="hudson.model.View$PropertyList"/></hudson.model.AllView></views>'
        '<tabBar class="hudson.views.DefaultViewsTabBar"/>',
        "",
    ),
    jobs.MULTIBRANCH: {
        **_folder_defaults(
            "jenkins.branch.MultiBranchProjectViewHolder",
            "jenkins.branch.MetadataActionFolderIcon",
            _owner(jobs.MULTIBRANCH, 2),
            _owner(jobs.MULTIBRANCH, 2),
        ),
        **_COMPUTED_DEFAULTS,
        "factory": f'<factory class="{_FACTORY}"><scriptPath>Jenkinsfile</scriptPath></factory>',
    },
    jobs.ORGANIZATION: {
        **_folder_defaults(
            "jenkins.branch.OrganizationFolderViewHolder",
            "jenkins.branch.MetadataActionFolderIcon",
            _owner(jobs.ORGANIZATION, 2),
            _owner(jobs.ORGANIZATION, 2),
        ),
        **_COMPUTED_DEFAULTS,
    },
}
#: Elements of computed folders to which the server adds a reference to their owner.
OWNED = ("sources", "factory")
_DEFINITION: dict[str, str | None] = {"name": "", "description": None}
#: Classes with their members and default values. None: the member has no default.
_MEMBERS: dict[str, dict[str, str | None]] = {
    "hudson.tasks.Shell": {"command": "", "configuredLocalRules": "", "unstableReturn": None},
    "hudson.tasks.BatchFile": {"command": "", "configuredLocalRules": "", "unstableReturn": None},
    "hudson.tasks.ArtifactArchiver": {
        "artifacts": "",
        "excludes": None,
        "allowEmptyArchive": "false",
        "onlyIfSuccessful": "false",
        "fingerprint": "false",
        "defaultExcludes": "true",
        "caseSensitive": "true",
        "followSymlinks": "true",
    },
    "hudson.tasks.LogRotator": {
        "daysToKeep": "-1",
        "numToKeep": "-1",
        "artifactDaysToKeep": "-1",
        "artifactNumToKeep": "-1",
        "removeLastBuild": "false",
    },
    "hudson.triggers.TimerTrigger": {"spec": ""},
    "hudson.triggers.SCMTrigger": {"spec": "", "ignorePostCommitHooks": "false"},
    _FACTORY: {"owner": None, "scriptPath": "Jenkinsfile"},
    "org.jenkinsci.plugins.workflow.cps.CpsFlowDefinition": {"script": "", "sandbox": "false"},
    # server fact [ci-31]: a string has `trim`, and members that are null are omitted
    "hudson.model.StringParameterDefinition": {
        **_DEFINITION,
        "defaultValue": None,
        "trim": "false",
    },
    "hudson.model.TextParameterDefinition": {**_DEFINITION, "defaultValue": None, "trim": "false"},
    "hudson.model.BooleanParameterDefinition": {**_DEFINITION, "defaultValue": "false"},
    "hudson.model.ChoiceParameterDefinition": {**_DEFINITION, "choices": None},
    "hudson.model.FileParameterDefinition": _DEFINITION,
    "hudson.model.RunParameterDefinition": {
        **_DEFINITION,
        "projectName": None,
        "runId": None,
        "filter": None,
    },
}
_CORE = (
    "hudson.model.",
    "hudson.tasks.",
    "hudson.triggers.",
    "hudson.scm.",
    "hudson.security.",
    "hudson.views.",
)
_ALSO_CORE = (
    "jenkins.model.",
    "jenkins.triggers.",
    "jenkins.branch.",
    "java.",
    "com.cloudbees.hudson.plugins.folder",
)
#: Packages of plugins: if a plugin is not installed, its elements are unknown.
_PACKAGES = {
    "hudson.plugins.git": "git",
    "jenkins.plugins.git": "git",
    "hudson.tasks.Ant": "ant",
    "com.cloudbees.plugins.credentials": "credentials",
    "org.jenkinsci.plugins.workflow": "workflow-aggregator",
    "org.jenkinsci.plugins.timestamper": "timestamper",
    "hudson.plugins.timestamper": "timestamper",
    "com.cloudbees.jenkins": "github",
    "jenkins.plugins.slack": "slack",
    "com.wangyin.parameter": "hidden-parameter",
    "org.biouno.unochoice": "uno-choice",
    "com.cwctravel.hudson.plugins.extended_choice_parameter": "extended-choice-parameter",
}
_SECRETS = ("password", "secret", "secretToken", "apiToken", "passphrase")

#: Short names of installed plugins with their versions.
Plugins = Mapping[str, str]


def element_name(cls: str) -> str:
    """Return the name of the element for a class (server fact [ci-31])."""
    return cls.replace("_", "__").replace("$", "_-")


def class_name(element: str) -> str:
    return element.replace("_-", "$").replace("__", "_")


def _plugin(name: str) -> str | None:
    return next((short for package, short in _PACKAGES.items() if name.startswith(package)), None)


def is_known(name: str, plugins: Plugins) -> bool:
    """Return whether the server can load a class. Names without a package count as known."""
    if "." not in name:
        return True
    plugin = _plugin(name)
    return plugin in plugins if plugin is not None else name.startswith(_CORE + _ALSO_CORE)


def normalized(element: etree._Element, plugins: Plugins) -> etree._Element:
    """Return an element as the server saves it, with secrets encrypted again."""
    found = _copy(element, plugins)
    etree.indent(found)
    found.tail = None
    return found


def _copy(element: etree._Element, plugins: Plugins) -> etree._Element:
    name = str(element.tag)
    found = etree.Element(name)
    for key, value in element.attrib.items():
        if key != "plugin":
            found.set(key, value)
    cls = class_name(str(element.get("class", name)))
    plugin = _plugin(cls)
    if plugin is not None and plugin in plugins:
        found.set("plugin", f"{plugin}@{plugins[plugin]}")
    members = _MEMBERS.get(cls)
    children = [child for child in element if isinstance(child.tag, str)]
    for child in children:
        kept = members is None or child.tag in members
        if kept and is_known(class_name(str(child.get("class", child.tag))), plugins):
            found.append(_copy(child, plugins))
    if not children:
        found.text = _text(name, element.text)
    _add_defaults(found, members or {})
    if found.tag == "jenkins.branch.BranchSource":
        # server fact [ci-29]: the server generates an id for a source without one
        for source in found.findall("source"):
            if source.find("id") is None:
                etree.SubElement(source, "id").text = str(uuid.uuid4())
    return found


def _add_defaults(element: etree._Element, members: Mapping[str, str | None]) -> None:
    for member, default in members.items():
        if default is not None and element.find(member) is None:
            etree.SubElement(element, member).text = default or None


def _text(name: str, text: str | None) -> str | None:
    if text is None:
        return None
    secret = ciphers.decrypt(text)
    if secret is not None:
        return ciphers.encrypt(secret)
    return ciphers.encrypt(text) if name in _SECRETS and text.strip() else text


def masked(element: etree._Element) -> etree._Element:
    """Return a copy with masked secrets, for users with read access only."""
    found = deepcopy(element)
    for node in found.iter():
        if node.text and ciphers.decrypt(node.text) is not None:
            node.text = ciphers.MASK
    return found


def holds_secrets(element: etree._Element) -> bool:
    return any(node.text and ciphers.decrypt(node.text) is not None for node in element.iter())
