# SPDX-License-Identifier: GPL-3.0-or-later
"""`python -m sandbox`: start the five services and print their addresses."""

from __future__ import annotations

import argparse
import json
import os
import sqlite3
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sandbox.app import SERVICES, build_app, default_seeds, load_seed
from sandbox.context import FLAVOURS
from sandbox.rights import password_of
from sandbox.server import serve
from sandbox.store import Store

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def _flavours(values: Sequence[str]) -> dict[str, str]:
    """Parse flavours: `real` sets all services, `ci=real` sets one. Later values win."""
    chosen: dict[str, str] = {}
    for value in values:
        service, equals, flavour = value.rpartition("=")
        if flavour not in FLAVOURS or (equals and service not in SERVICES):
            raise argparse.ArgumentTypeError(
                f"--flavour is '{value}', but must be written, real, or for example ci=real"
            )
        chosen.update(dict.fromkeys([service] if equals else SERVICES, flavour))
    return chosen


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m sandbox", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="default: any free port")
    parser.add_argument(
        "--database", metavar="FILE", help="keep the state in this file (default: in memory)"
    )
    parser.add_argument(
        "--seed",
        metavar="FILE",
        type=Path,
        action="append",
        default=[],
        help="further data, merged into the default seed",
    )
    parser.add_argument("--no-default-seed", action="store_true", help="load only the --seed files")
    parser.add_argument("--flavour", metavar="[SERVICE=]written|real", action="append", default=[])
    parser.add_argument(
        "--ready-file",
        metavar="FILE",
        type=Path,
        help="write the addresses to this file as JSON when the sandbox is ready",
    )
    arguments = parser.parse_args()
    try:
        arguments.flavours = _flavours(arguments.flavour)
    except argparse.ArgumentTypeError as error:
        parser.error(str(error))
    return arguments


def _announce(host: str, port: int, logins: Mapping[str, str], ready_file: Path | None) -> None:
    root = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    urls = {name: f"{root}/{name}" for name in SERVICES}
    control = f"{root}/_sandbox"
    for name, url in {**urls, "control": control}.items():
        print(f"{name:<10}{url:<35}{logins.get(name, '')}".rstrip(), flush=True)
    if ready_file is not None:
        partial = ready_file.with_name(ready_file.name + ".partial")
        partial.write_text(
            json.dumps({"pid": os.getpid(), "port": port, "urls": urls, "control": control}),
            encoding="utf-8",
        )
        os.replace(partial, ready_file)


def _login(credentials: Mapping[str, Any]) -> str:
    """Return the account that the default seed of a service lists first: it may do everything."""
    name, account = next(iter(credentials["users"].items()))
    token = account.get("ltoken") if isinstance(account, dict) else None
    return f"{name} / {token or password_of(account)}"


def main() -> int:
    try:
        _run(_arguments())
    except (OSError, OverflowError, ValueError, sqlite3.Error) as error:
        # The port is taken, or a seed or the database cannot be read.
        print(f"python -m sandbox: {error}", file=sys.stderr)
        return 1
    return 0


def _run(arguments: argparse.Namespace) -> None:
    seeds = [] if arguments.no_default_seed else default_seeds()
    services = [service for seed in seeds for service in seed.items()]
    logins = {name: _login(seed["credentials"]) for name, seed in services}
    seeds += [load_seed(path) for path in arguments.seed]
    store = Store(arguments.database)
    try:
        app = build_app(store, seeds, arguments.flavours)
        serve(
            app,
            arguments.host,
            arguments.port,
            lambda port: _announce(arguments.host, port, logins, arguments.ready_file),
        )
    finally:
        store.close()


if __name__ == "__main__":
    sys.exit(main())
