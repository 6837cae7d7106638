#!/usr/bin/python
# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

DOCUMENTATION = r"""
module: analysis_defect_type
short_description: Enable or disable a defect type of a project on the code analysis server
version_added: 1.0.0
description:
  - Decides whether an analysis of a project looks for defects of a type. A type that is as wanted costs one request.
  - Defect types come with the server; one that is not there fails the task.
  - After a change the types are read back.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.analysis
  - delivery.toolchain.attributes
  - delivery.toolchain.attributes.analysis
options:
  project:
    description: Name of the project. It must be there.
    type: str
    required: true
  code:
    description: Code of the defect type.
    type: str
    required: true
  enabled:
    description: Whether an analysis looks for such defects.
    type: bool
    required: true
"""

EXAMPLES = r"""
- name: Do not look for casts
  delivery.toolchain.analysis_defect_type:
    project: toolchain
    code: MISRA.CAST.INT
    enabled: false

- name: Look for buffer overflows
  delivery.toolchain.analysis_defect_type:
    project: toolchain
    code: ABV.GENERAL
    enabled: true
"""

RETURN = r"""
defect_type:
  description: The defect type as it is after the task.
  returned: always
  type: dict
  contains:
    project:
      description: Name of the project.
      type: str
      returned: always
    code:
      description: Code of the defect type.
      type: str
      returned: always
    enabled:
      description: Whether an analysis looks for such defects.
      type: bool
      returned: when the server tells
  sample: {project: toolchain, code: MISRA.CAST.INT, enabled: false}
http:
  description: Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).
  returned: always
  type: dict
error:
  description: Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).
  returned: on failure
  type: dict
"""

from ansible_collections.delivery.toolchain.plugins.module_utils.core.module import runner
from ansible_collections.delivery.toolchain.plugins.module_utils.analysis.resources import (
    analysis_defect_type,
)


def main() -> None:
    runner.run(
        "analysis",
        analysis_defect_type.AnalysisDefectTypeOptions,
        analysis_defect_type.AnalysisDefectTypeOperation,
    )


if __name__ == "__main__":
    main()
