#!/usr/bin/env bash
# Builds the kernels under the address and undefined-behaviour sanitizers, beside the installed ones, and tests them; or,
# given a number of seconds, feeds them random bytes for as long.
set -euo pipefail
python=$1 seconds=${2:-}
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
cp -r src/widemargin "$build/widemargin"
include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
nanobind=$("$python" -c 'import nanobind; print(nanobind.include_dir())')
suffix=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
g++ -std=c++20 -O1 -g -fPIC -shared -fopenmp-simd -fsanitize=address,undefined -fno-sanitize-recover=undefined \
  -fno-omit-frame-pointer -DMODULE_NAME=_core_v1 -I"$include" -I"$nanobind" -I"$nanobind/../ext/robin_map/include" \
  "$nanobind/../src/nb_combined.cpp" src/widemargin/_core.cpp src/widemargin/solvers/bindings.cpp src/widemargin/kernels/bindings.cpp \
  -o "$build/widemargin/_core_v1$suffix" -pthread
g++ -std=c++20 -O1 -fPIC -shared -I"$include" src/widemargin/_cpu.cpp -o "$build/widemargin/_cpu$suffix"
cat >"$build/run.py" <<'END'
"""Runs the tests on the package beside this file, not on the one installed in place."""
import runpy
import sys

sys.meta_path[:] = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]
from widemargin import _core_v1

assert _core_v1.__file__.startswith(sys.path[0]), _core_v1.__file__
if sys.argv[1] == "fuzz":
    sys.argv = ["fuzz.py", *sys.argv[2:]]
    sys.exit(runpy.run_path("tests/fuzz.py", run_name="__main__") and 0)
import pytest

sys.exit(pytest.main(["-o", "addopts=", "-q", "-p", "no:cacheprovider", *sys.argv[1:]]))
END
what="tests/test_rows.py tests/test_losses.py tests/test_solvers.py tests/test_halves.py tests/test_free_rows.py tests/test_step_back.py tests/test_side_by_side.py tests/test_pairs.py tests/test_online.py
  tests/test_hildreth.py tests/test_paths.py tests/test_threads.py tests/test_svmlight.py tests/test_store.py tests/test_kernels.py tests/test_kernel_training.py tests/test_kernel_grids.py"
WIDEMARGIN_CPU_LEVEL=1 ASAN_OPTIONS=detect_leaks=0 \
  LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libubsan.so)" \
  "$python" "$build/run.py" $([ -n "$seconds" ] && echo fuzz "$seconds" || echo $what)
