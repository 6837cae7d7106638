# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of all services with empty fields, and changes by hand that fill these fields."""

from __future__ import annotations

from typing import Any

#: Objects with empty fields, which an export must contain as empty.
EMPTY: list[tuple[str, dict[str, Any]]] = [
    ("tracker_version", {"project": "REL", "name": "7.7"}),
    ("tracker_version", {"project": "REL", "name": "7.8", "release_date": "2026-05-31"}),
    ("analysis_role", {"name": "empty"}),
    ("analysis_group", {"name": "empty"}),
    ("analysis_view", {"project": "toolchain", "name": "empty", "query": "severity:1"}),
    ("analysis_module", {"project": "toolchain", "name": "plain", "paths": ["src/**"]}),
    ("ci_job", {"job": "plain", "config": "<project><builders/></project>"}),
    ("wiki_page", {"space": "REL", "title": "Plain", "body": "<p>x</p>", "parent_id": "1002"}),
    ("wiki_page", {"space": "REL", "title": "Bare", "body": "", "parent_id": "1002"}),
    ("repo_repository", {"key": "plain", "rclass": "local", "package_type": "docker"}),
    ("repo_group", {"name": "plain"}),
    (
        "repo_user",
        {"name": "plain", "email": "x@example.org", "user_password": "Plain-1234", "groups": []},
    ),
]
#: Changes of them and of seeds, with the texts of their findings in `FOUND`.
FILLED: list[tuple[str, dict[str, Any]]] = [
    ("tracker_version", {"project": "REL", "name": "7.7", "description": "soon"}),
    (
        "tracker_version",
        {"project": "REL", "name": "7.8", "start_date": "2026-05-01", "release_date": "none"},
    ),
    ("analysis_role", {"name": "empty", "permissions": {"create_build": True}}),
    ("analysis_group", {"name": "empty", "users": ["analyst"]}),
    ("analysis_view", {"project": "toolchain", "name": "empty", "tags": ["new"]}),
    (
        "analysis_module",
        {"project": "toolchain", "name": "plain", "paths": ["src/**", "lib/**"]},
    ),
    (
        "ci_job",
        {
            "job": "plain",
            "config": f"<project>{'<description>x</description>'}<builders/></project>",
        },
    ),
    ("wiki_page", {"space": "REL", "title": "Plain", "labels": ["added"]}),
    ("wiki_page", {"space": "REL", "title": "Bare", "body": "<p>added</p>"}),
    ("repo_repository", {"key": "plain", "notes": "x", "settings": {"maxUniqueTags": 7}}),
    ("repo_repository", {"key": "generic", "default_deployment_repo": ""}),
    ("repo_group", {"name": "plain", "external_id": "uuid-1"}),
    ("repo_user", {"name": "plain", "groups": ["developers"]}),
    (
        "repo_permission",
        {
            "name": "releases",
            "mode": "add",
            "resources": {"artifact": {"users": {"reader": ["read"]}}},
        },
    ),
]
FOUND = {
    "version REL/7.7: differs in description",
    "version REL/7.8: differs in start_date, release_date",
    "role empty: differs in permissions",
    "group empty: differs in users",
    "view toolchain/empty: differs in tags",
    "module toolchain/plain: differs in paths",
    "job plain: differs in description",
    "page REL/Plain: differs in labels",
    "page REL/Bare: differs in body",
    "repository plain: differs in notes, settings.maxUniqueTags",
    "repository generic: differs in default_deployment_repo",
    "group plain: differs in external_id",
    "user plain: differs in groups",
    "permission releases: differs in artifact",
}
