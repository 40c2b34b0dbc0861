# `make demo` installs the package alone, `make check` and the other commands of a developer its extras too.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: install demo check lint types test thorough lowest format docs wheel clean

install: $(VENV)/developer

# Many containers set it; then every process compiles torch, polars and hydra anew.
unexport PYTHONDONTWRITEBYTECODE

# uv takes a fifth of pip's time. Without it: make demo PIP=".venv/bin/pip install --no-compile"
# With the system's certificates it works behind a company's proxy too.
PIP ?= $(BIN)/uv pip install --python $(BIN)/python
export UV_SYSTEM_CERTS ?= 1
ifdef PIP_FIND_LINKS
export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)
endif
ifdef PIP_INDEX_URL
export UV_DEFAULT_INDEX ?= $(PIP_INDEX_URL)
endif

define install
$(PYTHON) -m venv $(VENV)
$(BIN)/pip install --quiet --constraint constraints.txt uv
$(PIP) --quiet --constraint constraints.txt --editable $(1)
touch $(VENV)/package
endef

$(VENV)/package: pyproject.toml constraints.txt
	$(call install,.)

$(VENV)/developer: pyproject.toml constraints.txt
	$(call install,'.[dev]')
# Compiles what the main job needs before several test processes would do so at once.
	$(BIN)/python -c 'import mitigate.recipes.mitigate, mitigate.train.comet, mitigate.recipes.labels'
	touch $@

demo: $(VENV)/package
	$(BIN)/python -m mitigate -m policy=none,both

# The type checker beside the tests, which leave the processors idle now and then.
check: lint
	$(MAKE) --no-print-directory --jobs 2 types test

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install
	$(BIN)/mypy

test: install
	$(BIN)/python -m pytest -m "not thorough" -n auto --dist worksteal --durations 40

# Classifiers trained as a whole, shipped figures measured anew, a rehearsal of the paper's experiment, notebooks, two
# processes.
thorough: install
	$(BIN)/python -m pytest -m thorough -n auto --durations 10

# The tests with the lowest allowed version of each direct dependency. Some warn of what has changed since; that is no failure.
lowest:
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install uv
	.venv-lowest/bin/uv pip install --python .venv-lowest/bin/python --resolution lowest-direct --editable ".[dev]"
	.venv-lowest/bin/python -m pytest -W default -m "not thorough" -n auto --dist worksteal

format: install
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: install
	$(BIN)/python docs/make_site.py build/docs

wheel: install
	$(BIN)/python -m build --wheel

clean:
	rm -rf build dist *.egg-info .hypothesis .pytest_cache .mypy_cache .ruff_cache
