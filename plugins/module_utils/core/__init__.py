# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever imports the core finds out first whether this Python will do: an older one would end in
a traceback somewhere.
"""

from __future__ import annotations

import json
import sys

OLDEST = (3, 10)

if sys.version_info[:2] < OLDEST:
    said = "{}.{}".format(*sys.version_info[:2])
    sys.stdout.write(
        json.dumps(
            {
                "failed": True,
                "msg": "The modules of delivery.toolchain need Python 3.10 or newer where they run,"
                " and " + sys.executable + " is Python " + said + ": name a newer one in the"
                " variable ansible_python_interpreter",
            }
        )
    )
    raise SystemExit(1)
