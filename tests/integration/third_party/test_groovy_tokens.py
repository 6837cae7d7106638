# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the script that lists API tokens in a real Groovy, with stand-ins for the server's classes.

Needs the program `groovy` (Debian: the package groovy). On machines without packages of Debian, the
test checks only that the user's name is not part of the source and prints a message.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci import script_run
from ansible_collections.delivery.toolchain.plugins.module_utils._lib.ci.credentials.ci_token import (
    LISTING,
)
from tests.helpers import groovy

GROOVY = groovy.PROGRAM
MARKER = "0123456789abcdef"
SECRET = "0123456789abcdef0123456789abcdef"
USER = "o'neill\"${System.exit(1)}\\"
# The members that the server's classes have [ci-44]; `User` and `Jenkins` are in packages that the
# script console imports.
CLASSES = {
    "hudson/model/User": """
        package hudson.model
        class User {
            static Map<String, User> every = [:]
            String id
            Object property
            static User getById(String id, boolean create) { every[id] }
            static User current() { every['builder'] }
            Object getProperty(Class kind) { property.class == kind ? property : null }
        }
    """,
    "jenkins/security/ApiTokenProperty": """
        package jenkins.security
        class ApiTokenProperty {
            Object tokenStore
            Object getDescriptor() { new Descriptor() }
            static class Descriptor {
                boolean hasCurrentUserRightToGenerateNewToken(Object owner) {
                    owner.id == 'builder'
                }
            }
        }
    """,
    "jenkins/security/apitoken/ApiTokenStore": """
        package jenkins.security.apitoken
        import java.time.LocalDate
        class ApiTokenStore {
            Collection<Object> tokens
            Collection<Object> getTokenListSortedByName() { tokens }
            synchronized Object generateNewToken(String name) { null }
            @GENERATE@
        }
    """,
    "jenkins/security/apitoken/HashedToken": """
        package jenkins.security.apitoken
        import java.time.LocalDate
        class HashedToken {
            private String uuid, name, hash
            private Date creationDate
            @END@
            String getUuid() { uuid }
            String getName() { name }
            Date getCreationDate() { creationDate }
            boolean match(byte[] hashed) { hashed.encodeHex().toString() == hash }
        }
    """,
}
#: Members since 2.548.
NEWER = {
    "@GENERATE@": "synchronized Object generateNewToken(String name, LocalDate end) { null }",
    "@END@": "LocalDate expirationDate",
}
DRIVER = """
import hudson.model.User
import jenkins.security.ApiTokenProperty
import jenkins.security.apitoken.ApiTokenStore
import jenkins.security.apitoken.HashedToken

def token = { values ->
    def made = new HashedToken()
    values.each { made.@"$it.key" = it.value }
    made
}
def made = [
    [uuid: 'a', name: 'toolchain:app:1', creationDate: new Date(1000), hash: '@DIGEST@'],
    [uuid: 'b', name: 'toolchain:app:2', creationDate: null, hash: 'x'] + [@LAST@],
    [uuid: 'c', name: 'toolchain:apple:3', creationDate: null, hash: 'x'],
    [uuid: 'd', name: 'a person', creationDate: null, hash: 'x'],
    [uuid: 'e', name: null, creationDate: null, hash: 'x'],
]
[@USERS@].each {
    def store = new ApiTokenStore(tokens: made.collect { token(it) })
    User.every[it] = new User(id: it, property: new ApiTokenProperty(tokenStore: store))
}
def folder = new File(args[0])
folder.listFiles().findAll { it.name.endsWith('.program') }.each { file ->
    def printed = new StringWriter()
    def writer = new PrintWriter(printed)
    new GroovyShell(getClass().classLoader, new Binding(out: writer)).evaluate(file.getText('UTF-8'))
    writer.flush()
    new File(folder, file.name - '.program' + '.answer').setText(printed.toString(), 'UTF-8')
}
"""


def program(user: str | None, digest: str | None = None) -> str:
    arguments = {"user": user, "prefix": "toolchain:app:", "digest": digest}
    return script_run.wrapped(LISTING, arguments, MARKER, only_reads=True)


def listed(
    evaluate: groovy.Evaluate, folder: Path, programs: dict[str, str], stand_ins: dict[str, str]
) -> dict[str, Any]:
    """Run programs on a server with two users; return their values."""
    for name, source in CLASSES.items():
        file = folder / f"{name}.groovy"
        file.parent.mkdir(parents=True, exist_ok=True)
        parts = re.split("(@[A-Z]+@)", source)
        file.write_text(
            "".join(stand_ins.get(part, "") if part in NEWER else part for part in parts)
        )
    driver = DRIVER.replace("@DIGEST@", hashlib.sha256(SECRET.encode()).hexdigest())
    last = "expirationDate: java.time.LocalDate.of(2030, 1, 31)" if stand_ins else ":"
    quoted = USER.replace("\\", "\\\\").replace("'", "\\'")
    driver = driver.replace("@LAST@", last).replace("@USERS@", f"'builder', '{quoted}'")
    (folder / "driver.groovy").write_text(driver)
    for name, text in programs.items():
        (folder / f"{name}.program").write_text(text)
    evaluate(folder)
    values = {}
    for name in programs:
        end = script_run.ended((folder / f"{name}.answer").read_text(), MARKER)
        assert end is not None
        assert end.exception is None, end.trace
        values[name] = end.result
    return values


@pytest.mark.parametrize("stores_ends", [True, False])
def test_tokens_of_a_user_are_listed(
    request: pytest.FixtureRequest, tmp_path: Path, stores_ends: bool
) -> None:
    assert json.dumps(USER) not in program(USER)
    if GROOVY is None:
        print("no groovy on this machine: the script was not run")
        return
    programs = {
        "own": program(None, hashlib.sha256(SECRET.encode()).hexdigest()),
        "other": program(USER),
        "nobody": program("nobody"),
    }
    evaluate: groovy.Evaluate = request.getfixturevalue("evaluate")
    found = listed(evaluate, tmp_path, programs, NEWER if stores_ends else {})
    end = datetime(2030, 1, 31, tzinfo=timezone.utc) + timedelta(days=1)
    expires = int(end.timestamp()) * 1000 if stores_ends else None
    first = {"id": "a", "name": "toolchain:app:1", "created": 1000, "expires": None}
    second = {"id": "b", "name": "toolchain:app:2", "created": None, "expires": expires}
    assert abs(found["own"].pop("now") / 1000 - time.time()) < 3600
    assert found["own"] == {
        "user": "builder",
        "may_create": True,
        "stores_ends": stores_ends,
        "new_end": None,
        "tokens": [{**first, "logs_in": True}, {**second, "logs_in": False}],
    }
    assert (found["other"]["user"], found["other"]["may_create"]) == (USER, False)
    assert [token["logs_in"] for token in found["other"]["tokens"]] == [False, False]
    assert found["nobody"] == {"user": None}
