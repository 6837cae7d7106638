# SPDX-License-Identifier: GPL-3.0-or-later
"""A real container registry on loopback, at the addresses that a repository manager uses."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

from tests.helpers import installed, programs, rewriting_proxy

_CONFIGURATION = """
version: 0.1
log: {{level: error}}
storage:
  filesystem: {{rootdirectory: "{folder}/storage"}}
  delete: {{enabled: true}}
http: {{addr: "127.0.0.1:{port}"}}
"""


class Registry:
    """A running registry. `url` simulates the address of a repository manager that has the registry
    as a repository with any key: `{url}/api/docker/{key}/v2/...` is forwarded to `/v2/...`.
    """

    def __init__(self, address: str, url: str) -> None:
        self.address, self.url = address, url
        self._session = requests.Session()
        self._session.trust_env = False

    def __call__(
        self, method: str, path: str, content: bytes = b"", **headers: str
    ) -> requests.Response:
        """Send a raw request directly to the registry. Raise an error if it fails."""
        url = path if path.startswith("http") else f"{self.address}/v2/{path}"
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        response = self._session.request(method, url, data=content, headers=names, timeout=30)
        response.raise_for_status()
        return response

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
    port = programs.free_port()
    configuration = folder / "registry.yml"
    configuration.write_text(_CONFIGURATION.format(folder=folder, port=port), encoding="utf-8")
    command = (program, "serve", configuration)
    with programs.started(command, folder, installed.environment()) as registry:
        registry.until_listening(port)
        with rewriting_proxy.started(port, _without_key) as url:
            yield Registry(f"http://127.0.0.1:{port}", url)


def _without_key(address: str) -> str:
    """Remove `/api/docker/{key}` from the address. `Link` headers of responses stay unchanged."""
    return "/" + address.split("/", 4)[4]
