# SPDX-License-Identifier: GPL-3.0-or-later
"""Write the page of the known settings of repositories, with their sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible.module_utils.common.yaml import yaml_load

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.repo.configuration import (
    entry,
    terraform,
)
from tools.tree import ROOT

SOURCE = ROOT / "tests" / "strangers" / "repository_settings.yml"
PAGE = ROOT / "docs" / "interfaces" / "repository_settings.md"
_KINDS = {"bool": "boolean", "int": "integer", "str": "string", "list": "list", "dict": "mapping"}
_HEAD = """\
# Settings of repositories

The fields that `settings` of `repo_repository` knows [C11.2]: their types are checked before the
first request. Other fields are sent unchanged. Each field is in the Go client
([jfrog-client-go]({go}), commit {go_commit}) or in the Terraform provider
([terraform-provider-artifactory]({terraform}) {version}), whose attributes the filter
`terraform_repositories` converts. `python -m tools.generated` writes this page.

| setting | type | Go client | Terraform attribute |
|---|---|---|---|
"""


def sources() -> dict[str, Any]:
    """Return the names in the vendor's programs."""
    found: dict[str, Any] = yaml_load(SOURCE.read_text("utf-8"))
    return found


def fields_of(program: dict[str, Any]) -> dict[str, str]:
    """Return the fields of one of the vendor's programs with their types."""
    return {name: kind for kind, names in program["fields"].items() for name in names.split()}


def attributes_of(program: dict[str, Any]) -> dict[tuple[str, str], set[str]]:
    """Return the attributes of each Terraform resource, by class and the rest of its name."""
    return {
        (rclass, package): {*resources["common"].split(), *more.split()}
        for rclass, resources in program["resources"].items()
        for package, more in resources["packages"].items()
    }


def files() -> dict[Path, str]:
    """Return the path and content of the page."""
    found = sources()
    go, provider = found["go_client"], found["terraform"]
    attributes: dict[str, set[str]] = {}
    for (rclass, _package), names in attributes_of(provider).items():
        for attribute in names:
            setting = terraform.setting_of(attribute, rclass) or ""
            attributes.setdefault(setting, set()).add(attribute)
    rows = [
        f"| `{name}` | {_KINDS[spec['type']]} | {'yes' if name in fields_of(go) else ''} |"
        f" {', '.join(f'`{each}`' for each in sorted(attributes.get(name, ())))} |\n"
        for name, spec in sorted(entry.KNOWN_SETTINGS.items(), key=lambda pair: pair[0].lower())
    ]
    head = _HEAD.format(
        go=f"https://{go['source']}",
        go_commit=go["commit"][:7],
        terraform=f"https://{provider['source']}",
        version=provider["version"],
    )
    return {PAGE: head + "".join(rows)}
