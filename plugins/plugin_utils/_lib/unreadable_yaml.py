# SPDX-License-Identifier: GPL-3.0-or-later
"""Exceptions of PyYAML for invalid documents, except those that contain the line."""

from __future__ import annotations

import yaml

#: `core.yaml_text.reason_of` returns the reason.
UNREADABLE = (yaml.YAMLError, ValueError, KeyError, AttributeError, RecursionError)
