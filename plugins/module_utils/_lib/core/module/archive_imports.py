# SPDX-License-Identifier: GPL-3.0-or-later
"""Speed up imports from the zip archive in which Ansible sends a module.

Python compiles each file of an archive twice: to find its path (`zipimporter.get_filename`) and to
run it. In a separate process, this is a quarter of the time that the collection adds to a task.
Modules that are imported after this one are compiled once.
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
    """A finder for modules in zip archives that does not compile them."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module in an archive, or `None` to let the next finder search.

        :param path: folders of the parent package, `None` for a top-level module
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
    location = f"{folder}/{fullname.rpartition('.')[2]}"
    origin = f"{location}/__init__.py" if is_package else f"{location}.py"
    spec = ModuleSpec(fullname, importer, origin=origin, is_package=is_package)
    spec.has_location = True
    if spec.submodule_search_locations is not None:
        spec.submodule_search_locations.append(location)
    return spec


if isinstance(sys.modules[__name__].__loader__, zipimporter):
    sys.meta_path.insert(0, ArchiveFinder())
