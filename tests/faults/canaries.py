# SPDX-License-Identifier: GPL-3.0-or-later
"""Test that no secret leaks: every place for a secret, every kind of failure, every sink.

    python -m tests.faults.canaries                 all cells
    python -m tests.faults.canaries wiki_page       the cells of the named modules

The places come from the modules and the connection options. The sinks are the output at `-vvvv`,
the log file, the data of callbacks, the job events of ansible-runner, leftover files, and the
arguments of processes. The program exits with 1 if any sink shows a secret.
"""

from __future__ import annotations

import argparse
import contextlib
import html
import importlib
import itertools
import json
import os
import re
import sys
import tempfile
import threading
import time
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus
from xml.etree import ElementTree

import ansible_runner
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from sandbox.client import Sandbox
from tests.helpers import connections, playbook
from tests.helpers.cases import CASES, MODULES, connection_options, first_arguments, seed, settings
from tools import tree

tree.make_importable()  # this file also runs as a program
_PLUGINS = "ansible_collections.delivery.toolchain.plugins"
_UTILS = f"{_PLUGINS}.module_utils._lib"
SERVICES = importlib.import_module(f"{_PLUGINS}.plugin_utils._lib.services").SERVICES
argument_spec = importlib.import_module(f"{_UTILS}.core.module.typed_options").argument_spec

FLAVOUR = "real"
#: A truncated secret is recognized by this share of its characters, from either end.
_PART = 0.7
_ODD = 'Odd"<é/%&\\9>Tail'
#: A secret that fits in a header, and a secret that fits only in a body or a form.
TOKEN, PASSWORD = 'Canary"<7/%&\\9>Tail', f"Canary {_ODD}"
USERS = {"repo": "deployer", "tracker": "reporter", "wiki": "reporter", "ci": "builder"}
_CLOSED = "http://127.0.0.1:9/base"

Given = dict[str, Any]


def forms(secret: str) -> set[str]:
    """Return the encodings in which a server may write a secret."""
    found = {secret, html.escape(secret), quote(secret, safe=""), quote(secret)}
    found |= {quote_plus(secret), json.dumps(secret)[1:-1]}
    found |= {json.dumps(secret, ensure_ascii=False)[1:-1], b64encode(secret.encode()).decode()}
    return found


def traces(secret: str) -> set[str]:
    """Return the strings that reveal a secret, or a large part of it, in a sink."""
    size = int(len(secret) * _PART)
    return {*forms(secret), secret[:size], secret[-size:]}


@dataclass(frozen=True)
class Login:
    """A login: its options, and the secret values in them and in their files."""

    options: Mapping[str, str]
    secrets: tuple[str, ...]
    #: User info for the URL.
    user_info: str = ""


class Logins:
    """Creates the logins of a service, with the files that they need in a folder.

    With `good`, the sandbox accepts the login. Other logins contain characters that have several
    encodings.
    """

    def __init__(self, folder: Path, port: int) -> None:
        self._folder, self._port = folder, port
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._key = key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        ).decode()
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self.public_key = public.decode()

    def of(self, service: str, kind: str, *, good: bool) -> Login:
        user = USERS.get(service, "analyst")
        password = f"{user}-password" if good else PASSWORD
        known = connections.LOGINS[service]
        basic = b64encode(f"{user}:{password}".encode()).decode()
        if kind == "password":
            return Login({"username": user, "password": password}, (password, basic))
        if kind == "address":
            return Login({}, (password, basic), f"{quote(user)}:{quote(password, safe='')}@")
        if kind == "credentials_file":
            plain = password if good else TOKEN.replace('"', "'").replace("\\", "!")
            text = f"machine 127.0.0.1 login {user} password {plain}\n"
            return Login({kind: self._file(service, text)}, (plain,))
        if kind in ("token", "api_key"):
            right = known["token"] if kind == "token" else "repo-api-key-1234567890"
            secret = right if good else TOKEN
            return Login({kind: secret}, (secret,))
        if kind in ("oidc_token", "oidc_token_file"):
            secret = "eyJ.identity-token.1234567890" if good else TOKEN
            value = secret if kind == "oidc_token" else self._file(service, secret)
            return Login({"oidc_provider": "gitlab", kind: value}, (secret,))
        if kind == "oauth2_client_secret":
            secret = f"{service}-client-secret-1234567890" if good else TOKEN
            url = f"http://127.0.0.1:{self._port}/{service}"
            options = {"oauth2_client_id": "toolchain", kind: secret, "oauth2_url": url}
            return Login(options, (secret,))
        if kind in ("ltoken", "ltoken_file", "token_json"):
            return self._ltoken(kind, connections.LTOKEN if good else TOKEN.replace(";", ""))
        return self._oauth(service, kind, good=good)

    def _ltoken(self, kind: str, token: str) -> Login:
        if kind == "ltoken":
            return Login({"username": "analyst", "ltoken": token}, (token,))
        if kind == "token_json":
            return Login({kind: json.dumps({"user": "analyst", "token": token})}, (token,))
        return Login(
            {kind: self._file("analysis", f"127.0.0.1;{self._port};analyst;{token}\n")}, (token,)
        )

    def _oauth(self, service: str, kind: str, *, good: bool) -> Login:
        token = f"{service}-access-token" if good else TOKEN
        secret = "access-secret-1234567890" if good else f"S-{PASSWORD}"
        key = self._file("key", self._key) if kind == "oauth_private_key" else self._key
        options = {
            "oauth_consumer_key": "toolchain",
            "oauth_private_key": key,
            "oauth_access_token": token,
            "oauth_access_token_secret": secret,
        }
        return Login(options, (token, secret, self._key.splitlines()[1]))

    def _file(self, name: str, text: str) -> str:
        path = self._folder / f"{name}-{len(text)}"
        path.write_text(text, encoding="utf-8")
        return str(path)


def kinds_of(service: str) -> list[str]:
    """Return the kinds of login of a service: single options, OAuth as a whole, and the URL."""
    options = SERVICES[service].credentials
    single = (
        *("token", "api_key", "password", "credentials_file"),
        *("ltoken", "ltoken_file", "token_json"),
        *("oidc_token", "oidc_token_file", "oauth2_client_secret"),
    )
    found = [kind for kind in single if kind in options]
    oauth = ["oauth", "oauth_private_key"] if "oauth_private_key" in options else []
    return [*found, *oauth, *(["address"] if "password" in options else [])]


#: Outcomes of a task. Each determines whether the login is valid, additional options, and the fault
#: of the server.
OUTCOMES = ("ok", "refused", "echoed", "cut", "redirected", "slip", "nowhere")
PLACES = ("option", "variable", "environment")
#: Outcomes of a module that runs in a separate process.
_FEWER = ("ok", "echoed", "slip")


@dataclass(frozen=True)
class Cell:
    """A module, the place of its secrets, and the outcome. `kind` is a kind of login, or `own` for
    the secret options of the module itself.
    """

    module: str
    kind: str
    place: str
    outcome: str
    in_process: bool = True

    def __str__(self) -> str:
        way = "" if self.in_process else ", on its own"
        return f"{self.module}: {self.kind} by {self.place}, {self.outcome}{way}"

    @property
    def service(self) -> str:
        return str(CASES[self.module]["service"])


def cells(modules: Sequence[str] = ()) -> list[Cell]:
    """Return all cells, or those of the given modules.

    Every module meets every outcome in every place; the kinds of login take turns. One module of
    each service uses every kind of login, and also runs in a separate process. The other modules
    read and send a login by the same code.
    """
    leading = {CASES[module]["service"]: module for module in MODULES}
    found: list[Cell] = []
    for module in modules or MODULES:
        kinds = kinds_of(CASES[module]["service"])
        ways = list(itertools.product(PLACES, OUTCOMES))
        if leading[CASES[module]["service"]] == module:
            found += [Cell(module, kind, *way) for kind in kinds for way in ways]
            found += [Cell(module, kind, "option", one, False) for kind in kinds for one in _FEWER]
        else:
            turn = MODULES.index(module)
            found += [
                Cell(module, kinds[(turn + number) % len(kinds)], *way)
                for number, way in enumerate(ways)
            ]
        if own_secrets(module):
            found += [
                Cell(module, "own", "option", outcome)
                for outcome in OUTCOMES
                if outcome != "refused"
            ]
    return found


def sample() -> list[Cell]:
    """Return a cell of every module. Together they cover every place and outcome."""
    ways = list(itertools.product(PLACES, OUTCOMES))
    found = []
    for number, module in enumerate(MODULES):
        place, outcome = ways[number % len(ways)]
        mine = [cell for cell in cells([module]) if (cell.place, cell.outcome) == (place, outcome)]
        found.append(mine[number % len(mine)])
    return found


def options_of(module: str) -> Mapping[str, Any]:
    """Return the argument spec of a module without its connection options."""
    file = getattr(importlib.import_module(f"{_PLUGINS}.modules.{module}"), module)
    camel = "".join(part.capitalize() for part in module.split("_"))
    spec: Mapping[str, Any] = argument_spec(getattr(file, f"{camel}Options"))
    return spec


class OwnSecrets:
    """A distinct secret for every option of a module that may hold one, at any depth."""

    def __init__(self, module: str) -> None:
        self.secrets: list[str] = []
        self.vault: Given = {}
        self.options = self._filled(options_of(module))

    def _secret(self) -> str:
        name = f"vault_own_{len(self.secrets)}"
        self.vault[name] = f"Own{len(self.secrets)}{_ODD}"
        self.secrets.append(self.vault[name])
        return name

    def _filled(self, spec: Mapping[str, Mapping[str, Any]]) -> Given:
        found: Given = {}
        for name, option in spec.items():
            if option.get("no_log"):
                found[name] = f"{{{{ {self._secret()} }}}}"
            elif option.get("private") and option["type"] == "str":
                secret = f"{{{{ {self._secret()} | escape }}}}"
                found[name] = f"<project><token>{secret}</token></project>"
            elif option.get("private"):
                found[name] = {"db_password": f"{{{{ {self._secret()} }}}}", "host": "x"}
            elif name.endswith("url"):
                found[name] = f"http://user:{{{{ {self._secret()} | urlencode }}}}@127.0.0.1:9/x"
            elif option.get("options"):
                inside = self._filled(option["options"])
                if inside:
                    inside = {**_needed(option["options"]), **inside}
                    found[name] = [inside] if option["type"] == "list" else inside
        return found


def _needed(spec: Mapping[str, Mapping[str, Any]]) -> Given:
    return {name: "word" for name, option in spec.items() if option.get("required")}


def own_secrets(module: str) -> OwnSecrets | None:
    """Return the secrets in a module's own options, or None if it has no such option."""
    found = OwnSecrets(module)
    return found if found.secrets else None


@dataclass(frozen=True)
class Case:
    """A cell as a task, and the secrets that must not leak."""

    cell: Cell
    task: Given
    secrets: tuple[str, ...]


class Cases:
    """Creates tasks from cells, for a sandbox."""

    def __init__(self, sandbox: Sandbox, folder: Path) -> None:
        self._sandbox, self._logins = sandbox, Logins(folder, sandbox.port)

    def of(self, cell: Cell) -> Case:
        good = cell.outcome == "ok" or cell.kind == "own"
        kind = "token" if cell.kind == "own" else cell.kind
        if kind not in kinds_of(cell.service):
            kind = kinds_of(cell.service)[0]
        login = self._logins.of(cell.service, kind, good=good)
        own = own_secrets(cell.module) if cell.kind == "own" else None
        secrets = (*login.secrets, *(own.secrets if own else ()))
        url = _CLOSED if cell.outcome == "nowhere" else self._sandbox.urls[cell.service]
        connection = {"url": url.replace("://", f"://{login.user_info}"), **login.options}
        # Use variables, as from a vault: Ansible's callbacks show the literal values of a playbook.
        vault = {f"vault_{name}": value for name, value in connection.items()}
        options = {**first_arguments(cell.module), **(own.options if own else {})}
        if cell.outcome == "slip":
            options["timeout"] = "soon"
        if cell.place == "option":
            options |= {name: f"{{{{ vault_{name} }}}}" for name in connection}
        return Case(
            cell,
            playbook.task(
                cell.module,
                {**connection_options_of(cell.module), "retries": 0, **options},
                str(cell),
                diff=True,
                vars={
                    **self._variables(cell, secrets),
                    **_named(cell, connection),
                    **vault,
                    **(own.vault if own else {}),
                    "process_environment": _environment(cell, connection),
                },
            ),
            secrets,
        )

    def _variables(self, cell: Cell, secrets: Sequence[str]) -> Given:
        faults = _fault(cell.outcome, secrets)
        state = {service: dict(values) for service, values in settings(cell.module).items()}
        for service in ("tracker", "wiki"):
            state.setdefault(service, {})["oauth_public_key"] = self._logins.public_key
        return {
            "sandbox_reset": state,
            "sandbox_seed": seed(cell.module),
            "sandbox_faults": [{"service": cell.service, "times": 99, **faults}] if faults else [],
            "toolchain_in_process": cell.in_process,
        }


def connection_options_of(module: str) -> Given:
    """Return the connection options of a case without its login."""
    credentials = SERVICES[str(CASES[module]["service"])].credentials
    found = connection_options(module, FLAVOUR)
    return {name: value for name, value in found.items() if name not in credentials}


def _named(cell: Cell, connection: Mapping[str, str]) -> Given:
    if cell.place != "variable":
        return {}
    return {f"toolchain_{cell.service}_{name}": value for name, value in connection.items()}


def _environment(cell: Cell, connection: Mapping[str, str]) -> dict[str, str]:
    if cell.place != "environment":
        return {}
    prefix = f"TOOLCHAIN_{cell.service.upper()}_"
    return {f"{prefix}{name.upper()}": value for name, value in connection.items()}


def _fault(outcome: str, secrets: Sequence[str]) -> Given:
    """Return the fault of an outcome. The response repeats the secrets that the server received."""
    message = " ".join(trace for secret in secrets for trace in sorted(forms(secret)))
    first = secrets[0]
    faults: dict[str, Given] = {
        "echoed": {"status": 500, "body": message},
        "cut": {
            "status": 403,
            "body": f"<html><h1>{'x' * (900 - len(first) // 2)}{html.escape(first)}</h1></html>",
            "content_type": "text/html",
        },
        "redirected": {"redirect": f"/x?user=a&password={quote(first, safe='')}"},
    }
    return faults.get(outcome, {})


class Arguments(threading.Thread):
    """Records the arguments of all descendant processes until the block ends."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.seen: set[str] = set()
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.wait(0.1):
            parents: dict[int, int] = {}
            for process in filter(str.isdigit, os.listdir("/proc")):
                # the process may have ended meanwhile
                with contextlib.suppress(OSError), open(f"/proc/{process}/stat", "rb") as status:
                    parents[int(process)] = int(status.read().rpartition(b")")[2].split()[1])
            for child in [each for each in parents if _is_below(each, parents)]:
                with contextlib.suppress(OSError):
                    command = Path(f"/proc/{child}/cmdline").read_text(errors="replace")
                    self.seen.add(command)

    def __enter__(self) -> Arguments:
        self.start()
        return self

    def __exit__(self, *_reason: object) -> None:
        self._over.set()
        self.join()


def _is_below(process: int, parents: Mapping[int, int]) -> bool:
    """Return whether a process is a descendant of this process."""
    while process in parents:
        process = parents[process]
        if process == os.getpid():
            return True
    return False


_TASK = re.compile(r"TASK \[(.*?)\] \*")


def _sections(text: str) -> Iterator[tuple[str, str]]:
    """Split the output by task. Yield the name of the task and its part."""
    marks = list(_TASK.finditer(text))
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    for mark, end in zip(marks, ends, strict=True):
        yield mark[1], text[mark.start() : end]


def _play(folder: Path, cases: Sequence[Case], control: str, collections: Path | None) -> None:
    """Run the tasks like a controller does, with all output in the folder."""
    (folder / "tmp").mkdir()
    (folder / "project").mkdir()
    play = playbook.play([case.task for case in cases])
    (folder / "project" / "playbook.json").write_text(json.dumps([play]), encoding="utf-8")
    variables = {
        **playbook.environment(folder, collections),
        "ANSIBLE_CALLBACKS_ENABLED": "recorder,ansible.builtin.junit",
        "ANSIBLE_LOG_PATH": str(folder / "log"),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "JUNIT_OUTPUT_DIR": str(folder / "junit"),
        "RECORDER_CONTROLS": json.dumps({"localhost": control}),
        "RECORDER_FILE": str(folder / "record.jsonl"),
        "TMPDIR": str(folder / "tmp"),
    }
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(variables)
    try:
        ansible_runner.run(
            private_data_dir=str(folder),
            playbook="playbook.json",
            cmdline="-vvvv",
            quiet=True,
            suppress_env_files=True,
        )
    finally:
        os.environ.clear()
        os.environ.update(before)


def _sinks(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the name and content of each sink: all files of a run, except its input and the file in
    which ansible-runner records its environment.
    """
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        given = relative.parts[0] == "project" or path.name == "command"
        if path.is_file() and not given:
            yield str(relative), path.read_text(encoding="utf-8", errors="replace")


def run(
    folder: Path, sandbox: Sandbox, chosen: Sequence[Cell], collections: Path | None = None
) -> Iterator[tuple[Cell, list[str]]]:
    """Run cells in one play. Yield each cell with the sinks that show its secrets."""
    files, place = folder / "files", folder / "run"
    files.mkdir()
    place.mkdir()
    cases = Cases(sandbox, files)
    all_cases = [cases.of(cell) for cell in chosen]
    with Arguments() as arguments:
        _play(place, all_cases, sandbox.control, collections)
    yield from _judged(all_cases, place, arguments.seen)


def _by_task(name: str, text: str) -> Mapping[str, str] | None:
    """Split a sink by the name of the task. Return None if its tasks cannot be distinguished."""
    if name.startswith("artifacts/") and name.endswith(".json"):
        return {json.loads(text).get("event_data", {}).get("task", ""): text}
    if name == "record.jsonl":
        # The requests that the server received are not a sink.
        events = [{**json.loads(line), "requests": []} for line in text.splitlines()]
        return {event["task"]: json.dumps(event, ensure_ascii=False) for event in events}
    if name.startswith("junit/"):
        return dict(_test_cases(text))
    return dict(_sections(text)) if _TASK.search(text) else None


def _test_cases(text: str) -> Iterator[tuple[str, str]]:
    """Split a report of JUnit by task: a name has the host, the play, the task and its options."""
    for case in ElementTree.fromstring(text).iter("testcase"):
        name = case.attrib["name"].split(": ", 1)[1]
        plain = [part for each in case.iter() for part in (*each.attrib.values(), each.text or "")]
        yield name.partition("=")[0].rpartition(" ")[0], "\n".join(plain)


def _judged(
    cases: Sequence[Case], folder: Path, arguments: set[str]
) -> Iterator[tuple[Cell, list[str]]]:
    sinks = {**dict(_sinks(folder)), "arguments of processes": "\n".join(arguments)}
    shared = {name: text for name, text in sinks.items() if _by_task(name, text) is None}
    own: dict[str, list[tuple[str, str]]] = {}
    for name, text in sinks.items():
        for task, part in (_by_task(name, text) or {}).items():
            own.setdefault(task, []).append((name, part))
    for case in cases:
        looked_for = {trace for secret in case.secrets for trace in traces(secret)}
        mine = own.get(str(case.cell), [])
        found = [] if "record.jsonl" in dict(mine) else ["it did not run"]
        for sink, text in (*shared.items(), *mine):
            if any(trace in text for trace in looked_for):
                found.append(sink)
        yield case.cell, found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the matrix; the exit status is 0 when no cell shows a secret."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.canaries")
    parser.add_argument("modules", nargs="*", choices=[*MODULES, []], metavar="MODULE")
    modules: list[str] = parser.parse_args(arguments).modules or MODULES
    started, total = time.monotonic(), Counter[str]()
    failures: list[str] = []
    with (
        Sandbox.start(flavour=FLAVOUR) as sandbox,
        tempfile.TemporaryDirectory(prefix="canaries-") as folder,
    ):
        collections = Path(folder) / "collections"
        tree.link_tree(collections)
        for cell, sinks in run(Path(folder), sandbox, cells(modules), collections):
            total[cell.module] += 1
            if sinks:
                failures.append(f"{cell}: {', '.join(sinks)}")
                print(f"FAILED {failures[-1]}", flush=True)
    for module, count in sorted(total.items()):
        print(f"{module:26s} {count} cells")
    seconds = time.monotonic() - started
    print(f"{total.total()} cells, {len(failures)} failures in {seconds:.0f} s")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())
