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
  - Enables or disables the detection of a defect type in a project. An unchanged type costs a single request.
  - Defect types are built in. If the type does not exist, the task fails.
  - After a change, the types are read again to verify it.
author: delivery.toolchain contributors (@delivery-toolchain)
extends_documentation_fragment:
  - delivery.toolchain.connection.analysis
  - delivery.toolchain.attributes
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
    description: Whether an analysis detects these defects.
    type: bool
    required: true
"""

EXAMPLES = r"""
- name: Disable the detection of casts
  delivery.toolchain.analysis_defect_type:
    project: toolchain
    code: MISRA.CAST.INT
    enabled: false

- name: Enable the detection of buffer overflows
  delivery.toolchain.analysis_defect_type:
    project: toolchain
    code: ABV.GENERAL
    enabled: true
"""

RETURN = r"""
defect_type:
  description: Defect type after the task.
  returned: always
  type: dict
  contains:
    project:
      description: Name of the project.
      type: str
    code:
      description: Code of the defect type.
      type: str
    enabled:
      description: Whether an analysis detects these defects.
      type: bool
      returned: if the server reports it
  sample: {project: toolchain, code: MISRA.CAST.INT, enabled: false}
unknown:
  description: Names of the options that cannot be compared.
  returned: if something cannot be compared
  type: list
  elements: str
  sample: [enabled]
http: {description: "Cost of the task, as C(requests), C(writes), C(retries), C(bytes_sent), C(bytes_received) and C(seconds).", returned: always, type: dict}
error: {description: "Details of the error, as C(kind), C(status), C(method), C(url) and C(detail).", returned: on failure, type: dict}
"""

from ..module_utils._lib.core.module.runner import run
from ..module_utils._lib.analysis.resources import analysis_defect_type


def main() -> None:
    run(
        analysis_defect_type.AnalysisDefectTypeOptions,
        analysis_defect_type.AnalysisDefectTypeOperation,
    )


if __name__ == "__main__":
    main()
