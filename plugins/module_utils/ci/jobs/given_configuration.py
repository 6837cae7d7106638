# SPDX-License-Identifier: GPL-3.0-or-later
"""Check the configuration that the options of `ci_job` contain."""

from __future__ import annotations

from ...core.errors import invalid
from ...core.files import read_text
from ...core.module.task import Task
from ..xml_reader import UnreadableXml
from . import computed_folders, configuration


def given_configuration(
    task: Task, config: str | None, src: str | None, *, folder: bool, enabled: bool | None
) -> str | None:
    """Return the configuration to save, with `enabled` applied; `None` without `config` and `src`.

    Raises `invalid` for an unusable configuration.
    """
    name = "config" if src is None else "src"
    text = config if src is None else read_text(src, "the configuration in src")
    if text is None:
        return None
    try:
        secrets, stars = configuration.secrets(text), configuration.masked_secrets(text)
        kind = configuration.kind_of(text)
    except UnreadableXml as error:
        raise invalid(f"{name} is not the configuration of a job: {error}") from None
    for secret in secrets:
        task.hide(secret)
    if stars:
        raise invalid(
            f"{name} has asterisks instead of a secret in {', '.join(sorted(set(stars)))}: the"
            " server would save the asterisks as the secret"
        )
    is_folder = kind == computed_folders.FOLDER
    if folder and not is_folder:
        required = computed_folders.FOLDER
        raise invalid(f"{name} describes a {kind}, but folder: true requires a {required}")
    if is_folder and enabled is not None:
        raise invalid("enabled cannot be set for a plain folder: the server cannot disable it")
    return configuration.with_enabled(text, enabled)
