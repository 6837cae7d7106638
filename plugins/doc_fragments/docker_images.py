# Copyright (c) 2026, delivery.toolchain contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options for listing images and tags, for the module and the lookups."""

from __future__ import annotations


class ModuleDocFragment:
    DOCUMENTATION = r"""
options:
  page_size:
    description:
      - Number of names per request. The server may return fewer names, or all.
      - All pages are read, whatever the size.
    type: int
    default: 1000
  attached:
    description:
      - Also return tags that are attached to an image, which have the form C(sha256-DIGEST), C(sha256-DIGEST.sig), C(.att) or C(.sbom).
        They contain signatures, attestations and SBOMs, or list the referrers of the image.
      - An image reference with a tag or a digest also returns attached tags.
    type: bool
    default: false
"""
