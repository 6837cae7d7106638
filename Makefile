# SPDX-License-Identifier: GPL-3.0-or-later
# PYTHON=... names another interpreter than the first Python 3.11 to 3.13 on PATH.

# Ansible refuses to start with an encoding other than UTF-8.
export LC_ALL := C.UTF-8
export PYTHON

VENV_PYTHON := .venv/bin/python

.PHONY: help demo sandbox test lint unit faults secrets bench matrix docs build changelog lock clean

help:
	@echo 'make demo      run the release twice against the sandbox'
	@echo 'make sandbox   keep the sandbox running for playbooks of your own'
	@echo 'make test      everything that a change has to pass'
	@echo 'make lint      the static checks alone'
	@echo 'make unit      the unit tests alone'
	@echo 'make faults    every module, times every answer that is wrong or does not tell'
	@echo 'make secrets   secrets in every place, looked for in everything that a run leaves'
	@echo 'make bench     wall time and number of requests'
	@echo 'make matrix    the checks on every supported ansible-core and Python'
	@echo 'make docs      the site of the documentation, in dist/docs'
	@echo 'make build     the archive of the collection, its digest and its bill of materials, in dist'
	@echo 'make changelog takes the fragments into CHANGELOG.md, for the version in galaxy.yml'
	@echo 'make lock      write the lock files anew (needs uv)'
	@echo 'make clean     remove what these commands made'

demo:
	@tools/setup demo
	@$(VENV_PYTHON) -m tools.demo

sandbox:
	@tools/setup demo
	@$(VENV_PYTHON) -m sandbox

test:
	@tools/setup dev
	@$(VENV_PYTHON) -m tools.check

lint:
	@tools/setup dev
	@$(VENV_PYTHON) -m tools.check static

unit:
	@tools/setup dev
	@$(VENV_PYTHON) -m tools.check unit

faults:
	@tools/setup dev
	@$(VENV_PYTHON) -m tests.faults.matrix
	@$(VENV_PYTHON) -m tests.faults.shapes
	@$(VENV_PYTHON) -m tests.faults.heads

secrets:
	@tools/setup dev
	@$(VENV_PYTHON) -m tests.faults.canaries

bench:
	@tools/setup bench
	@$(VENV_PYTHON) -m tests.benchmarks

matrix:
	@tools/setup dev
	@$(VENV_PYTHON) -m tools.matrix

docs:
	@tools/setup dev
	@$(VENV_PYTHON) -m tools.docs

build:
	@tools/setup demo
	@$(VENV_PYTHON) -m tools.build

changelog:
	@tools/setup dev
	@PATH="$(CURDIR)/.venv/bin:$$PATH" antsibull-changelog release --update-existing

lock: LOCK := uv pip compile --universal --python-version 3.11 --upgrade --generate-hashes \
	--quiet --no-header --no-emit-index-url --no-emit-find-links
lock:
	$(LOCK) requirements-dev.in --output-file requirements-dev.txt
	$(LOCK) --no-deps tests/benchmarks/requirements.in \
		--output-file tests/benchmarks/requirements.txt

clean:
	rm -rf .venv .ansible .hypothesis .mypy_cache .pytest_cache .ruff_cache dist
	rm -rf collections tests/output
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
