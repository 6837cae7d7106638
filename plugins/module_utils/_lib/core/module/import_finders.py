# SPDX-License-Identifier: GPL-3.0-or-later
"""Speed up the imports of the collection, which Python or Ansible would compile each time.

In a separate process, a module comes in a zip archive. Python compiles each file of an archive
twice: to find its path (`zipimporter.get_filename`) and to run it. On the controller, the loader of
Ansible for collections compiles every file in each run. Modules that are imported after this one
are compiled once, or are loaded from the `__pycache__` that Python keeps for all other code.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, ModuleSpec, SourceFileLoader
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


class FolderFinder:
    """A finder for the files of the collection in its folder, which Ansible compiles each time."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a file, or `None` to let Ansible search, also for a package."""
        for folder in path or () if fullname.startswith(_COLLECTION) else ():
            spec = _files_in(folder).find_spec(fullname)
            if spec is not None and spec.loader is not None:
                return spec
        return None


@functools.cache
def _files_in(folder: str) -> FileFinder:
    return FileFinder(folder, (SourceFileLoader, SOURCE_SUFFIXES))


_COLLECTION = f"{__name__.partition('.plugins.')[0]}.plugins."
if isinstance(sys.modules[__name__].__loader__, zipimporter):
    sys.meta_path.insert(0, ArchiveFinder())
else:  # ansible-test forbids a place before its own finder
    for _place, _finder in enumerate(sys.meta_path):
        if type(_finder).__module__.startswith("ansible."):
            sys.meta_path.insert(_place, FolderFinder())
            break
