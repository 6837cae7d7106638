# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare configurations as code with exports in the form of the plugin [ci-43]: it leaves out
defaults and empty values, sorts sets and names, and writes `{x: {}}` as `x`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.server.casc_comparison import (
    compared,
    sections,
    without_failed,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.server.ci_configuration import (
    CiConfigurationOperation,
    CiConfigurationOptions,
)
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.core.errors import (
    ToolchainError,
)
from tests.helpers.options import build as options_of
from tests.unit.ci.tasks import Run
from tests.unit.stub import Reply, Seen, Stub

ENCRYPTED = "{AQAAABAAAAAQh1pWk3Jv0Zb2Yw==}"

#: A written configuration, and how the server exports it.
ECHOES = {
    "symbols": (
        """
        jenkins:
          markupFormatter: {plainText: {}}
          SecurityRealm: {Local: {allowsSignup: false}}
          nodes:
          - dumb: {name: a, launcher: jnlp, retentionStrategy: {always: {}}, labelString: b a}
        """,
        """
        jenkins:
          markupFormatter: plainText
          nodes:
          - permanent:
              labelString: "a b"
              launcher: {inbound: {workDirSettings: {disabled: false}}}
              name: "a"
              retentionStrategy: "always"
          securityRealm: {local: {allowsSignup: false, enableCaptcha: false}}
        """,
    ),
    "kind alone": (
        "jenkins: {nodes: [{permanent: {name: a, launcher: {inbound: {}}}}]}",
        "jenkins: {nodes: [{permanent: {name: a, launcher: {jnlp: {webSocket: true}}}}]}",
    ),
    "empty members of a kind": (
        "jenkins: {securityRealm: {ldap: {configurations: [{server: s, group: x}]}}}",
        "jenkins: {securityRealm: {ldap: {configurations: [{server: s, group: {x: {}}}]}}}",
    ),
    "matrix": (
        """
        jenkins:
          authorizationStrategy:
            globalMatrix:
              entries:
              - user: {name: admins, permissions: [Overall/Read]}
              - group: {name: admins, permissions: [Overall/Read, Job/Build]}
        """,
        """
        jenkins:
          authorizationStrategy:
            globalMatrix:
              entries:
              - group: {name: admins, permissions: [Job/Build, Overall/Read]}
              - user: {name: admins, permissions: [Overall/Read]}
        """,
    ),
    "roles": (
        """
        jenkins:
          disabledAdministrativeMonitors: [b, a]
          authorizationStrategy:
            roleBased:
              roles:
                items:
                - {name: dev, pattern: d.*, permissions: [Job/Read, Job/Build],
                   entries: [{user: u2}, {group: u1}, {user: u1}]}
                global:
                - {name: read, permissions: [Overall/Read], entries: [{group: all}]}
        """,
        """
        jenkins:
          authorizationStrategy:
            roleBased:
              roles:
                global:
                - {entries: [{group: all}], name: read, pattern: .*, permissions: [Overall/Read]}
                items:
                - {entries: [{user: u1}, {user: u2}, {group: u1}], name: dev, pattern: d.*,
                   permissions: [Job/Build, Job/Read]}
          disabledAdministrativeMonitors: [a, b]
        """,
    ),
    "node properties": (
        """
        jenkins:
          globalNodeProperties:
          - toolLocation: {locations: [{key: git@Default, home: /bin/git}]}
          - envVars: {env: [{key: A, value: ""}, {key: B, value: "2"}]}
        """,
        """
        jenkins:
          globalNodeProperties:
          - envVars: {env: [{key: A, value: ""}, {key: B, value: "2"}]}
          - toolLocation: {locations: [{home: /bin/git, key: git@Default}]}
        """,
    ),
    "ldap": (
        """
        jenkins:
          securityRealm:
            ldap:
              configurations: [{server: one, rootDN: dc=a}, {server: two, rootDN: dc=b}]
        """,
        """
        jenkins:
          securityRealm:
            ldap:
              configurations:
              - {inhibitInferRootDN: false, rootDN: dc=a, server: one}
              - {inhibitInferRootDN: false, rootDN: dc=b, server: two}
              disableMailAddressResolver: false
        """,
    ),
    "empty settings": (
        "{jenkins: {label: '', views: []}, unclassified: {mailer: {charset: ''}}}",
        "{jenkins: {numExecutors: 2}, unclassified: {mailer: {smtpHost: x}}}",
    ),
    "scalars": (
        "{jenkins: {numExecutors: '2', noUsage: 'False', message: \"a\\r\\nb\\n\"}}",
        '{jenkins: {numExecutors: 2, noUsage: false, message: "a\\nb"}}',
    ),
    "named items": (
        "a: {b: [{name: x, v: 1}, {id: y, v: 1}, {k: {name: z}}]}",
        "a: {b: [{k: {name: z}}, {id: y, v: 1}, {name: x, v: 1, w: 2}]}",
    ),
    "escaped variables": ("jenkins: {message: 'a^${b}'}", "jenkins: {message: 'a^${b}'}"),
}


def parsed(text: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(text)
    return found


@pytest.mark.parametrize("case", ECHOES)
def test_export_is_no_echo(case: str) -> None:
    wanted, live = map(parsed, ECHOES[case])
    found = compared(wanted, live)
    assert (found.changes, found.unknown, found.unclear) == ([], [], [])
    assert sections(wanted, live) == {}


@pytest.mark.parametrize(
    ("wanted", "live", "paths"),
    [
        # a default that the export leaves out may be another one
        ("a: {b: {c: {d: false}}}", "a: {b: {c: {x: 1}}}", ["a.b.c.d"]),
        ("a: {b: {c: {d: ''}}}", "a: {b: {c: {x: 1}}}", ["a.b.c.d"]),
        ("a: {b: {c: {d: []}}}", "a: {b: {c: {x: 1}}}", ["a.b.c.d"]),
        ("jenkins: {a: false}", "jenkins: {b: 1}", ["jenkins.a"]),
        ("jenkins: {a: {b: ''}}", "jenkins: {a: {x: 1}}", ["jenkins.a.b"]),
        ("jenkins: {realm: {none: {}}}", "jenkins: {a: 1}", ["jenkins.realm"]),
        ("jenkins: {a: never}", "jenkins: {a: always}", ["jenkins.a"]),
        ("jenkins: {a: {demand: {x: 1}}}", "jenkins: {a: always}", ["jenkins.a"]),
        # order counts if only the place tells items apart
        ("a: {b: [{x: 1, y: 1}, {x: 2, y: 2}]}", "a: {b: [{x: 2, y: 2}, {x: 1, y: 1}]}", ["a.b"]),
        ("a: {b: [{k: {x: 1}}, {k: {x: 2}}]}", "a: {b: [{k: {x: 2}}, {k: {x: 1}}]}", ["a.b"]),
        ("a: {b: [x, y]}", "a: {b: [y, x]}", ["a.b"]),
        # items without a name that share members
        ("a: {b: [{s: 1, r: 2}]}", "a: {b: [{s: 1, r: 3, t: 4}]}", ["a.b[0].r"]),
        (
            "a: {b: [{s: 1, r: 2}, {s: 5, r: 6}]}",
            "a: {b: [{s: 5, r: 7}, {s: 1, r: 2, t: 4}]}",
            ["a.b[1].r", "a.b"],
        ),
        ("a: {b: [{s: 1}]}", "a: {b: [{s: 2, password: x}]}", ["a.b[0]", "a.b[live 0]"]),
        # a set loses a member
        ("a: {permissions: [x]}", "a: {permissions: [y, x]}", ["a.permissions"]),
        (
            "a: {b: {entries: [{user: x}]}}",
            "a: {b: {entries: [{user: x}, {user: y}]}}",
            ["a.b.entries[y]"],
        ),
    ],
)
def test_difference_is_found(wanted: str, live: str, paths: list[str]) -> None:
    found = compared(parsed(wanted), parsed(live))
    assert [change["path"] for change in found.changes] == paths


def test_sections_that_no_export_shows_are_sent_with_others() -> None:
    wanted = {"jobs": [{"script": "x"}], "Groovy": [{"script": "y"}], "jenkins": {"a": 1}}
    assert compared(wanted, {"jenkins": {"a": 1}}).unknown == ["jobs", "Groovy"]
    assert sections(wanted, {"jenkins": {"a": 1}}) == {}
    assert sections(wanted, {"jenkins": {"a": 2}}) == wanted


@pytest.mark.parametrize("path", ["jenkins: {a: %s}", "a: {b: {c: %s}}"])
@pytest.mark.parametrize("empty", ["''", "[]"])
def test_export_shows_defaults_of_settings_that_are_not_nested(path: str, empty: str) -> None:
    live = {name: {"b": {"x": 1}, "x": 1} for name in parsed(path % empty)}
    assert compared(parsed(path % empty), live).changes == []


def test_another_kind_keeps_no_member_of_the_old_kind() -> None:
    wanted = parsed("jenkins: {realm: {ldap: {server: s}}}")
    live = parsed("jenkins: {realm: {local: {password: x}}}")
    assert sections(wanted, live) == wanted


def test_names_are_sent_as_the_server_spells_them() -> None:
    live = {"unclassified": {"gitHub": {"apiUrl": "x", "inner": {"Size": 1, "token": ENCRYPTED}}}}
    wanted = {"unclassified": {"github": {"inner": {"size": 2}}}}
    kept = {"apiUrl": "x", "inner": {"Size": 2, "token": ENCRYPTED}}
    assert sections(wanted, live) == {"unclassified": {"github": kept}}


def test_members_of_a_kind_are_kept_if_only_the_kind_is_wanted() -> None:
    live = {"jenkins": {"nodes": [{"permanent": {"name": "a", "launcher": {"inbound": {"x": 1}}}}]}}
    node = {"name": "a", "launcher": "jnlp", "label": "l"}
    sent = sections({"jenkins": {"nodes": [{"dumb": node}]}}, live)
    kept = {"name": "a", "launcher": {"inbound": {"x": 1}}, "label": "l"}
    assert sent == {"jenkins": {"nodes": [{"permanent": kept}]}}


def test_secrets_of_another_item_are_not_sent() -> None:
    live = {"a": {"b": [{"server": "one", "password": ENCRYPTED}]}}
    sent = sections({"a": {"b": [{"server": "two"}]}}, live)
    assert sent == {"a": {"b": [{"server": "two"}]}}


def test_masked_secret_is_never_sent_back() -> None:
    live = {"a": {"b": {"user": "x", "pin": "****"}}}
    assert compared({"a": {"b": {"pin": "1234"}}}, live).unknown == ["a.b.pin"]
    sent, lost = without_failed(sections({"a": {"b": {"user": "y"}}}, live))
    assert (sent, lost) == ({"a": {"b": {"user": "y"}}}, ["a.b.pin"])


def play(export: Callable[[list[bytes]], str], config: Any) -> tuple[dict[str, Any], Run]:
    """Run the module against a server whose export depends on the configurations it has got."""
    written: list[bytes] = []

    def respond(seen: Seen) -> Reply:
        if "crumbIssuer" in seen.path:
            return Reply(404, headers={"X-Jenkins": "2.579"})
        if seen.path.endswith("/configure"):
            written.append(seen.body)
        return Reply(body=export(written) if seen.path.endswith("export") else "[]")

    options = options_of(CiConfigurationOptions, config=config)
    with Stub(response=respond) as stub:
        run = Run(stub.url)
        return run.play(lambda task: CiConfigurationOperation(task, options)), run


@pytest.mark.parametrize(
    ("config", "kept"),
    [
        ({"a": {"x": {"y": 5, "default": False}}}, ["a.x.default"]),
        ({"a": {"x": {"y": 5, "form": "CaseInsensitive"}}}, ["a.x.form"]),
        ({"a": {"x": {"y": 5}}, "other": {"b": {"c": 1}}}, ["other"]),
        ({"a": {"x": {"y": 5}}}, []),
    ],
)
def test_default_is_a_warning_next_to_a_change(config: Any, kept: list[str]) -> None:
    def export(written: list[bytes]) -> str:
        return f"a: {{x: {{y: {5 if written else 4}, form: caseInsensitive}}}}"

    done, run = play(export, config)
    assert done["changed"]
    assert [change["path"] for change in done["changes"]] == ["a.x.y"]
    assert done["unknown"] == kept
    assert [all(path in line for path in kept) for line in run.warnings] == [True] * bool(kept)


def test_value_that_the_server_changes_is_rejected() -> None:
    with pytest.raises(ToolchainError, match=r"did not save a\.x") as caught:
        play(lambda written: f"a: {{x: {len(written)}}}", {"a": {"x": 7}})
    assert (caught.value.kind, caught.value.result["changed"]) == ("rejected", True)


def test_holders_of_aliases_are_ignored() -> None:
    done, _run = play(lambda written: "a: {x: 1}", "{x-common: &c {x: 1}, a: *c}")
    assert (done["changed"], done["unknown"]) == (False, [])


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("a: &a [*a]", "a value contains itself"),
        ("[" * 1500, "nested deeper than 100 levels"),
        ("a: {b: [1}", "expected"),
    ],
)
def test_hostile_yaml_is_one_sentence(text: str, word: str) -> None:
    with pytest.raises(ToolchainError, match=f"cannot parse config in line 1: .*{word}") as caught:
        play(lambda written: "a: 1", text)
    assert caught.value.kind == "invalid"
    with pytest.raises(ToolchainError, match=f"exported configuration: .*{word}") as caught:
        play(lambda written: text, {"a": 1})
    assert caught.value.kind == "protocol"
