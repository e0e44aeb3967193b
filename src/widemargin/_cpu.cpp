// The highest level of x86-64 that this machine runs: 1, 3 or 4; 1 on machines of another kind. It runs on all of them.
#include <Python.h>

namespace {

int level() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
    const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
    return v4 ? 4 : v3 ? 3 : 1;
#else
    return 1;
#endif
}

PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_cpu", nullptr, 0, nullptr, nullptr, nullptr, nullptr, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit__cpu() {
    PyObject* const module = PyModule_Create(&definition);
    if (module && PyModule_AddIntConstant(module, "level", level()) < 0) {
        Py_DECREF(module);
        return nullptr;
    }
    return module;
}
