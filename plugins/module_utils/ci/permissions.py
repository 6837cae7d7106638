# SPDX-License-Identifier: GPL-3.0-or-later
"""Permissions of the CI server, by the identifiers in its error messages."""

from __future__ import annotations

READ_SERVER = "hudson.model.Hudson.Read"
MANAGE = "hudson.model.Hudson.Manage"
ADMINISTER = "hudson.model.Hudson.Administer"
READ_JOB = "hudson.model.Item.Read"
EXTENDED_READ = "hudson.model.Item.ExtendedRead"
CREATE = "hudson.model.Item.Create"
CONFIGURE = "hudson.model.Item.Configure"
DELETE = "hudson.model.Item.Delete"
BUILD = "hudson.model.Item.Build"
CANCEL = "hudson.model.Item.Cancel"
#: Without these permissions a job cannot be found.
SEES_JOB = (READ_SERVER, READ_JOB)
