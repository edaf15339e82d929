# Two commands for a fresh machine: `make demo` and `make test`.
# Needs Python 3.11 or newer with pip, make and a C++ compiler; everything else is installed
# into .venv, again only when pyproject.toml, constraints.txt or the C++ sources changed.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
NATIVE := CMakeLists.txt $(shell find native -name '*.?pp')
CORES  ?= 2
CXX_FILES = $(shell find native tests/native -name '*.?pp')

.PHONY: help demo test lint format stubs bench train-bench docs checks-ready sanitize \
        native-targets native-odr native-elsewhere wasm wheels wheels-arm matrix matrix-fast clean

help:
	@echo "make demo    the paper's example and a forest, on the terminal"
	@echo "make test    every test"
	@echo "make lint    ruff, clang-format, mypy, import-linter"
	@echo "make format  rewrite Python and C++ as ruff and clang-format have it"
	@echo "make stubs   the types of the native module, from the module itself"
	@echo "make bench   benchmarks, against rivals, in one run"
	@echo "make train-bench DATA=... TABLES=...  training, beside published figures"
	@echo "make sanitize  the native tests under AddressSanitizer and UBSan"
	@echo "make native-targets  the kernels by every compiler here, and for ARM in an emulator"
	@echo "make native-odr  the native module linked with all its types in view (GCC)"
	@echo "make native-elsewhere  the C++ compiled for macOS, Windows and ARM (cross compiler)"
	@echo "make wasm    the engine as WebAssembly, and its tests in node (emscripten)"
	@echo "make wheels  wheels for Linux, audited, then used in clean environments; wheels-arm: for ARM"
	@echo "make matrix  conformance tests on every Python, oldest and newest releases; matrix-fast: a part"
	@echo "make docs    the documentation, into docs/_build/html"
	@echo "make clean   remove .venv and what was built"

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)

# One stamp for each set of extras that is installed.
$(VENV)/.demo-stamp: EXTRAS = cli,sklearn,plot
$(VENV)/.test-stamp: EXTRAS = test
$(VENV)/.lint-stamp: EXTRAS = lint
$(VENV)/.docs-stamp: EXTRAS = docs
$(VENV)/.dev-stamp: EXTRAS = dev
$(VENV)/.%-stamp: pyproject.toml constraints.txt $(NATIVE) | $(BIN)/python
	@echo "Installing decision-machines[$(EXTRAS)] into $(VENV). Where the C++ is new it is compiled first:"
	@echo "2 minutes on many processors, up to 20 on one or two that are busy, without further output ..."
	$(PIP) -e '.[$(EXTRAS)]'
	@touch $@

# What lint, docs and test need, in one installation instead of three.
CHECKS := $(addprefix $(VENV)/,.lint-stamp .docs-stamp .test-stamp)
$(VENV)/.checks-stamp: EXTRAS = lint,docs,test
checks-ready: $(VENV)/.checks-stamp
	@touch -r $< $(CHECKS)

demo: $(VENV)/.demo-stamp
	$(BIN)/dm demo

test: export OMP_NUM_THREADS = 1
test: $(VENV)/.test-stamp
	$(BIN)/python -m pytest -q -n $(CORES)

lint: $(VENV)/.lint-stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run -Werror $(CXX_FILES)
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.lint-stamp
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(CXX_FILES)

stubs: $(VENV)/.test-stamp
	$(BIN)/python -m nanobind.stubgen -q -m decision_machines._native \
	    -o src/decision_machines/_native.pyi

bench: $(VENV)/.dev-stamp
	$(BIN)/python benchmarks/import_time.py
	$(BIN)/python benchmarks/build.py
	$(BIN)/python benchmarks/read.py
	$(BIN)/python benchmarks/engine.py --growth
	$(BIN)/python benchmarks/training_speed.py
	$(BIN)/python benchmarks/inspection.py
	$(BIN)/python benchmarks/explorer.py
	$(BIN)/python benchmarks/stream.py

train-bench: $(VENV)/.dev-stamp
	$(BIN)/python benchmarks/training.py --data $(DATA) --tables $(TABLES) --resume build/training
	$(BIN)/python benchmarks/codes.py --data $(DATA)/pmlb

sanitize: $(VENV)/.test-stamp
	$(PIP) cmake ninja nanobind
	tools/sanitize.sh $(abspath $(BIN)/python)

native-odr: $(VENV)/.test-stamp
	$(PIP) cmake ninja nanobind
	tests/native/odr.sh $(abspath $(BIN)/python)

# Debian: clang; libsimde-dev; g++-aarch64-linux-gnu and qemu-user.
native-targets: CROSS := aarch64-linux-gnu
native-targets:
	tests/native/targets.sh
	@if command -v clang++ >/dev/null; then \
	    CXX=clang++ tests/native/targets.sh; \
	else echo "clang++ is not installed: left out"; fi
	@if [ -e /usr/include/simde/x86/avx512.h ]; then \
	    EMULATED=1 tests/native/targets.sh; \
	else echo "SIMDe is not installed: AVX-512 is left out where the processor has none"; fi
	@if command -v $(CROSS)-g++ >/dev/null && command -v qemu-aarch64 >/dev/null; then \
	    CXX=$(CROSS)-g++ RUN="qemu-aarch64 -L /usr/$(CROSS)" tests/native/targets.sh; \
	else echo "$(CROSS)-g++ or qemu-aarch64 is not installed: left out"; fi

# tools/ needs nothing but a Python; what it installs is in environments of its own, in build/.
wheels:
	$(PYTHON) tools/wheels/build.py
	$(PYTHON) tools/wheels/check.py

wheels-arm:
	$(PYTHON) tools/wheels/build.py --machine aarch64
	tools/wheels/check_arm.sh

# Debian: emscripten and nodejs.
wasm: $(VENV)/.test-stamp
	tools/wasm/build.sh
	$(BIN)/python -m pytest -q tests/native/test_wasm.py

native-elsewhere:
	$(PYTHON) -m venv build/zig-env
	build/zig-env/bin/python -m pip install --quiet --disable-pip-version-check ziglang==0.17.0
	PYTHON=build/zig-env/bin/python tests/native/elsewhere.sh

matrix:
	$(PYTHON) tools/matrix/run.py --cores $(CORES)

matrix-fast:
	$(PYTHON) tools/matrix/run.py --fast --cores $(CORES)

docs: $(VENV)/.docs-stamp
	$(BIN)/sphinx-build -W --keep-going -j $(CORES) -b html docs docs/_build/html

clean:
	rm -rf $(VENV) build dist demo-output docs/_build
