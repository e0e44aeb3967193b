#!/usr/bin/env bash
# Builds the kernels under the address and undefined-behaviour sanitizers, beside the installed ones, and tests them.
set -euo pipefail
python=$1
build=$(mktemp -d)
trap 'rm -rf "$build"' EXIT
cp -r src/widemargin "$build/widemargin"
include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
nanobind=$("$python" -c 'import nanobind; print(nanobind.include_dir())')
suffix=$("$python" -c 'import sysconfig; print(sysconfig.get_config_var("EXT_SUFFIX"))')
g++ -std=c++20 -O1 -g -fPIC -shared -fopenmp-simd -fsanitize=address,undefined -fno-sanitize-recover=undefined \
  -fno-omit-frame-pointer -DMODULE_NAME=_core_v1 -I"$include" -I"$nanobind" -I"$nanobind/../ext/robin_map/include" \
  "$nanobind/../src/nb_combined.cpp" src/widemargin/_core.cpp -o "$build/widemargin/_core_v1$suffix" -pthread
cat >"$build/run.py" <<'END'
"""Runs the tests on the package beside this file, not on the one installed in place."""
import sys

import pytest

sys.meta_path[:] = [finder for finder in sys.meta_path if "ScikitBuild" not in type(finder).__name__]
from widemargin import _core_v1

assert _core_v1.__file__.startswith(sys.path[0]), _core_v1.__file__
sys.exit(pytest.main(["-o", "addopts=", "-q", "-p", "no:cacheprovider", *sys.argv[1:]]))
END
WIDEMARGIN_CPU_LEVEL=1 ASAN_OPTIONS=detect_leaks=0 \
  LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libubsan.so)" \
  "$python" "$build/run.py" tests/test_rows.py tests/test_losses.py tests/test_solvers.py tests/test_pairs.py tests/test_online.py tests/test_hildreth.py tests/test_paths.py tests/test_svmlight.py
