# SPDX-License-Identifier: GPL-3.0-or-later
"""Simulation of the five services in a single process, for tests, the demo and rehearsals."""

from __future__ import annotations
