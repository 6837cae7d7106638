# SPDX-License-Identifier: GPL-3.0-or-later
"""Run nginx as a plain file store on loopback. Its DAV module stores, serves and deletes files, and
knows no checksums, properties or builds.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.helpers import installed, programs

PROGRAM = installed.program("nginx")
USER, PASSWORD = "deployer", "deployer-password"
_CONFIGURATION = """
daemon off;
master_process off;
pid {folder}/nginx.pid;
events {{ worker_connections 64; }}
http {{
  access_log {folder}/access.log;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  client_max_body_size 100m;
  server {{
    listen 127.0.0.1:{port};
    root {folder}/files;
    auth_basic "store";
    auth_basic_user_file {folder}/users;
    dav_methods PUT DELETE MKCOL COPY MOVE;
    create_full_put_path on;
  }}
}}
"""


@dataclass(frozen=True)
class Store:
    """A running store: its address, the folder of its files, and its access log."""

    url: str
    files: Path
    _log: Path

    def asked(self) -> list[str]:
        """Return the methods and addresses of the requests that the server has handled."""
        lines = self._log.read_text(encoding="utf-8").splitlines()
        return [line.split('"')[1].rpartition(" ")[0] for line in lines]


@contextmanager
def running(folder: Path) -> Iterator[Store]:
    """Start nginx with its data in `folder`."""
    assert PROGRAM is not None
    port = programs.free_port()
    configuration, files = folder / "nginx.conf", folder / "files"
    files.mkdir()
    configuration.write_text(_CONFIGURATION.format(folder=folder, port=port), encoding="utf-8")
    (folder / "users").write_text(f"{USER}:{{PLAIN}}{PASSWORD}\n", encoding="utf-8")
    command = (PROGRAM, "-p", folder, "-e", folder / "error.log", "-c", configuration)
    with programs.started(command, folder, installed.environment()) as program:
        program.until_listening(port)
        yield Store(f"http://127.0.0.1:{port}", files, folder / "access.log")
