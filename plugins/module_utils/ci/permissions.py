# SPDX-License-Identifier: GPL-3.0-or-later
"""Identifiers of the CI server's permissions, as they appear in its error messages."""

from __future__ import annotations

READ_SERVER = "hudson.model.Hudson.Read"
SYSTEM_READ = "hudson.model.Hudson.SystemRead"
MANAGE = "hudson.model.Hudson.Manage"
ADMINISTER = "hudson.model.Hudson.Administer"
READ_JOB = "hudson.model.Item.Read"
EXTENDED_READ = "hudson.model.Item.ExtendedRead"
CREATE = "hudson.model.Item.Create"
CONFIGURE = "hudson.model.Item.Configure"
DELETE = "hudson.model.Item.Delete"
BUILD = "hudson.model.Item.Build"
CANCEL = "hudson.model.Item.Cancel"
DELETE_RUN = "hudson.model.Run.Delete"
UPDATE_RUN = "hudson.model.Run.Update"
#: Permissions without which the server reports that a job does not exist.
SEES_JOB = (READ_SERVER, READ_JOB)
_CREDENTIALS = "com.cloudbees.plugins.credentials.CredentialsProvider"
VIEW_CREDENTIALS = f"{_CREDENTIALS}.View"
CREATE_CREDENTIALS = f"{_CREDENTIALS}.Create"
UPDATE_CREDENTIALS = f"{_CREDENTIALS}.Update"
DELETE_CREDENTIALS = f"{_CREDENTIALS}.Delete"
OF_CREDENTIALS = (VIEW_CREDENTIALS, CREATE_CREDENTIALS, UPDATE_CREDENTIALS, DELETE_CREDENTIALS)
CREATE_NODE = "hudson.model.Computer.Create"
READ_NODE = "hudson.model.Computer.ExtendedRead"
CONFIGURE_NODE = "hudson.model.Computer.Configure"
DELETE_NODE = "hudson.model.Computer.Delete"
DISCONNECT_NODE = "hudson.model.Computer.Disconnect"
CONNECT_NODE = "hudson.model.Computer.Connect"
OF_NODES = (CREATE_NODE, READ_NODE, CONFIGURE_NODE, DELETE_NODE, DISCONNECT_NODE, CONNECT_NODE)
READ_VIEW = "hudson.model.View.Read"
CREATE_VIEW = "hudson.model.View.Create"
CONFIGURE_VIEW = "hudson.model.View.Configure"
DELETE_VIEW = "hudson.model.View.Delete"
OF_VIEWS = (READ_VIEW, CREATE_VIEW, CONFIGURE_VIEW, DELETE_VIEW)
