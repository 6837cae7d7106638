# SPDX-License-Identifier: GPL-3.0-or-later
# The jobs of `make test` and `make test-all`. tools/check.py runs them on a copy of the checkout and
# adds up what they leave in OUT: NAME.status from tools/job.py, and NAME.xml from pytest.
#
# antsibull-nox has sessions for some of them that need Galaxy, GitHub or a container, install
# packages that no lock file pins, or only warn: docs-check, ansible-lint, build-import-check,
# ansible-test-sanity, molecule. Those jobs stay ours; `nox` runs the others.

# The longest come first, so that short jobs fill the gaps at the end. `make test` needs nothing but
# what `tools/setup test` installs; `make test-all` runs the rest afterwards.
LINT := mypy mypy-plugins validate-modules yamllint ruff
TEST := services unit contract first $(LINT)
STATIC := sanity galaxy-importer ansible-lint nox docs antsibull-docs antsibull-changelog licences \
	shellcheck
REST := integration scenarios drift faults sanity molecule core-oldest core-newest benchmarks \
	$(filter-out sanity,$(STATIC))
PYTEST := pytest -q

.PHONY: test rest lint static $(TEST) $(REST)
test: $(TEST)
rest: $(REST)
lint: $(LINT)
static: $(LINT) $(STATIC)

# Each job has its own home folder. Only the cache of mypy remains for the next run.
run = @home=$(OUT)/$@; mkdir -p $$home/tmp; \
	env $(HOME_OF_JOB) TMPDIR=$$home/tmp ANSIBLE_HOME=$$home/ansible MYPY_CACHE_DIR=$(MYPY_CACHE)/$@ \
	XDG_CACHE_HOME=$$home/cache python -m tools.job $@ $(OUT) $(1)
HOME_OF_JOB = HOME=$$home
# They look for interpreters and install packages as the user does.
sanity validate-modules core-oldest core-newest: HOME_OF_JOB :=

# Only files with the marker are collected: others import clients that `tools/setup test` leaves out.
FIRST := $(shell grep -rl 'mark\.first' --include 'test_*.py' tests/faults tests/integration)
first:
	$(call run,$(PYTEST) -m first $(or $(FIRST),no-test-is-marked) --junitxml $(OUT)/$@.xml)
# The unit tests are two jobs, because one would still run long after all others have ended.
SERVICES := $(addprefix tests/unit/,analysis ci repo tracker wiki)
services:
	$(call run,$(PYTEST) $(SERVICES) --junitxml $(OUT)/$@.xml)
unit:
	$(call run,$(PYTEST) tests/$@ $(addprefix --ignore ,$(SERVICES)) --junitxml $(OUT)/$@.xml)
contract:
	$(call run,$(PYTEST) tests/$@ --junitxml $(OUT)/$@.xml)

# The other integration tests are three jobs, because as one they would end long after all others.
LATER := $(PYTEST) -m "not first"
DRIFT := tests/integration/drift
SCENARIOS := $(addprefix tests/integration/,execution release)
FEATURES := tests/integration/execution/test_features.py
INVENTORY := tests/integration/ci/test_ci_nodes.py
EXPORT := tests/integration/drift/test_desired_state.py::test_exported_state_has_no_drift
# core-oldest and core-newest run the features and the inventory, core-oldest also a fresh export.
drift:
	$(call run,$(LATER) $(DRIFT) --deselect $(EXPORT) --junitxml $(OUT)/$@.xml)
scenarios:
	$(call run,$(LATER) $(SCENARIOS) --ignore $(FEATURES) --junitxml $(OUT)/$@.xml)
integration:
	$(call run,$(LATER) tests/$@ $(addprefix --ignore ,$(DRIFT) $(SCENARIOS) $(INVENTORY)) --junitxml $(OUT)/$@.xml)
faults:
	$(call run,$(LATER) tests/$@ --junitxml $(OUT)/$@.xml)
# The scenario `default` runs the plays of all others, in one process per step.
molecule:
	$(call run,molecule --base-config .config/molecule/config.yml test --scenario-name default)
# A single scenario, by hand.
molecule-%:
	$(call run,molecule --base-config .config/molecule/config.yml test --scenario-name $*)
core-oldest core-newest:
	$(call run,python -m tools.matrix --brief $(@:core-%=%))
benchmarks:
	$(call run,python -m tests.benchmarks --smallest)

validate-modules:
	$(call run,python -m tools.sanity --test $@)
yamllint:
	$(call run,yamllint --strict .)
ruff:
	$(call run,sh -c 'ruff check --quiet . && ruff format --check --quiet .')
sanity:
	$(call run,python -m tools.sanity --brief)
# By the rules of the hub, which are stricter than those of Galaxy. The importer writes its result into
# the current folder, and ends with 0 in spite of warnings. The job ansible-lint has stricter rules.
galaxy-importer: export GALAXY_IMPORTER_CHECK_CHANGELOG := true
galaxy-importer: export GALAXY_IMPORTER_CHECK_REQUIRED_TAGS := true
galaxy-importer: export GALAXY_IMPORTER_REQUIRE_V1_OR_GREATER := true
galaxy-importer: export GALAXY_IMPORTER_RUN_ANSIBLE_DOC := true
galaxy-importer: export GALAXY_IMPORTER_RUN_ANSIBLE_LINT := false
galaxy-importer: export SOURCE_DATE_EPOCH := 0
galaxy-importer:
	$(call run,sh -c 'python -m tools.build $(OUT)/$@/dist && cd $(OUT)/$@ && \
		python -m galaxy_importer.main dist/*.tar.gz >log 2>&1; status=$$?; cat log; \
		! grep -E "^(WARNING|ERROR)" log >/dev/null && exit $$status')
nox:
	$(call run,nox --no-venv)
ansible-lint:
	$(call run,ansible-lint --offline --config-file .ansible-lint)
docs:
	$(call run,sh -c 'python -m tools.docs $(OUT)/$@/site && \
		python -m tests.integration.documentation.site_search $(OUT)/$@/site')
# The job docs reads the same pages, with warnings as errors, so that rstcheck finds nothing more.
antsibull-docs:
	$(call run,antsibull-docs lint-collection-docs --plugin-docs --check-extra-docs-refs \
		--skip-rstcheck --validate-collection-refs self .)
antsibull-changelog:
	$(call run,antsibull-changelog lint)
licences:
	$(call run,python -m tools.$@)
# 3.10 is the oldest Python that modules run on.
mypy-plugins:
	$(call run,sh -c 'cd ../../.. && mypy --python-version 3.10 \
		--config-file ansible_collections/delivery/toolchain/pyproject.toml \
		ansible_collections/delivery/toolchain/plugins')
# What it reports about the plugins that the tests import belongs to the job above.
mypy:
	$(call run,mypy --follow-imports silent sandbox tools tests conftest.py)
shellcheck:
	$(call run,shellcheck tools/setup tools/third_party tools/debian_python .ci/run)
