# SPDX-License-Identifier: GPL-3.0-or-later
# PYTHON=... selects an interpreter; the default is the first Python 3.11 to 3.13 on PATH.

# Ansible refuses to start with an encoding other than UTF-8.
export LC_ALL := C.UTF-8
export PYTHON

VENV_PYTHON := .venv/bin/python

.PHONY: help quick demo sandbox test test-all lint unit faults secrets bench acceptance specs matrix docs \
	pictures build changelog lock clean

help:
	@echo 'make quick     check what you have changed since main'
	@echo 'make demo      run the release twice against the sandbox'
	@echo 'make sandbox   keep the sandbox running for your own playbooks'
	@echo 'make test      find out in five minutes whether the collection works'
	@echo 'make test-all  run everything that a change must pass'
	@echo 'make lint      run the static checks of make test only'
	@echo 'make unit      run the unit tests only'
	@echo 'make faults    run every module against every failing or incomplete response'
	@echo 'make secrets   put secrets in every input and search all outputs for them'
	@echo 'make bench     measure wall time and number of requests'
	@echo 'make acceptance SERVICE=... URL=...  try the modules of a service on a server of your own;'
	@echo '               with RECORD=file it records what the server responded, without names'
	@echo 'make specs FOLDER=...  compare modules and sandbox with OpenAPI documents of the vendors'
	@echo 'make matrix    run the checks on every supported ansible-core and Python'
	@echo 'make docs      build the documentation site in dist/docs'
	@echo 'make pictures  take the pictures of the drift page in docs/pictures'
	@echo 'make build     build the archive, its digest and its bill of materials in dist'
	@echo 'make changelog move the fragments into CHANGELOG.md for the version in galaxy.yml'
	@echo 'make lock      update the lock files (needs uv)'
	@echo 'make clean     remove what these commands made'

quick:
	@tools/setup dev
	@$(VENV_PYTHON) -m tools.quick

demo:
	@tools/setup demo
	@$(VENV_PYTHON) -m tools.demo

sandbox:
	@tools/setup demo
	@$(VENV_PYTHON) -m sandbox

test:
	@tools/setup test
	@$(VENV_PYTHON) -m tools.check test

test-all:
	@tools/setup test
	@$(VENV_PYTHON) -m tools.check all

lint:
	@tools/setup test
	@$(VENV_PYTHON) -m tools.check lint

unit:
	@tools/setup test
	@$(VENV_PYTHON) -m tools.check services unit

faults:
	@tools/setup test
	@$(VENV_PYTHON) -m tests.faults.matrix
	@$(VENV_PYTHON) -m tests.faults.shapes
	@$(VENV_PYTHON) -m tests.faults.heads
	@$(VENV_PYTHON) -m tests.faults.rotation
	@$(VENV_PYTHON) -m tests.faults.expiry

secrets:
	@tools/setup dev
	@$(VENV_PYTHON) -m tests.faults.canaries

bench:
	@tools/setup bench
	@$(VENV_PYTHON) -m tests.benchmarks

# WRITE=--write also creates, changes and deletes; VALUES names what the suite needs, as space=REL.
# RECORD names a file for all exchanges, without anything private; it needs PRODUCT='Jira 10.3.1'.
acceptance:
	@tools/setup demo
	@$(VENV_PYTHON) -m tests.acceptance.run $(SERVICE) $(URL) $(WRITE) $(VALUES) \
		$(if $(RECORD),--record '$(RECORD)' --product '$(PRODUCT)')

specs:
	@tools/setup test
	@$(VENV_PYTHON) -m tools.specs $(FOLDER)

matrix:
	@tools/setup test
	@$(VENV_PYTHON) -m tools.matrix

docs:
	@tools/setup dev
	@$(VENV_PYTHON) -m tools.docs

pictures:
	@tools/setup dev
	@$(VENV_PYTHON) -m tools.record

build:
	@tools/setup demo
	@$(VENV_PYTHON) -m tools.build

changelog:
	@tools/setup dev
	@PATH="$(CURDIR)/.venv/bin:$$PATH" antsibull-changelog release --update-existing

lock: LOCK := uv pip compile --universal --python-version 3.11 --upgrade --generate-hashes \
	--quiet --no-header --no-emit-index-url --no-emit-find-links
lock:
	$(LOCK) --override requirements-override.in requirements-dev.in --output-file requirements-dev.txt
	$(LOCK) --no-deps tests/benchmarks/requirements.in \
		--output-file tests/benchmarks/requirements.txt
	$(LOCK) --no-deps tests/strangers/node/requirements.in \
		--output-file tests/strangers/node/requirements.txt

clean:
	rm -rf .venv .ansible .hypothesis .mypy_cache .nox .pytest_cache .ruff_cache dist
	rm -rf collections tests/output
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
