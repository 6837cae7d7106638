# SPDX-License-Identifier: GPL-3.0-or-later
"""A real container registry on the loopback, at the addresses of the repository manager."""

from __future__ import annotations

import hashlib
import http.client
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import requests

from tools import debian

_START_SECONDS = 30.0
_CONFIGURATION = """
version: 0.1
log: {{level: error}}
storage:
  filesystem: {{rootdirectory: "{folder}/storage"}}
  delete: {{enabled: true}}
http: {{addr: "127.0.0.1:{port}"}}
"""


class Registry:
    """A running registry; `url` is where a repository manager would be that has it as a
    repository of any key: `{url}/api/docker/{key}/v2/...` is passed on to `/v2/...`.
    """

    def __init__(self, address: str, url: str) -> None:
        self.address, self.url = address, url
        self._session = requests.Session()
        self._session.trust_env = False

    def __call__(
        self, method: str, path: str, content: bytes = b"", **headers: str
    ) -> requests.Response:
        """A raw request to the registry itself; one that fails is an error."""
        url = path if path.startswith("http") else f"{self.address}/v2/{path}"
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        answer = self._session.request(method, url, data=content, headers=names, timeout=30)
        answer.raise_for_status()
        return answer

    def push_blob(self, image: str, content: bytes) -> None:
        location = self("POST", f"{image}/blobs/uploads/").headers["Location"]
        mark = "&" if "?" in location else "?"
        self("PUT", f"{location}{mark}digest={digest_of(content)}", content)

    def push_manifest(self, image: str, reference: str, content: bytes, kind: str) -> None:
        self("PUT", f"{image}/manifests/{reference}", content, Content_Type=kind)


def digest_of(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


@contextmanager
def running(program: Path, folder: Path) -> Iterator[Registry]:
    """Start a registry that keeps its data in `folder`."""
    port = _free_port()
    configuration = folder / "registry.yml"
    configuration.write_text(_CONFIGURATION.format(folder=folder, port=port), encoding="utf-8")
    with (folder / "registry.log").open("wb") as log:
        process = subprocess.Popen(
            [program, "serve", configuration],
            stdout=log,
            stderr=log,
            env=debian.environment(),
        )
    proxy = _Proxy(port)
    thread = threading.Thread(target=proxy.serve_forever, args=(0.01,))
    thread.start()
    try:
        _wait(port, process, folder / "registry.log")
        yield Registry(f"http://127.0.0.1:{port}", f"http://127.0.0.1:{proxy.server_port}")
    finally:
        proxy.shutdown()
        proxy.server_close()
        thread.join()
        process.terminate()
        process.wait()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _wait(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + _START_SECONDS
    while time.monotonic() < end and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"the registry does not listen: {log.read_text(encoding='utf-8')}")


class _Proxy(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, port: int) -> None:
        self.registry = port
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Proxy

    def _pass_on(self) -> None:
        """Take `/api/docker/{key}` off the address; all else stays, `Link` included."""
        _empty, _api, _docker, _key, path = self.path.split("/", 4)
        registry = http.client.HTTPConnection("127.0.0.1", self.server.registry, timeout=30)
        registry.request(self.command, f"/{path}", headers=_end_to_end(self.headers))
        answer = registry.getresponse()
        content = answer.read()
        self.send_response_only(answer.status)
        headers = _end_to_end(answer.headers)
        if self.command != "HEAD":
            headers["Content-Length"] = str(len(content))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)
        registry.close()

    do_GET = do_HEAD = _pass_on  # noqa: N815 - the names are inherited

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - so is this one
        """Nothing on the terminal."""


def _end_to_end(headers: Message) -> dict[str, str]:
    hop = ("connection", "keep-alive", "transfer-encoding", "host")
    return {name: value for name, value in headers.items() if name.lower() not in hop}
