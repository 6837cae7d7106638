# SPDX-License-Identifier: GPL-3.0-or-later
"""Approvals of a sealed plan: signatures of OpenSSH, which lie beside the plan [C9].

`ssh-keygen` verifies them. The key and the namespace in a signature are only read in order to find
the person, and to say why a signature does not count (PROTOCOL.sshsig of OpenSSH).
"""

from __future__ import annotations

import base64
import binascii
import difflib
import errno
import os
import re
import shutil
import stat
import struct
import subprocess
import tempfile
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ....module_utils._lib.core.errors import invalid, listed, shorten
from ....module_utils._lib.core.files import open_regular
from .sealed import PlanError

NAMESPACE = "delivery.toolchain.plan"
_PROGRAM = "ssh-keygen"
_SECONDS = 60
#: Limits for the file with the signatures.
_MAX_BYTES, _MAX_SIGNATURES = 64 * 1024, 100
#: Longest message and name in characters.
_SHOWN = 500
#: Links that a path may have. Linux allows as many.
_MAX_LINKS = 40
#: A word of a line of `allowed_signers`. Quoted parts may contain blanks.
_WORD = re.compile(r'(?:"(?:\\.|[^"\\])*"|[^ \t"])+')
_KEY_TYPE = re.compile(r"(?:sk-)?(?:ssh|ecdsa)-")
_ARMOUR = re.compile(
    r"\s*-----BEGIN SSH SIGNATURE-----([A-Za-z0-9+/=\s]+)-----END SSH SIGNATURE-----\s*"
)
_MAGIC = b"SSHSIG"


@dataclass(frozen=True)
class Rules:
    """Rules for the approval of a plan.

    :param number: number of required signatures
    :param signers: file in the format of `allowed_signers`
    :param requester: person who asks for the run; this signature does not count
    """

    number: int
    signers: Path
    requester: str


@dataclass(frozen=True)
class Approval:
    """A person, and the name of the file with the signature."""

    name: str
    file: str


@dataclass(frozen=True)
class _Signer:
    """A line of `allowed_signers`.

    :param problem: why the line allows no approval, or ""
    """

    line: str
    name: str
    key: bytes
    problem: str = ""

    @property
    def persons(self) -> set[str]:
        """Return the literal names of the line, for comparisons."""
        return {
            _folded(name) for name in self.name.split(",") if name and not set(name) & set("*?!")
        }


def verify(rules: Rules, plan: Path, content: bytes, warn: Callable[[str], None]) -> list[Approval]:
    """Return the approvals of a plan that count. Warn about each signature that does not.

    :param plan: file of the plan, beside which the signatures are
    :param content: bytes of the plan
    :raises PlanError: if fewer persons than wanted have signed, or nothing can be verified
    """
    program = shutil.which(_PROGRAM)
    if program is None:
        raise PlanError(f"cannot be verified without {_PROGRAM}: install the client of OpenSSH")
    signers = _signers(rules.signers)
    requesters = _requesters(rules, signers)
    persons: dict[str, Approval] = {}
    for file in _signatures(plan):
        try:
            signature = _bytes_of(file)
            signer = _signer_of(signature, signers, rules)
            _require_another(signer, requesters, "has requested the run")
            _require_another(signer, persons, "has signed already")
            _require_valid(program, signer, signature, content)
        except _NoApprovalError as reason:
            warn(shorten(f"The signature {file} is no approval: {reason}.", _SHOWN))
        else:
            names = (shorten(name, _SHOWN) for name in (signer.name, file.name))
            persons[_folded(signer.name)] = Approval(*names)
    if len(persons) < rules.number:
        raise PlanError(
            f"{plan} has {len(persons)} of {rules.number} approvals: other persons than"
            f" enforce_requester sign it with {_PROGRAM} -Y sign -n {NAMESPACE} -f KEY {plan.name}"
        )
    return list(persons.values())


class _NoApprovalError(Exception):
    """A signature does not count. The message is the reason."""


def _folded(name: str) -> str:
    """Return a name for comparisons: the same for all spellings of a person."""
    return unicodedata.normalize("NFKC", name).casefold().strip()


def _requesters(rules: Rules, signers: Sequence[_Signer]) -> set[str]:
    """Return all names of the requester: those of the lines and keys that have one of them.

    :raises ToolchainError: `invalid`, if no line names the requester. A name that is spelt in
        another way would otherwise let the requester approve
    """
    names, keys = {_folded(rules.requester)}, set[bytes]()
    if not any(names & signer.persons for signer in signers):
        known = sorted({signer.name for signer in signers if signer.persons})
        near = [name for name in known if _look_alike(name, rules.requester)]
        hint = f" Similar names there: {listed(near)}." if near else ""
        raise invalid(
            f"enforce_requester: no line of {rules.signers} names {shorten(rules.requester)}."
            f"{hint} Set it to the name that this person has in the file, or add a line"
        )
    before = -1
    while before != len(names) + len(keys):
        before = len(names) + len(keys)
        for signer in signers:
            if names & signer.persons or signer.key in keys:
                names |= signer.persons
                keys |= {signer.key} - {b""}
    return names


def _look_alike(name: str, requester: str) -> bool:
    """Return whether a name in the file may be meant."""
    one, other = _folded(name), _folded(requester)
    if one.partition("@")[0] == other.partition("@")[0]:
        return True
    return bool(difflib.get_close_matches(other, [one, *one.split(",")], 1, 0.75))


def _require_another(signer: _Signer, persons: Iterable[str], reason: str) -> None:
    """Raise `_NoApprovalError` for one of `persons`, also by a name with or without a domain."""
    name = _folded(signer.name)
    for person in persons:
        if person == name:
            raise _NoApprovalError(f"{signer.name} {reason}")
        (one, at, _domain), (other, other_at, _other) = person.partition("@"), name.partition("@")
        if one == other and not (at and other_at):
            raise _NoApprovalError(f"{signer.name} may be {person}, who {reason}")


def _signatures(plan: Path) -> list[Path]:
    try:
        listed = os.listdir(plan.parent)
    except OSError as error:
        raise PlanError(
            f"{plan} has no signatures that can be found: {plan.parent} cannot be listed:"
            f" {error.strerror}"
        ) from None
    names = [name for name in listed if name.startswith(f"{plan.name}.") and name.endswith(".sig")]
    if len(names) > _MAX_SIGNATURES:
        raise PlanError(
            f"{plan} has {len(names)} signatures, more than {_MAX_SIGNATURES}: remove others"
        )
    return [plan.parent / name for name in sorted(names)]


def _bytes_of(file: Path) -> bytes:
    try:
        with open(file, "rb", opener=open_regular) as stream:
            content = stream.read(_MAX_BYTES + 1)
    except OSError as error:
        raise _NoApprovalError(f"it cannot be read: {error.strerror}") from None
    if len(content) > _MAX_BYTES:
        raise _NoApprovalError("it is too large")
    return content


# -- signers --------------------------------------------------------------------------------------


def _signers(file: Path) -> list[_Signer]:
    """Read the file of signers once. Raises `PlanError` if others may write it."""
    try:
        for path in _on_the_way(file):
            _require_own(path, path.lstat(), file)
        # without newline, a lone CR in a comment would begin a line
        with open(file, encoding="utf-8", newline="\n", opener=open_regular) as stream:
            _require_own(file, os.fstat(stream.fileno()), file)
            lines = [line.strip(" \t\r") for line in stream.read().split("\n")]
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise PlanError(
            f"cannot be verified with {file}: {reason}. Set enforce_signers to a file in the format"
            " of allowed_signers"
        ) from None
    found = [
        _parsed(line, f"line {number} of {file.name}")
        for number, line in enumerate(lines, 1)
        if line and not line.startswith("#")
    ]
    owners: dict[bytes, set[str]] = {}
    for signer in found:
        owners.setdefault(signer.key, set()).add(_folded(signer.name))
    # a key that several persons share allows no approval
    return [
        replace(signer, problem="several persons share its key")
        if len(owners[signer.key]) > 1 and not signer.problem
        else signer
        for signer in found
    ]


def _on_the_way(file: Path) -> Iterator[Path]:
    """Yield each folder and link that leads to a file, from the root on.

    Whoever may write one of the folders can replace what is in it, and so the signers.
    """
    left, path, links = [*reversed(file.absolute().parts[1:])], Path(file.absolute().anchor), 0
    yield path
    while left:
        part = left.pop()
        inner = path.parent if part == ".." else path / part
        if not inner.is_symlink():
            path = inner
            if left:
                yield path
            continue
        yield inner
        links += 1
        if links > _MAX_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
        target = inner.readlink()
        if target.is_absolute():
            path = Path(target.anchor)
        left += reversed(target.parts[1:] if target.is_absolute() else target.parts)


def _require_own(path: Path, status: os.stat_result, file: Path) -> None:
    """Raise `PlanError` for a file, folder or link that other accounts may write.

    On a read-only mount, such as a volume of Kubernetes, the owner and the mode of a folder do not
    matter. In a sticky folder, such as /tmp, nobody can replace what belongs to others.
    """
    is_folder = stat.S_ISDIR(status.st_mode)
    is_link = stat.S_ISLNK(status.st_mode)
    mounted = os.statvfs(path.parent if is_link else path).f_flag & os.ST_RDONLY
    sticky = is_folder and status.st_mode & stat.S_ISVTX
    if (is_folder or is_link) and mounted:
        return
    if not mounted and status.st_uid not in (0, os.geteuid()):
        reason = f"{path} belongs neither to root nor to the account that runs Ansible"
    elif status.st_mode & 0o022 and not sticky and not is_link:
        reason = f"others may write {path}: chmod go-w"
    else:
        return
    raise PlanError(f"cannot be verified with {file}, because {reason}")


def _parsed(line: str, where: str) -> _Signer:
    name, *words = [*_WORD.findall(line), ""]
    options = "" if _KEY_TYPE.match(words[0] if words else "") or not words else words.pop(0)
    name = name[1:-1] if name[:1] == name[-1:] == '"' else name
    try:
        key = base64.b64decode(words[1], validate=True)
    except (IndexError, ValueError):
        return _Signer(line, name, b"", f"{where} is not valid")
    problem = ""
    if not name.isprintable() or not name.strip() or set(name) & set('*?!,"'):
        problem = f"{where} names a pattern or several persons, not a single one"
    elif re.search(r"\bcert-authority\b", options, re.IGNORECASE):
        problem = f"{where} is a certificate authority, not the key of a person"
    return _Signer(line, name, key, problem)


# -- signatures -----------------------------------------------------------------------------------


def _signer_of(signature: bytes, signers: Sequence[_Signer], rules: Rules) -> _Signer:
    """Return the signer whose key is in a signature."""
    key, namespace = _key_and_namespace(signature)
    if namespace != NAMESPACE:
        raise _NoApprovalError(f"its namespace is '{shorten(namespace)}', not {NAMESPACE}")
    lines = [signer for signer in signers if signer.key == key]
    if not lines:
        raise _NoApprovalError(f"its key is not in {rules.signers}")
    valid = [signer for signer in lines if not signer.problem]
    signer = valid[0] if valid else lines[0]
    if signer.problem:
        raise _NoApprovalError(signer.problem)
    # a person may have a line for each period of validity of a key
    periods = [other.line for other in valid if other.name == signer.name]
    return replace(signer, line="\n".join(periods))


def _key_and_namespace(signature: bytes) -> tuple[bytes, str]:
    found = _ARMOUR.fullmatch(signature.decode("ascii", "replace"))
    try:
        blob = base64.b64decode("".join(found[1].split()), validate=True) if found else b""
        start = len(_MAGIC) + 4  # a version follows
        if not blob.startswith(_MAGIC):
            raise ValueError
        key, start = _string(blob, start)
        namespace, _start = _string(blob, start)
        return key, namespace.decode()
    except (ValueError, struct.error, binascii.Error):
        raise _NoApprovalError("it is not a signature of OpenSSH") from None


def _string(blob: bytes, start: int) -> tuple[bytes, int]:
    """Return a string of the format, and the position of its end."""
    (length,) = struct.unpack_from(">I", blob, start)
    end = start + 4 + length
    if end > len(blob):
        raise ValueError
    return blob[start + 4 : end], end


def _require_valid(program: str, signer: _Signer, signature: bytes, content: bytes) -> None:
    """Verify a signature over the bytes of the plan with the lines of its signer alone."""
    with tempfile.TemporaryDirectory() as name:
        allowed, file = Path(name) / "signers", Path(name) / "signature"
        allowed.write_text(f"{signer.line}\n", "utf-8")
        file.write_bytes(signature)
        options = ["-f", str(allowed), "-I", signer.name, "-n", NAMESPACE, "-s", str(file)]
        try:
            done = subprocess.run(  # noqa: S603 - a fixed program, without a shell
                [program, "-Y", "verify", *options],
                input=content,
                capture_output=True,
                check=False,
                timeout=_SECONDS,
                env={"PATH": os.defpath, "LC_ALL": "C"},
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise _NoApprovalError(f"{_PROGRAM} failed: {error}") from None
    if done.returncode != 0:
        said = f"{done.stdout.decode(errors='replace')} {done.stderr.decode(errors='replace')}"
        raise _NoApprovalError(f"{_PROGRAM} does not accept it: {shorten(said, 300)}")
