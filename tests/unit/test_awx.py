# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that surveys and credentials of AWX match the argument specs, and that the playbooks accept
their values.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection import options
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.connection.options import (
    settings_options,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import survey
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.services import SERVICES
from tests.helpers import connections
from tests.helpers.awx_variables import ROOT, load
from tests.helpers.controller import inject

TYPES = {
    type_["name"].rpartition(" ")[2]: type_
    for type_ in load("playbooks/vars/awx_credential_types.yml")["awx_setup_credential_types"]
}
SURVEYS = load("playbooks/vars/awx_surveys.yml")["awx_setup_surveys"]


@pytest.mark.parametrize("service", SERVICES)
def test_credential_type_has_every_connection_option(service: str) -> None:
    spec = options.argument_spec(SERVICES[service])
    fields = {field["id"]: field for field in TYPES[service]["inputs"]["fields"]}
    assert list(fields) == list(spec)
    assert set(TYPES[service]["injectors"]["env"]) == {
        options.environment_name(service, name) for name in spec
    }
    secret = {name for name, one in fields.items() if one.get("secret")}
    assert secret >= {name for name, option in spec.items() if option.get("no_log")}
    assert secret >= {"client_key", "credentials_file", "ltoken_file"} & set(spec)


def _get(service: str, environment: dict[str, str], name: str) -> Any:
    """Return the value of an option in a module that gets its options from the environment only."""
    if name in SERVICES[service].credentials:
        return None
    value = environment[options.environment_name(service, name)]
    return value or settings_options(SERVICES[service])[name].get("default")


@pytest.mark.parametrize("service", SERVICES)
def test_credential_logs_in_and_empty_fields_count_as_unset(service: str) -> None:
    kind = TYPES[service]
    login = connections.LOGINS[service]
    values = {"url": "https://server.example.org/base", **login}
    environment, files = inject(kind["inputs"], kind["injectors"], values)
    given = {name for name, value in environment.items() if value}
    assert given == {
        options.environment_name(service, name) for name in (*values, "validate_certs")
    }
    assert set(files.values()) == {""}
    connection = options.resolve(
        SERVICES[service],
        lambda name: None if name not in ("url",) else _get(service, environment, name),
        environment,
    )
    assert connection.url == values["url"]
    assert [secret.reveal() for secret in connection.secrets] == connections.secrets(login)


def test_file_is_written_only_if_its_content_is_given() -> None:
    kind = TYPES["repo"]
    values = {"url": "https://server.example.org", "ca_path": "-----BEGIN CERTIFICATE-----"}
    environment, files = inject(kind["inputs"], kind["injectors"], values)
    assert files[environment["TOOLCHAIN_REPO_CA_PATH"]] == values["ca_path"]
    assert environment["TOOLCHAIN_REPO_CLIENT_CERT"] == ""


def test_survey_asks_for_every_role_option_except_secrets() -> None:
    for role in ("analysis_config", "ci_baseline", "repo_housekeeping", "desired_state"):
        specs = load(f"roles/{role}/meta/argument_specs.yml")["argument_specs"]["main"]["options"]
        for playbook in ("enforce", "drift"):
            asked = {question["variable"] for question in SURVEYS[playbook]}
            missing = {f"survey_{name}" for name in specs} - asked
            secret = {f"survey_{name}" for name, one in specs.items() if "no_log" in str(one)}
            assert missing == secret | {f"survey_{role}_in_check_mode"} & missing


def test_survey_asks_for_every_variable_of_the_guides() -> None:
    guides = ("drift", "desired-state", "report", "drift-operation", "sealed-plans")
    text = "".join((ROOT / f"docs/{name}.md").read_text(encoding="utf-8") for name in guides)
    taught = set(re.findall(r"\b(?:drift|enforce|summary)_\w+(?=`|=|:)", text))
    taught |= set(re.findall(r"\bdesired_state_\w+(?=`|=|:)", text))
    asked = {
        question["variable"].removeprefix("survey_")
        for name in ("drift", "enforce", "drift_summary")
        for question in SURVEYS[name]
    }
    # secrets, and values that a credential or the inventory has
    not_asked = {"drift_plan_key", "enforce_plan_key", "enforce_connections", "enforce_hosts"}
    # facts
    reported = {"drift_findings", "drift_resolved", "drift_plan", "drift_result"}
    reported |= {"drift_servers", "drift_unread"}
    assert taught - asked == not_asked | reported
    assert {"drift_ignore", "drift_page", "enforce_plan", "desired_state_folder"} <= asked


def test_survey_asks_for_every_release_variable() -> None:
    text = (ROOT / "playbooks/release.yml").read_text(encoding="utf-8")
    roles = "|".join(path.name for path in (ROOT / "roles").iterdir())
    mentioned = {
        name
        for name in re.findall(r"\brelease_\w+", text)
        if not re.match(rf"({roles})(_|$)", name)
    }
    asked = {question["variable"].removeprefix("survey_") for question in SURVEYS["release"]}
    not_asked = {"build_numbers", "connections", "hosts", "when_released"}
    assert mentioned - asked == {f"release_{name}" for name in not_asked}
    for role in ("release_version", "wiki_docs"):
        specs = load(f"roles/{role}/meta/argument_specs.yml")["argument_specs"]["main"]["options"]
        assert set(specs) <= asked


def test_survey_replies_are_converted_to_the_types_of_the_variables() -> None:
    given = {
        "survey_release_jobs": "- job: delivery/toolchain\n  parameters: {VERSION: '1.10'}\n",
        "survey_release_title": "Notes: 1.10",
        "survey_release_jql": "",
        "survey_release_builds": [{"build_name": "agent"}],
        "release_repo": "generic",
    }
    assert survey.answers("release", given) == {
        "release_jobs": [{"job": "delivery/toolchain", "parameters": {"VERSION": "1.10"}}],
        "release_title": "Notes: 1.10",
        "release_builds": [{"build_name": "agent"}],
    }


def test_answers_under_the_names_of_the_variables_are_read() -> None:
    """An empty answer must not hide the variable of an inventory."""
    extra: dict[str, Any] = {
        "awx_job_id": 5,
        "release_jobs": "- job: delivery/toolchain\n",
        "release_files": '[{"src": "a"}]',
        "release_build_publish": "build_name: a",
        "release_repo": "",
        "desired_state_max_deletions": " ",
        "desired_state_jobs": "{{ jobs_of_group }}",
        "wiki_docs_exclude": "*.draft.md, [ab].md",
        "release_title": "Notes: 1.10",
        "release_images": "- {",
        "own": "",
        "own_list": "- a",
        "drift_fail": True,
    }
    kept = ("desired_state_jobs", "wiki_docs_exclude", "release_title", "release_images")
    wanted = {
        name: extra[name] for name in (*kept, "own", "own_list", "drift_fail", "awx_job_id")
    } | {
        "release_jobs": [{"job": "delivery/toolchain"}],
        "release_files": [{"src": "a"}],
        "release_build_publish": {"build_name": "a"},
    }
    survey.read_extra_variables(extra)
    assert extra == wanted


def test_empty_variable_of_a_command_line_hides_that_of_an_inventory() -> None:
    """`-e desired_state_previous=` deletes nothing, although the inventory names a folder."""
    extra: dict[str, Any] = {"desired_state_previous": "", "release_jobs": " "}
    survey.read_extra_variables(extra)
    assert extra == {"desired_state_previous": "", "release_jobs": " "}


@pytest.mark.parametrize(
    ("name", "response", "text"),
    [
        ("survey_release_job", "- job: x", "(did you mean survey_release_jobs?)"),
        (
            "survey_release_jobs",
            "[" * 3000,
            "survey_release_jobs: the answer is not valid YAML in line 1: it is nested deeper",
        ),
        (
            "survey_release_jobs",
            "- 2026-13-45",
            "survey_release_jobs: the answer is not valid YAML: month",
        ),
        (
            "survey_release_jobs",
            "- !!int x",
            "survey_release_jobs: the answer is not valid YAML: invalid",
        ),
        (
            "survey_release_jobs",
            "- !!bool x",
            "survey_release_jobs: the answer is not valid YAML: a value",
        ),
        (
            "survey_release_jobs",
            "- \x00",
            "survey_release_jobs: the answer is not valid YAML: unacceptable",
        ),
        (
            "survey_release_jobs",
            "- job: x\n- {",
            "survey_release_jobs: the answer is not valid YAML in",
        ),
        ("survey_release_jobs", "delivery/toolchain", "neither a list nor a mapping"),
    ],
)
def test_invalid_survey_reply_is_reported(name: str, response: str, text: str) -> None:
    with pytest.raises(survey.SurveyError) as caught:
        survey.answers("release", {name: response})
    assert text in str(caught.value)


def test_execution_environment_has_every_imported_library() -> None:
    named = (ROOT / "meta/ee-requirements.txt").read_text(encoding="utf-8")
    packages = {
        re.split(r"[>=\[]", line)[0]
        for line in named.splitlines()
        if line and not line.startswith("#")
    }
    wanted = {
        "requests",
        "urllib3",
        "cryptography",
        "oauthlib",
        "requests-oauthlib",
        "markdown-it-py",
    }
    assert packages == wanted
