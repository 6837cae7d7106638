# SPDX-License-Identifier: GPL-3.0-or-later
"""The writes of the modules, and how they are run where something goes wrong with them."""

from __future__ import annotations

from typing import Any

from tests.helpers.cases import MODULES

#: How the write of a module is known, in the `real` flavour.
WRITES: dict[str, dict[str, Any]] = {
    "analysis_build": {"match": "action=update_build"},
    "analysis_config": {"match": "action=create_group"},
    "analysis_defect_type": {"match": "action=update_defect_type"},
    "analysis_group": {"match": "action=create_group"},
    "analysis_issue": {"match": "action=update_status"},
    "analysis_module": {"match": "action=create_module"},
    "analysis_project": {"match": "action=import_project"},
    "analysis_role": {"match": "action=create_role"},
    "analysis_role_assignment": {"match": "action=update_role_assignment"},
    "analysis_server_import": {"match": "action=import_server_configuration"},
    "analysis_user": {"match": "action=create_user"},
    "analysis_view": {"match": "action=create_view"},
    "artifact_cleanup": {"method": "DELETE"},
    # the rehearsal passes
    "artifact_copy": {"method": "POST", "path": "^/api/copy/", "skip": 1},
    "artifact_deploy": {"method": "PUT"},
    "artifact_properties": {"method": "PUT"},
    "artifact_trash": {"method": "POST", "path": "^/api/trash/empty"},
    "build_promote": {"method": "POST", "path": "^/api/build/promote/"},
    "build_publish": {"method": "PUT", "path": "^/api/build$"},
    "build_record": {"method": "DELETE"},
    "build_retention": {"method": "POST", "path": "^/api/build/retention/"},
    "ci_build_stop": {"method": "POST", "path": "/stop$"},
    "ci_job": {"method": "POST", "path": "/createItem"},
    "ci_job_build": {"method": "POST", "path": "/build(WithParameters)?$"},
    "ci_plugin": {"method": "POST", "path": "/installPlugins$"},
    "ci_restart": {"method": "POST", "path": "^/safeRestart"},
    "ci_script": {"method": "POST", "path": "^/scriptText"},
    "docker_promote": {"method": "POST", "path": "/promote$"},
    "tracker_issue": {"method": "POST", "path": "^/rest/api/2/issue$"},
    "tracker_version": {"method": "POST", "path": "^/rest/api/2/version$"},
    "wiki_page": {"method": "POST", "path": "^/rest/api/content"},
    "wiki_tree": {"method": "POST", "path": "^/rest/api/content$"},
}
#: Options that are left out there: with `unless` a script is sent before the one that writes.
WITHOUT = {"ci_script": ("unless",)}
#: Options with which the tests wait less.
IMPATIENT: dict[str, dict[str, Any]] = {
    "ci_build_stop": {"poll_interval": 0.1},
    "ci_job_build": {"poll_interval": 0.1},
    "ci_plugin": {"poll_interval": 0.1},
    "ci_restart": {"poll_interval": 0.1},
}
WRITERS = sorted(set(MODULES) & set(WRITES))
