# Everything runs from .venv, which the first target that needs it creates. Needs Python 3.11 to 3.13, its venv module and make.
PYTHON ?= python3
BIN := .venv/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test check serve bench mutate clean

demo: .venv/.installed
	@$(BIN)/yarus demo

serve: .venv/.installed
	@exec $(BIN)/yarus serve

test: .venv/.installed
	$(BIN)/pytest

check: .venv/.installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: .venv/.bench
	$(BIN)/python -m benchmarks

mutate: .venv/.mutate
	$(BIN)/python -m benchmarks.mutation

.venv/bin/python:
	@echo "Creating the environment .venv (a few minutes, once)"
	$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info < (3, 14) else "Yarus needs Python 3.11 to 3.13, this is " + sys.version.split()[0] + "; name another one: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv

.venv/.installed: pyproject.toml constraints.txt | .venv/bin/python
	$(BIN)/pip install -q -c constraints.txt -e '.[test]'
	@touch $@

# LiteLLM's proxy, a real server for the tests of the chat client, pins other versions than ours: it lives apart.
.venv/litellm: .venv/.installed
	$(PYTHON) -m venv $@
	$@/bin/pip install -q 'litellm[proxy]==1.106.2'

.venv/.bench: .venv/.installed
	$(BIN)/pip install -q -c constraints.txt -e '.[test,bench]'
	@touch $@

.venv/.mutate: .venv/.installed
	$(BIN)/pip install -q -c constraints.txt -e '.[test,mutate]'
	@touch $@

clean:
	rm -rf .venv .yarus build *.egg-info
