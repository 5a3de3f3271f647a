# `make` lists the targets. Everything happens in .venv; nothing outside this directory is changed, except that
# `make setup` installs a Java runtime where there is none and it may (root on Debian or Ubuntu).

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup java test test-all sim lint demo bench docs clean

BIN := .venv/bin
STAMP := .venv/.setup-done
# docs/large-appends.md says why.
NO_BYTE_LIMIT := spark.sql.execution.arrow.maxBytesPerBatch=2147483647
# Workers must run the interpreter that has lakecommit, whatever the caller's shell says.
export PYSPARK_PYTHON := $(CURDIR)/$(BIN)/python
export PYSPARK_DRIVER_PYTHON := $(PYSPARK_PYTHON)
# They start by the hundred, and each would compile all that it imports.
export PYTHONDONTWRITEBYTECODE :=

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/\1\t\2/' | \
	  while IFS=$$'\t' read -r name text; do printf '  make %-10s %s\n' "$$name" "$$text"; done
	@echo '  ARGS="…" is passed on by demo, bench, test and test-all: make test ARGS="-k options"'

setup: $(STAMP) ## create .venv with the locked versions and fetch Delta's jar; at once when nothing has changed

java:
	@.ci/setup java

$(STAMP): pyproject.toml requirements-lock.txt .ci/setup | java
	@.ci/setup python
	@touch $@

test: setup ## run all tests but the long ones; says which took longest
	$(BIN)/python -m tests -m "not soak" --durations=15 $(ARGS)

test-all: setup ## run all tests, the long ones too
	$(BIN)/python -m tests --durations=15 $(ARGS)

sim: setup ## the simulation alone, with as many seeds as asked for: make sim ARGS="--seeds 100000"
	$(BIN)/python -m tests.simulation $(or $(ARGS),--seeds 10000)

lint: setup ## ruff (rules and format) and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy lakecommit pyspark_lakecommit.py

demo: setup ## stream and batch writes into a Delta table, read back and compared; ARGS=--s3 for S3
	$(BIN)/lakecommit demo $(ARGS)

bench: setup ## the benchmarks, each against its peers in the same run; ARGS="microbatch --s3" for one of them
ifdef ARGS
	$(BIN)/python -m benchmarks $(ARGS)
else
	$(BIN)/python -m benchmarks microbatch
	$(BIN)/python -m benchmarks microbatch --s3
	$(BIN)/python -m benchmarks microbatch --parquet
	$(BIN)/python -m benchmarks microbatch --parquet --s3
	$(BIN)/python -m benchmarks batch
	$(BIN)/python -m benchmarks batch --tokens
	$(BIN)/python -m benchmarks batch --conf $(NO_BYTE_LIMIT)
	$(BIN)/python -m benchmarks batch --tokens --conf $(NO_BYTE_LIMIT)
	$(BIN)/python -m benchmarks batch --s3
	$(BIN)/python -m benchmarks reading
	$(BIN)/python -m benchmarks.memory
	$(BIN)/python -m benchmarks.slow_table
	$(BIN)/python -m benchmarks.pending
	$(BIN)/python -m benchmarks.planning --json benchmarks/results/planning.json
	$(BIN)/python -m benchmarks.remembering
	$(BIN)/python -m benchmarks.checkpointing --json benchmarks/results/checkpointing.json
	$(BIN)/python -m benchmarks.overwriting --json benchmarks/results/overwriting.json
	$(BIN)/python -m benchmarks.vacuuming --json benchmarks/results/vacuuming.json
	$(BIN)/python -m benchmarks.parquet_log --json benchmarks/results/parquet-log.json
	$(BIN)/python -m benchmarks.long_stream --json benchmarks/results/long-stream.json
	$(BIN)/python -m benchmarks.faulty_s3
endif

docs: setup ## write docs/options.md and docs/delta-behaviours.md anew from what they are about
	$(BIN)/python -m lakecommit.options.page > docs/options.md
	$(BIN)/python -m tests.behaviours > docs/delta-behaviours.md

clean: ## remove .venv, caches and build results
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse metastore_db derby.log
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
