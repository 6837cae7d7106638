# SPDX-License-Identifier: GPL-3.0-or-later
"""Test the uniform wording of differences, and unknown variables, which roles used to compute."""

from __future__ import annotations

import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib import (
    findings,
    role_variables,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.bookkeeping import (
    StepError,
    perform,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.report.task_findings import (
    differing,
)
from ansible_collections.delivery.toolchain.plugins.plugin_utils._lib.steps.table import SUBJECTS
from tests.helpers.reported import reporting
from tests.unit.arguments import run_of
from tools.tree import ROOT

CHANGED = {"changed": True}
PLUGINS = {
    "missing": ["not-there"],
    "outdated": [{"name": "git", "installed": "4.0", "required": "5.0"}],
    "newer": [{"name": "ant", "installed": "2.0", "required": "1.0"}],
    "inactive": ["mailer", "git"],
    "extra": ["junit"],
}
CONFIGURATION = {
    "plan": [
        {"kind": "roles", "name": "a", "action": "update", "changes": [{"field": "permissions"}]},
        {"kind": "views", "name": "p/v", "action": "delete", "changes": [{"field": "query"}]},
    ]
}
MACRO = "Confluence Cloud has no macro gallery: write the images in the page"
NO_PLUGINS: dict[str, Any] = {
    name: [] for name in ("missing", "outdated", "newer", "inactive", "unwanted", "extra")
}
OWN = {"implied": False}
JAVA = {"java": "1.8", "release": "2.400", "supported": [11, 17]}
RESULTS: dict[str, tuple[str, dict[str, Any], dict[str, Any], list[str]]] = {
    "a configuration": (
        "analysis_config",
        CONFIGURATION,
        {"roles": []},
        ["role a: differs in permissions (update)", "view p/v: not wanted (delete)"],
    ),
    "a configuration from which a sealed plan leaves out an object": (
        "analysis_config",
        {
            "counts": {"unchanged": 1},
            "unknown": [{"kind": "roles", "name": "b", "fields": ["permissions"]}],
        },
        {"roles": [{"name": "skipped"}, {"name": "b"}]},
        ["role b: cannot compare permissions (none)"],
    ),
    "a name with a secret": (
        "ci_job",
        CHANGED,
        {"job": "token=abcdef0123456789", "config": "<a/>"},
        ["job token=***: differs (update)"],
    ),
    "items": (
        "artifact_cleanup",
        {"deleted": [{"repo": "r", "path": "a/b", "reason": "older than 4w"}], "kept": []},
        {"rules": []},
        ["item r/a/b: not wanted, older than 4w (delete)"],
    ),
    "builds": (
        "build_retention",
        {"discarded": ["1", "2"], "kept": ["3"]},
        {"build_name": "agent", "count": 1},
        [
            "build agent/1: not wanted, too old or too many (delete)",
            "build agent/2: not wanted, too old or too many (delete)",
        ],
    ),
    "a job that the result names": (
        "ci_job",
        {"job": {"name": "tools/slow", "url": "https://ci/job/tools/job/slow/"}, **CHANGED},
        {"job": "tools/slow", "config": "<a/>"},
        ["job tools/slow: differs (update)"],
    ),
    "no builds": (
        "build_retention",
        {"discarded": [], "kept": ["1"]},
        {"build_name": "agent", "project": "p", "count": 1},
        [],
    ),
    "the trash": (
        "artifact_trash",
        CHANGED,
        {"state": "clean", "repo": "r", "path": "a"},
        ["trash r/a: not wanted, the trash contains items from it (delete)"],
    ),
    "plugins": (
        "ci_plugin_info",
        {**NO_PLUGINS, **PLUGINS, "plugins": []},
        {"lock_file": "x", "lock": "write"},
        [
            "plugin not-there: missing (create)",
            "plugin git: is 4.0, but should be 5.0 (update)",
            "plugin ant: is 2.0, but should be 1.0 (update)",
            "plugin mailer: disabled or not loaded (update)",
            "plugin junit: not wanted, it is not in the lock file (delete)",
        ],
    ),
    "plugins that are not to work": (
        "ci_plugin_info",
        {
            **NO_PLUGINS,
            "unwanted": [
                {"name": "ant", "installed": "1.0", "state": "absent"},
                {"name": "git", "installed": "5.0", "state": "disabled"},
            ],
        },
        {"required": []},
        ["plugin ant: not wanted (delete)", "plugin git: enabled, but should be disabled (update)"],
    ),
    "plugins brought into line": (
        "ci_plugin",
        {
            "plugins": [
                {"name": "a", "before": None, "after": "1", "action": "installed", **OWN},
                {"name": "b", "before": "1", "after": "2", "action": "updated", **OWN},
                {"name": "c", "before": "1", "after": None, "action": "removed", **OWN},
                {"name": "d", "before": "1", "after": "1", "action": "enabled", **OWN},
                {"name": "e", "before": "1", "after": "1", "action": "disabled", **OWN},
                {"name": "f", "before": "1", "after": "1", "action": "unchanged", **OWN},
            ]
        },
        {"plugins": [{"name": "a"}]},
        [
            "plugin a: missing (create)",
            "plugin b: is 1, but should be 2 (update)",
            "plugin c: not wanted (delete)",
            "plugin d: disabled or not loaded (update)",
            "plugin e: enabled, but should be disabled (update)",
        ],
    ),
    "a script": (
        "ci_script",
        {"name": "views", **CHANGED},
        {"script": "x"},
        ["script views: would change something (update)"],
    ),
    "a script that is done": (
        "ci_script",
        {"name": "views", "changed": False},
        {"script": "x"},
        [],
    ),
    "an old Java": (
        "java_version",
        JAVA,
        {},
        ["java 8: release 2.400 requires Java 11 or 17 (update)"],
    ),
    "a good Java": ("java_version", {**JAVA, "java": "17"}, {}, []),
    "nobody asks for Java": ("java_version", {**JAVA, "supported": []}, {}, []),
    "a task that was skipped": ("ci_plugin_info", {**PLUGINS, "skipped": True}, {}, []),
    "parts that the server cannot hold": (
        "wiki_page",
        {"unsupported": [MACRO]},
        {"space": "REL", "title": "A"},
        [f"page REL/A: {MACRO} (none)"],
    ),
    "a change, and parts that the server cannot hold": (
        "wiki_page",
        {**CHANGED, "unsupported": [MACRO]},
        {"space": "REL", "title": "B"},
        [f"page REL/B: differs; {MACRO} (update)"],
    ),
    "permissions that the server cannot hold": (
        "wiki_space",
        {
            "results": [
                {"key": "REL", "name": "REL", "action": "unchanged", "unsupported": ["left alone"]}
            ]
        },
        {"entries": []},
        ["space REL: left alone (none)"],
    ),
}


@pytest.mark.parametrize("what", RESULTS)
def test_every_different_object_is_one_finding(what: str) -> None:
    module, result, options, expected = RESULTS[what]
    if module != "java_version" and "skipped" not in result:
        result = reporting(module, result, options)
    found = differing(module, result)
    assert [f"{one['text']} ({one['action']})" for one in found] == expected
    assert [
        one for one in found if not one["text"].startswith(f"{one['kind']} {one['name']}: ")
    ] == []


def test_emptied_trash_is_a_finding_for_each_repository() -> None:
    going = SimpleNamespace(going=["r", "t"])
    result = reporting("artifact_trash", CHANGED, {"state": "empty"}, data=going)
    assert [one["text"] for one in differing("artifact_trash", result)] == [
        f"trash {key}: not wanted, the trash contains items from it" for key in "rt"
    ]


def test_interrupted_loop_has_results_for_finished_jobs() -> None:
    done = {"build": {"number": 7}, "queue_id": 3, "joined": True}
    jobs = [{"job": job} for job in ("a", ["b", "c"], "d")]
    ended: list[dict[str, Any]] = [done, {"failed": True}, {"skipped": True}]
    listed = perform("list_builds", run_of(), {"jobs": jobs, "results": ended})
    assert listed["builds"] == [
        {"job": "a", "build": {"number": 7}, "queue_id": 3, "joined": True},
        {"job": ["b", "c"], "build": None, "queue_id": None, "joined": False},
    ]


@pytest.mark.parametrize("off", [False, "false", "no"])
def test_switch_that_leaves_no_work_is_named(off: Any) -> None:
    variables = {"ci_baseline_check_java": off, "ci_baseline_plugins": []}
    work = ["ci_baseline_plugins", "ci_baseline_check_java", "ci_baseline_scripts"]
    with pytest.raises(StepError) as caught:
        perform(
            "check",
            run_of(**variables),
            {"of": "ci_baseline", "work": work, "switches": ["ci_baseline_check_java"]},
        )
    assert str(caught.value) == (
        "The role ci_baseline has nothing to do, because ci_baseline_check_java is false: set"
        " ci_baseline_plugins or ci_baseline_scripts, or ci_baseline_check_java to true."
    )


@pytest.mark.parametrize(
    ("of", "variables", "told"),
    [
        (
            "ci_build",
            {"ci_build_job": []},
            "The role ci_build does not know ci_build_job (did you mean ci_build_jobs?).",
        ),
        ("export", {"export_connections": {"x": {}}}, "export_connections has no service x: the"),
        (
            "release_publish",
            {"release_publish_files": [], "release_publish_archives": ""},
            "The role release_publish has nothing to do: set release_publish_files or release_p",
        ),
        ("release_publish", {"release_publish_files": [{"src": "a"}]}, ""),
        ("drift_summary", {"drift_fial": True}, "The playbook drift_summary does not know drift_f"),
    ],
)
def test_variables_are_checked_first(of: str, variables: dict[str, Any], told: str) -> None:
    work = ["release_publish_files", "release_publish_archives"] if of == "release_publish" else []
    try:
        perform("check", run_of(**variables), {"of": of, "work": work})
        message = ""
    except StepError as error:
        message = str(error)
    assert message.startswith(told)
    assert bool(message) is bool(told)


def test_misspelt_variable_is_reported_with_a_suggestion() -> None:
    names = ["ci_build_job", "ci_build_jobs", "ci_build_results", "ci_builder", "other"]
    assert role_variables.unknown("ci_build", names) == [
        "ci_build_job (did you mean ci_build_jobs?)"
    ]


def test_variables_with_the_prefix_belong_to_the_role() -> None:
    names = ["release_job", "release_jobs", "release_publish_file", "release_notes_title"]
    assert role_variables.unknown("release", names) == [
        "release_job (did you mean release_jobs?)",
        "release_publish_file (did you mean release_publish_files?)",
    ]
    assert role_variables.unknown("release_publish", names) == [
        "release_publish_file (did you mean release_publish_files?)"
    ]


def test_role_and_playbook_may_share_a_prefix() -> None:
    names = ["release_version_comment", "release_version_coment", "release_version_project"]
    meant = ["release_version_coment (did you mean release_version_comment?)"]
    assert role_variables.unknown("release", names) == meant
    assert role_variables.unknown("release_version", names) == meant


@pytest.mark.parametrize(
    ("playbook", "name"),
    [
        ("enforce", "enforce_end"),  # the name of a file
        ("drift", "drift_summary"),  # of a playbook
        ("release", "release_promote"),  # of a role
        ("adopt", "adopt_sentence"),  # a word of our code
    ],
)
def test_name_that_is_no_variable_of_a_playbook_is_reported(playbook: str, name: str) -> None:
    (reported,) = role_variables.unknown(playbook, [name])
    assert reported.partition(" ")[0] == name


def test_every_variable_that_a_playbook_reads_is_an_input() -> None:
    """Verify it for the files of the playbooks, without comments, and for the steps."""
    files = [*(ROOT / "playbooks").glob("*.yml"), *(ROOT / "playbooks/tasks").rglob("*.yml")]
    files += [ROOT / "playbooks/vars/awx_setup.yml"]
    lines = [
        line.split(" # ")[0] for file in files for line in file.read_text("utf-8").splitlines()
    ]
    text = "\n".join(line for line in lines if not line.lstrip().startswith(("#", "- name:")))
    words = {*re.findall(r"(?<![\w./])[a-z]\w+(?!\.yml|\w)", text)}
    words |= {name for subject in SUBJECTS.values() for name in subject.reads}
    roles = {path.name for path in (ROOT / "roles").iterdir()}
    of_roles = {name for role in roles for name in role_variables.known_to(role)}
    playbooks = {path.stem for path in (ROOT / "playbooks").glob("*.yml")}
    for owner, inputs in role_variables.INPUTS.items():
        others = (playbooks | roles) - inputs
        names = {word for word in words if word.startswith(f"{owner}_")} - others
        set_by_us = role_variables.known_to(owner) - {*inputs}
        assert names - of_roles - set_by_us == {*inputs} - of_roles, owner


@pytest.mark.parametrize("text", ["it is in use", "the view 'All jobs': it is in use"])
def test_failure_names_its_object_once(text: str) -> None:
    assert findings.failed("view", "All jobs", text)["text"] == "view All jobs: it is in use"


FOLDER = """<x.Folder>
  <description>a</description>
  <properties>
    <x.Credentials>
      <entry>
        <owner class="x" reference="../.."/>
      </entry>
    </x.Credentials>
  </properties>
  <steps>
    <x.Shell>
      <command>one
two
</command>
    </x.Shell>
    <x.Shell/>
  </steps>
</x.Folder>
"""


@pytest.mark.parametrize(
    ("old", "new", "paths"),
    [
        ("../..", "..", "properties/x.Credentials/entry/owner"),
        ("two\n", "three\n", "steps/x.Shell/command"),
        (FOLDER[FOLDER.index("    <x.C") : FOLDER.index("  </p")], "", "properties/x.Credentials"),
        ("<x.Shell/>", "<y.Shell/>", "steps/x.Shell, steps/y.Shell"),
        (">a<", ">b<", "description"),
        ("x.Folder>", "y.Folder>", "x.Folder, y.Folder"),
    ],
)
def test_changed_elements_are_named_by_their_paths(old: str, new: str, paths: str) -> None:
    other = FOLDER.replace(old, new)
    found = findings.different("job", "f", "differs", FOLDER, other)
    assert found["text"] == f"job f: differs in {paths}"
    sides = [{"config": text, "offline": text == other} for text in (FOLDER, other)]
    found = findings.different("node", "n", "differs in config, offline", *sides)
    assert found["text"] == f"node n: differs in {paths}, offline"


# -- variables that roles and playbooks set themselves ---------------------------------------------


def rejected(step: str, origins: dict[str, Any], values: dict[str, Any], **variables: Any) -> str:
    run = replace(run_of(**variables), origins=lambda: role_variables.Origins(**origins))
    with pytest.raises(StepError) as raised:
        perform(step, run, values)
    return str(raised.value)


#: Variables of each role and playbook that its tasks set: as a fact, a result, of a loop, of a task.
INTERNAL = {
    "adopt": ("adopt_chosen", "adopt_exports", "drift_written"),
    "analysis_config": ("analysis_config_run", "analysis_config_drift"),
    "awx_setup": ("awx_setup_ready", "awx_setup_type"),
    "ci_baseline": ("ci_baseline_kept", "ci_baseline_script"),
    "ci_build": ("ci_build_results", "ci_build_job"),
    "desired_state": (
        *("desired_state_chosen", "desired_state_run", "desired_state_deletable"),
        *("desired_state_removal", "enforce_step", "toolchain_sealed"),
    ),
    "drift_summary": ("summary_read", "drift_reported", "enforce_differing"),
    "drift_tickets": ("tickets_plan", "tickets_one", "tickets_closed"),
    "export": ("export_place", "export_ci_run"),
    "housekeeping": ("repo_housekeeping_bin",),
    "login_rotation": ("login_rotation_written", "login_rotation_step"),
    "match_accounts": ("match_accounts_users", "match_accounts_new", "drift_written"),
    "release": ("release_notes_page", "ci_build_results", "toolchain_not_built", "enforce_step"),
    "release_notes": ("release_notes_written",),
    "release_promote": ("release_promote_image",),
    "release_publish": ("release_publish_sent",),
    "release_version": ("release_version_run",),
    "repo_housekeeping": ("repo_housekeeping_compared",),
    "wiki_docs": ("wiki_docs_written",),
}
CASES = [(owner, name) for owner, names in INTERNAL.items() for name in names]


@pytest.mark.parametrize(("owner", "name"), CASES)
def test_variable_that_is_set_by_tasks_is_rejected(owner: str, name: str) -> None:
    said = ""
    for origins in ({}, {"extra": {name: 1}}, {"extra": {name: 1}, "facts": {name: 2}}):
        said = rejected("check", origins, {"of": owner}, **{name: 1})
        # the loop variables of a role, and those of a single task, are unknown
        words = (f"{owner} sets {name} itself: remove it from the variables", f"not know {name}")
        assert any(each in said for each in words)
    if "itself" in said:  # a result of the first run of a role is there in the second one
        facts = role_variables.Origins(facts={name: 1})
        perform("check", replace(run_of(**{name: 1}), origins=lambda: facts), {"of": owner})


def test_every_role_and_playbook_has_a_case() -> None:
    prefixes = {"summary": "drift_summary", "tickets": "drift_tickets"}
    owners = {prefixes.get(one, one) for one in role_variables.owners()}
    assert owners - {"drift", "enforce"} == INTERNAL.keys()


def test_playbooks_of_the_desired_state_reject_them_before_the_first_role() -> None:
    values = {"folder": True}
    for name in ("enforce_step", "enforce_failures", "drift_reported", "toolchain_sealed"):
        said = rejected("roles", {}, values, desired_state_jobs=[{}], **{name: 1})
        assert said.startswith("The playbook enforce, which drift also runs, sets ")
        assert name in said
    both = {"enforce_step": 1, "desired_state_entry": 1}
    said = rejected("roles", {}, values, **both)
    assert "sets desired_state_entry, enforce_step itself: remove them" in said


def test_name_without_prefix_counts_only_where_it_overrides_a_task() -> None:
    run = run_of(builds=[1], checked=1, item=1)
    perform("check", run, {"of": "release"})
    said = rejected("check", {"extra": {"checked": 1, "item": 1}}, {"of": "release"}, checked=1)
    assert "The playbook release sets checked itself" in said
    extra = replace(run, origins=lambda: role_variables.Origins(extra={"checked": 1}))
    perform("check", extra, {"of": "export"})


def test_own_variables_of_plays_and_includes_are_no_input() -> None:
    """Verify the variables that a task has while our playbooks run."""
    own = {"drift_table": True, "toolchain_fail_fast": True, "toolchain_report": "none"}
    perform("check", run_of(**own, drift_written=False), {"of": "adopt"})
    run = run_of(**own, enforce_step=["hold_role.yml", "desired_state"])
    included = {"enforce_step": 1}
    run = replace(run, origins=lambda: role_variables.Origins(included=included))
    perform("check", run, {"of": "desired_state"})
    # what a user passes to the role itself is no loop variable of ours
    origins: dict[str, Any] = {"included": {"desired_state_run": []}}
    said = rejected("check", origins, {"of": "desired_state"}, desired_state_run=[])
    assert "The role desired_state sets desired_state_run itself" in said
