# demo, test, bench, lint: each sets up what it needs in .venv.
PYTHON ?= python3
BIN := .venv/bin
SOURCES := pyproject.toml CMakeLists.txt $(shell find src -name '*.cpp' -o -name '*.hpp')
# In place, only the build that suits this machine best (LEVELS='1;3;4' has all that wheels have), with ccache if it is there.
LEVELS ?= $(shell grep -q avx512vl /proc/cpuinfo 2>/dev/null && echo 4 || { grep -q avx2 /proc/cpuinfo 2>/dev/null && echo 3 || echo 1; })
export CMAKE_CXX_COMPILER_LAUNCHER ?= $(shell command -v ccache)
export CCACHE_BASEDIR ?= $(CURDIR)
export CCACHE_NOHASHDIR ?= 1
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: demo test bench lint sanitize fuzz browser clean FORCE

demo: .venv/demo
	$(BIN)/python examples/demo.py

test: .venv/test browser
	$(BIN)/python -m pytest

bench: .venv/bench
	$(BIN)/python benchmarks/race.py
	$(BIN)/python benchmarks/scaling.py
	$(BIN)/python benchmarks/accuracy.py
	$(BIN)/python benchmarks/threads.py
	$(BIN)/python benchmarks/epochs.py
	$(BIN)/python benchmarks/memory.py
	$(BIN)/python benchmarks/reading.py
	$(BIN)/python benchmarks/file_to_model.py
	$(BIN)/python benchmarks/out_of_core.py

lint: .venv/lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Chromium for the tests of the page: installed where that may be done, and said where it may not.
browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || { \
	  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && { \
	    apt-get install -qq -y chromium >/dev/null 2>&1 || \
	    { apt-get update -qq && apt-get install -qq -y chromium; } >/dev/null 2>&1; }; } || \
	  echo "No Chromium here, and no right to install it: the tests of the page are skipped (apt-get install chromium)."

# The kernels' tests once more, under the address and undefined-behaviour sanitizers.
sanitize: .venv/test
	tests/sanitize.sh $(BIN)/python

# Random bytes for the parser and the loader of models, under the same sanitizers.
SECONDS ?= 600
fuzz: .venv/test
	tests/sanitize.sh $(BIN)/python $(SECONDS)

clean:
	rm -rf .venv build demo

# Built anew when other levels are asked for than the last time.
build/levels: FORCE
	@mkdir -p build; echo '$(LEVELS)' | cmp -s - $@ || echo '$(LEVELS)' >$@
FORCE:

# The package is installed in place: Python files act at once, a changed kernel is built anew.
.venv/built: $(SOURCES) build/levels
	$(PYTHON) -m venv .venv
	$(PIP) --upgrade 'pip>=25.1'
	$(PIP) --group build
	$(PIP) --no-build-isolation --config-settings='cmake.define.WIDEMARGIN_LEVELS=$(LEVELS)' --editable .
	touch $@

.venv/demo: .venv/built
	$(PIP) --group demo
	touch $@

# LIBLINEAR itself is built from source; where it cannot be, the tests that compare with it are skipped.
.venv/test: .venv/built
	$(PIP) --group test
	-$(PIP) liblinear-official
	touch $@

# Peers that may not install everywhere: a race without them is still one.
.venv/bench: .venv/test
	-$(PIP) vowpalwabbit
	-$(PIP) --only-binary :all: snapml
	touch $@

.venv/lint: .venv/built
	$(PIP) --group lint
	touch $@
