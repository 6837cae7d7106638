# SPDX-License-Identifier: GPL-3.0-or-later
"""`config.xml` of a job [ci-14]."""

from __future__ import annotations

from typing import Any

from lxml import etree

from sandbox.ci import jobs, parameters
from sandbox.ci.builds import as_text

# Server fact [ci-14]: the header says version 1.1, which Python's expat refuses.
HEADER = "<?xml version='1.1' encoding='UTF-8'?>\n"
ROOTS = {
    jobs.FREESTYLE: "project",
    jobs.PIPELINE: "flow-definition",
    jobs.FOLDER: jobs.CLASSES[jobs.FOLDER],
    jobs.MULTIBRANCH: jobs.CLASSES[jobs.MULTIBRANCH],
}
# An element says which release of which plugin has written it.
PLUGINS = {
    jobs.PIPELINE: "workflow-job@1436.vfa_244484591f",
    jobs.FOLDER: "cloudbees-folder@6.959.v4ed5cc9e2dd4",
    jobs.MULTIBRANCH: "workflow-multibranch@795.ve0cb_1f45ca_9a_",
}


def document(job: dict[str, Any], with_secrets: bool) -> str:
    """The configuration; secrets are masked for users who may only read it."""
    root = etree.Element(ROOTS[job["kind"]])
    if job["kind"] in PLUGINS:
        root.set("plugin", PLUGINS[job["kind"]])
    _child(root, "description", job["description"] or "")
    if not jobs.is_container(job):
        _child(root, "keepDependencies", "false")
        properties = etree.SubElement(root, "properties")
        if job["parameters"]:
            holder = etree.SubElement(properties, "hudson.model.ParametersDefinitionProperty")
            definitions = etree.SubElement(holder, "parameterDefinitions")
            for parameter in job["parameters"]:
                _definition(definitions, parameter, with_secrets)
        _child(root, "disabled", as_text(job["disabled"]))
        _child(root, "concurrentBuild", as_text(job["concurrent"]))
    return HEADER + etree.tostring(root, encoding="unicode", pretty_print=True)


def _child(parent: etree._Element, name: str, text: str) -> None:
    etree.SubElement(parent, name).text = text


def _definition(parent: etree._Element, parameter: dict[str, Any], with_secrets: bool) -> None:
    node = etree.SubElement(parent, parameters.DEFINITION_CLASSES[parameter["type"]])
    _child(node, "name", parameter["name"])
    _child(node, "description", parameter.get("description") or "")
    value = as_text(parameters.default(parameter))
    if parameter["type"] == "password":
        value = f"{{{value}}}" if with_secrets else "********"
    if parameter["type"] == "choice":
        choices = etree.SubElement(
            etree.SubElement(node, "choices"), "a", {"class": "string-array"}
        )
        for choice in parameter["choices"]:
            _child(choices, "string", choice)
    else:
        _child(node, "defaultValue", value)
