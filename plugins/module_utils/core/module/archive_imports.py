# SPDX-License-Identifier: GPL-3.0-or-later
"""Imports from the archive in which Ansible sends a module to where it runs.

The interpreter compiles each file of an archive twice: once to learn where it lies
(C(zipimporter.get_filename), which every search asks), and once to run it. For a task in a process
of its own that is a quarter of what this collection takes beside Ansible. What is imported after
this file is compiled once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from pkgutil import get_importer
from types import ModuleType
from typing import Any
from zipimport import ZipImportError, zipimporter


class ArchiveFinder:
    """Finds the modules of packages that lie in an archive, without compiling them."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The spec that the archive itself would give; C(None): whoever is asked next may know.

        :param path: the folders of the package, C(None) for a module outside of any
        """
        for folder in path or ():
            importer = get_importer(folder)
            if not isinstance(importer, zipimporter):
                return None
            try:
                is_package = importer.is_package(fullname)
            except ZipImportError:
                continue
            return _spec(fullname, importer, folder, is_package)
        return None


def _spec(fullname: str, importer: Any, folder: str, is_package: bool) -> ModuleSpec:
    place = f"{folder}/{fullname.rpartition('.')[2]}"
    origin = f"{place}/__init__.py" if is_package else f"{place}.py"
    spec = ModuleSpec(fullname, importer, origin=origin, is_package=is_package)
    spec.has_location = True
    if spec.submodule_search_locations is not None:
        spec.submodule_search_locations.append(place)
    return spec


if isinstance(sys.modules[__name__].__loader__, zipimporter):
    sys.meta_path.insert(0, ArchiveFinder())
