# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert a job name (`folder/job`, a list of names, or a URL) to a path on the server."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any
from urllib.parse import quote, unquote

from ..core import address
from ..core.address import NOWHERE, origin, path_of, require_address
from ..core.errors import conflict, invalid, printable
from ..core.module.typed_options import Option
from ..core.secret import misplaced_user_info

# Server fact [ci-5]: the job of a branch has a name in which these characters are percent-encoded.
# In a URL that name is encoded again: feature/x becomes feature%252Fx. A name that already contains
# such an encoding is not encoded twice.
_ENCODED_IN_NAMES = re.compile(r"[/?#\[\]\\]|%(?!23|25|2F|3F|5B|5C|5D)")

#: Characters that no job name contains, not even the name of a branch.
_IMPOSSIBLE = re.compile(r"[*^:\x00-\x1f\x7f]")

#: Characters that the server allows in no name, except in that of a branch [ci-5].
SPECIAL = "?*/\\%!@#$^&|<>[]:;"

#: Characters that no name at the top of the server contains: a branch is below its project.
_TOP = SPECIAL.replace("/", "")
_NOT_AT_THE_TOP = re.compile(rf"[{re.escape(_TOP)}\x00-\x1f\x7f]")

#: What the names of nodes and views cannot contain or be.
_NOT_IN_NAMES = re.compile(rf"[{re.escape(SPECIAL)}\x00-\x1f\x7f]|^\s|\s$|^\.{{1,2}}$")

#: Build number, or a permalink such as `lastBuild`.
_BUILD = re.compile(r"[0-9]+|[A-Za-z][A-Za-z0-9_-]*")

#: Type of an option that names a job.
JobName = Annotated[Any, Option(values="text")]


@dataclass(frozen=True)
class Job:
    """A job. `path` is percent-encoded and relative to the server's URL; `name` is for messages."""

    path: str
    name: str

    @property
    def stored_name(self) -> str:
        """Return the full name as the server stores it, with encoded branch names [ci-5]."""
        return "/".join(unquote(segment) for segment in self.path.split("/")[1::2])

    def require_spelling(self, shown: Mapping[str, Any], purpose: str) -> None:
        """Raise `conflict` if the server spells the name of the job with other letter case.

        Server fact [ci-5]: names that differ only in case are one job.

        :param shown: JSON of the job with `fullName`, which some servers leave out
        """
        stored, given = str(shown.get("fullName", "")), self.stored_name
        if stored != given and stored.casefold() == given.casefold():
            raise conflict(
                f"{purpose}: on the server its name is '{unquote(stored)}', and names that differ"
                " only in case are one job: use the server's spelling"
            )

    def below(self, stored: str) -> Job:
        """Return the job in this folder that the server lists under the name `stored`."""
        return Job(f"{self.path}/job/{address.path(stored)}", f"{self.name}/{unquote(stored)}")


def job_of(value: object, base_url: str, option: str = "job") -> Job:
    """Return the job that an option names. Raises `invalid` for other values.

    :param value: `folder/job`, a list of names (one per level), or a URL on the server
    :param base_url: URL of the server without a trailing slash
    :param option: its name, for messages
    """
    names = list(value) if isinstance(value, (list, tuple)) else [value]
    if any(isinstance(name, (bool, bytes)) or not isinstance(name, (str, int)) for name in names):
        raise invalid(
            f"{option} must be a string or a list of strings: use folder/job, a list of names, or a"
            " URL"
        )
    if isinstance(value, (list, tuple)):
        return _of_names([str(name) for name in value], option)
    text = str(value).strip()
    start, end = misplaced_user_info(text)
    if end > start or "://" in text:
        return _of_url(text, base_url, option)
    return _of_names(text.strip("/").split("/"), option)


def build_path(job: Job, number: int) -> str:
    return f"{job.path}/{number}"


def build_segment(build: str) -> str:
    """Return the path segment of a build: its number or a permalink. Raises `invalid` for other
    values.
    """
    text = build.strip()
    if _BUILD.fullmatch(text) is None:
        raise invalid(f"build is '{text}': set it to a number or a permalink such as lastBuild")
    return text


def require_name(name: str, noun: str) -> None:
    """Raise `invalid` for a name that no node or view can have."""
    if _NOT_IN_NAMES.search(name):
        raise invalid(
            f"name '{name}' is not a valid {noun} name: write it without {SPECIAL} and"
            " control characters, without blanks at its ends, and not as . or .."
        )


def _of_names(names: list[str], option: str) -> Job:
    if not names or any(name.strip() == "" for name in names):
        raise invalid(
            f"{option} has an empty name: use folder/job, a list of names, or the job's URL"
        )
    if not {".", ".."}.isdisjoint(names):
        named = "/".join(names)
        raise invalid(f"{option} is '{named}': use the full name of the job, without '.' and '..'")
    for level, name in enumerate(names):
        if (_IMPOSSIBLE if level else _NOT_AT_THE_TOP).search(name):
            characters = "*^:" if level else _TOP
            raise invalid(
                f"{option}: '{printable(name)}' cannot be the name of a job: it contains one of"
                f" {characters} or a control character"
            )
    stored = [_ENCODED_IN_NAMES.sub(lambda found: quote(found[0], safe=""), name) for name in names]
    path = "/".join(f"job/{address.path(name)}" for name in stored)
    return Job(path, "/".join(names))


def _of_url(url: str, base_url: str, option: str) -> Job:
    """Return the job at a URL of the server. Views in the path are ignored."""
    if origin(url) == NOWHERE:
        require_address(url, f"in {option}")
    base = path_of(base_url).rstrip("/")
    same = origin(url) == origin(base_url) != NOWHERE
    if not same or not path_of(url).startswith(f"{base}/"):
        raise invalid(f"the URL in {option} is not on the CI server at {base_url}")
    rest = path_of(url)[len(path_of(base_url)) :]
    parts = [part for part in rest.split("/") if part]
    segments: list[str] = []
    while parts:
        kind, name, *parts = [*parts, ""] if len(parts) == 1 else parts
        if kind not in ("job", "view") or unquote(name) in ("", ".", ".."):
            raise invalid(f"the URL in {option} is not the URL of a job (…/job/folder/job/name/)")
        if kind == "job":
            segments.append(quote(name, safe="%"))
    if not segments:
        raise invalid(f"the URL in {option} does not name a job (…/job/folder/job/name/)")
    names = [unquote(unquote(segment)) for segment in segments]
    return Job("/".join(f"job/{segment}" for segment in segments), "/".join(names))


def same_job(url: object, job: Job) -> bool:
    """Return whether a URL from the server is that of `job`, with any root URL."""
    shown = unquote(path_of(str(url))).rstrip("/")
    path = unquote(job.path)
    # a path with more folders is another job: `x/job/a/job/b` is not `b`
    return shown.endswith(f"/{path}") and "/job/" not in shown.removesuffix(path)
