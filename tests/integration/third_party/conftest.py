# SPDX-License-Identifier: GPL-3.0-or-later
"""Provide the servers that several test files ask: each starts once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.helpers import groovy, hudson, nginx, strangers


@pytest.fixture(scope="session")
def ci_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[hudson.Hudson]:
    with hudson.running(tmp_path_factory.mktemp("hudson")) as running:
        yield running


@pytest.fixture(scope="session")
def plain_store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[nginx.Store]:
    with nginx.running(tmp_path_factory.mktemp("nginx")) as store:
        yield store


@pytest.fixture(scope="session")
def evaluate(tmp_path_factory: pytest.TempPathFactory) -> Iterator[groovy.Evaluate]:
    """Return a function that runs the drivers of folders in a Groovy."""
    with groovy.running(tmp_path_factory.mktemp("groovy")) as run:
        yield run


@pytest.fixture(scope="session")
def in_java(tmp_path_factory: pytest.TempPathFactory) -> Iterator[strangers.RunClient]:
    with strangers.java(tmp_path_factory.mktemp("java")) as run:
        yield run
