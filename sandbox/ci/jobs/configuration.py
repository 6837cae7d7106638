# SPDX-License-Identifier: GPL-3.0-or-later
"""Read and write `config.xml` of a job [ci-14, ci-15, ci-21].

A job from a seed shows the values of the seed. After a configuration was posted, the job also shows
the posted elements (`parts`) and the defaults.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from lxml import etree

from sandbox.ci.builds import parameters
from sandbox.ci.builds.variables import as_text
from sandbox.ci.jobs import ciphers, jobs, schema

# Server fact [ci-14]: the header has version 1.1, which Python's expat rejects.
HEADER = "<?xml version='1.1' encoding='UTF-8'?>\n"
ROOTS = {
    jobs.FREESTYLE: "project",
    jobs.PIPELINE: "flow-definition",
    jobs.FOLDER: jobs.CLASSES[jobs.FOLDER],
    jobs.MULTIBRANCH: jobs.CLASSES[jobs.MULTIBRANCH],
    jobs.ORGANIZATION: jobs.CLASSES[jobs.ORGANIZATION],
}
# An element names the plugin and the release that wrote it.
PLUGINS = {
    jobs.PIPELINE: "workflow-job@1436.vfa_244484591f",
    jobs.FOLDER: "cloudbees-folder@6.959.v4ed5cc9e2dd4",
    jobs.MULTIBRANCH: "workflow-multibranch@795.ve0cb_1f45ca_9a_",
    jobs.ORGANIZATION: "branch-api@2.1178.v969d9eb_c728e",
}
#: Property that `folder_parts` makes from the credentials of a folder.
FOLDER_CREDENTIALS = (
    "com.cloudbees.hudson.plugins.folder.properties."
    "FolderCredentialsProvider_-FolderCredentialsProperty"
)
_PARAMETERS = "hudson.model.ParametersDefinitionProperty"
_DECLARATION = re.compile(r"\A\s*<\?xml[^>]*\?>")


class Unreadable(Exception):
    """Raised for XML to which the server responds with an exception and status 500 [ci-21]."""


def document(root: etree._Element, with_secrets: bool) -> str:
    """Return a configuration as XML.

    :param with_secrets: whether to include the encrypted secrets, which are masked for users with
        read access only
    """
    shown = root if with_secrets else schema.masked(root)
    return HEADER + etree.tostring(shown, encoding="unicode", pretty_print=True)


def holds_secrets(job: dict[str, Any]) -> bool:
    return schema.holds_secrets(root_of(job))


def root_of(job: dict[str, Any]) -> etree._Element:
    """Return the configuration of a job."""
    kind = job["kind"]
    root = etree.Element(ROOTS[kind])
    if kind in PLUGINS:
        root.set("plugin", PLUGINS[kind])
    own = _own(job)
    saved = job["parts"] is not None
    parts = {**(schema.DEFAULTS[kind] if saved else {}), **(job["parts"] or {})}
    if saved and job["read"]:  # server fact [ci-15]
        parts["actions"] = "<actions/>"
    for name in schema.ELEMENTS[kind]:
        if name in own:
            own[name](root)
        elif name in parts:
            root.append(etree.fromstring(parts[name]))
    if kind in jobs.COMPUTED:
        _add_owners(root, jobs.CLASSES[kind])
    etree.indent(root)
    return root


def _add_owners(root: etree._Element, cls: str) -> None:
    for name in schema.OWNED:
        element = root.find(name)
        if element is not None and element.find("owner") is None:
            etree.SubElement(element, "owner", {"class": cls, "reference": "../.."})


def _own(job: dict[str, Any]) -> dict[str, Callable[[etree._Element], None]]:
    """Return functions that fill an element from the job record, by element name."""
    texts = {"description": job["description"] or ""}
    if job["kind"] in jobs.COMPUTED and (job["disabled"] or job["parts"] is not None):
        texts |= {"disabled": as_text(job["disabled"])}
    if not jobs.is_container(job):
        texts |= {
            "keepDependencies": "false",
            "disabled": as_text(job["disabled"]),
            "concurrentBuild": as_text(job["concurrent"]),
        }

    def writer(name: str, text: str) -> Callable[[etree._Element], None]:
        return lambda root: _child(root, name, text)

    return {
        **{name: writer(name, text) for name, text in texts.items()},
        "properties": lambda root: _properties(root, job),
    }


def _properties(root: etree._Element, job: dict[str, Any]) -> None:
    if jobs.is_container(job) and job["parts"] is None:
        return
    properties = etree.SubElement(root, "properties")
    for text in job["properties"]:
        properties.append(etree.fromstring(text))
    if job["parameters"]:
        holder = etree.SubElement(properties, _PARAMETERS)
        definitions = etree.SubElement(holder, "parameterDefinitions")
        for parameter in job["parameters"]:
            _definition(definitions, parameter, str(job["save"]))


def _child(parent: etree._Element, name: str, text: str) -> None:
    etree.SubElement(parent, name).text = text


def _definition(parent: etree._Element, parameter: dict[str, Any], save: str) -> None:
    if "xml" in parameter:
        parent.append(etree.fromstring(parameter["xml"]))
        return
    node = etree.SubElement(parent, schema.element_name(parameters.class_of(parameter)))
    _child(node, "name", parameter["name"])
    _child(node, "description", parameter.get("description") or "")
    if parameter["type"] in ("file", "run"):
        return
    value = as_text(parameters.default(parameter))
    if parameter["type"] == "password":
        # Derive the vector from the save number: the string stays the same until the next save.
        value = ciphers.encrypt(value, f"{save}:{parameter['name']}".encode().ljust(16)[-16:])
    if parameter["type"] == "choice":
        holder = etree.SubElement(node, "choices", {"class": "java.util.Arrays$ArrayList"})
        choices = etree.SubElement(holder, "a", {"class": "string-array"})
        for choice in parameter["choices"]:
            _child(choices, "string", choice)
    else:
        _child(node, "defaultValue", value)


def kind_of(root: etree._Element) -> str:
    """Return the kind of the described job; raise Unreadable if the server has no such class."""
    for kind, name in ROOTS.items():
        if root.tag in (name, jobs.CLASSES[kind]):
            return kind
    raise Unreadable(f"com.thoughtworks.xstream.mapper.CannotResolveClassException: {root.tag}")


def parsed(text: str) -> etree._Element:
    """Parse the XML; raise Unreadable if it is malformed."""
    try:
        parser = etree.XMLParser(resolve_entities=False, remove_comments=True)
        return etree.fromstring(_DECLARATION.sub("", text, count=1), parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise Unreadable(f"Failed to process config.xml: {error}") from error


def read(root: etree._Element, plugins: schema.Plugins, save: int) -> dict[str, Any]:
    """Convert the XML to a job record, without unknown elements."""
    kind = kind_of(root)
    _move_log_rotator(root)
    known = schema.ELEMENTS[kind]
    parts = {
        str(child.tag): etree.tostring(schema.normalized(child, plugins), encoding="unicode")
        for child in root
        if child.tag in known and schema.is_known(str(child.get("class", "")), plugins)
    }
    for name in ("description", "keepDependencies", "disabled", "concurrentBuild", "properties"):
        parts.pop(name, None)
    properties, definitions = _read_properties(root, plugins)
    return {
        "kind": kind,
        "description": root.findtext("description") or None,
        "disabled": _is_true(root, "disabled"),
        "concurrent": _is_true(root, "concurrentBuild"),
        "parameters": definitions,
        "properties": properties,
        "parts": parts,
        "save": save,
        "hold_off": False,
    }


def _move_log_rotator(root: etree._Element) -> None:
    """Move the rule for old builds into the properties, as in server fact [ci-15]."""
    rotator = root.find("logRotator")
    if rotator is None:
        return
    rotator.tag = "strategy"
    rotator.set("class", rotator.get("class", "hudson.tasks.LogRotator"))
    properties = root.find("properties")
    if properties is None:
        properties = etree.SubElement(root, "properties")
    etree.SubElement(properties, "jenkins.model.BuildDiscarderProperty").append(rotator)


def _is_true(root: etree._Element, name: str) -> bool:
    return (root.findtext(name) or "").strip() == "true"


def _read_properties(
    root: etree._Element, plugins: schema.Plugins
) -> tuple[list[str], list[dict[str, Any]]]:
    """Return the properties as XML strings, and the definitions of the parameters."""
    texts: list[str] = []
    definitions: list[dict[str, Any]] = []
    found = root.find("properties")
    for child in [] if found is None else found:
        if child.tag == _PARAMETERS:
            entries = [entry for holder in child for entry in holder]
            read = [_read_definition(entry, plugins) for entry in entries]
            definitions = [definition for definition in read if definition is not None]
        elif child.tag != FOLDER_CREDENTIALS and schema.is_known(str(child.tag), plugins):
            normal = schema.normalized(child, plugins)
            texts.append(etree.tostring(normal, encoding="unicode"))
    return texts, definitions


def _read_definition(entry: etree._Element, plugins: schema.Plugins) -> dict[str, Any] | None:
    """Return a definition with its XML, unless the server does not know its class [ci-31]."""
    cls = schema.class_name(str(entry.tag))
    kind = {cls: kind for kind, cls in parameters.DEFINITION_CLASSES.items()}.get(cls)
    if kind is None and not schema.is_known(cls, plugins):
        return None
    found: dict[str, Any] = {
        "name": entry.findtext("name") or "",
        "type": kind or "string",
        "class": cls,
        "description": entry.findtext("description"),
    }
    value = entry.findtext("defaultValue") or ""
    if kind == "password":
        secret = ciphers.decrypt(value)
        return {**found, "default": value if secret is None else secret}
    found["xml"] = etree.tostring(schema.normalized(entry, plugins), encoding="unicode")
    if kind == "choice":
        found["choices"] = [choice.text or "" for choice in entry.iter("string")]
    elif kind == "boolean":
        found["default"] = value.strip() == "true"
    elif kind == "run":
        found["default"] = entry.findtext("runId") or ""
    elif kind != "file":
        found["default"] = value
        found["trim"] = (entry.findtext("trim") or "").strip() == "true"
    return found
