// The only binding file: arrays come in, the storage and the loss are chosen once, a kernel runs without the GIL.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "data/products.hpp"
#include "data/rows.hpp"
#include "losses.hpp"
#include "solvers/dual_cd.hpp"

namespace nb = nanobind;
namespace wm = widemargin;
using wm::Index;

namespace {

template <class T>
using Array = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;
using Vector = Array<const double>;

// X in one of its storages, with the arrays it borrows kept alive.
struct Rows {
    using Storage = std::variant<wm::Contiguous<float>, wm::Contiguous<double>, wm::Strided<float>, wm::Strided<double>,
                                 wm::Csr<float, std::int32_t>, wm::Csr<float, std::int64_t>,
                                 wm::Csr<double, std::int32_t>, wm::Csr<double, std::int64_t>>;
    Storage storage;
    nb::tuple borrowed;

    template <class Visit>
    auto visit(Visit&& work) const {
        return std::visit(std::forward<Visit>(work), storage);
    }
    Index n() const {
        return visit([](const auto& rows) { return rows.n; });
    }
    Index d() const {
        return visit([](const auto& rows) { return rows.d; });
    }
    Index nonzeros() const {
        return visit([](const auto& rows) { return wm::total_nonzeros(rows); });
    }
};

template <class T>
Rows dense_rows(Matrix<T> x) {
    const auto n = static_cast<Index>(x.shape(0)), d = static_cast<Index>(x.shape(1));
    if (x.stride(1) == 1 || d == 1) return {wm::Contiguous<T>{x.data(), n, d, x.stride(0)}, nb::make_tuple(x)};
    return {wm::Strided<T>{x.data(), n, d, x.stride(0), x.stride(1)}, nb::make_tuple(x)};
}

template <class T, class I>
Rows csr_rows(Array<const T> x, Array<const I> columns, Array<const I> starts, Index d) {
    const auto n = static_cast<Index>(starts.shape(0)) - 1;
    return {wm::Csr<T, I>{x.data(), columns.data(), starts.data(), n, d}, nb::make_tuple(x, columns, starts)};
}

void need(std::size_t size, Index wanted, const char* name) {
    if (static_cast<Index>(size) != wanted)
        throw std::invalid_argument(std::string(name) + " has the wrong length");
}

template <class... Sizes>
auto fresh(double*& data, Sizes... sizes) {
    const std::size_t count = (std::size_t{1} * ... * static_cast<std::size_t>(sizes));
    data = new double[count ? count : 1];
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<double*>(p); });
    return nb::ndarray<nb::numpy, double>(data, {static_cast<std::size_t>(sizes)...}, owner);
}

// Calls work(Loss{}) for the loss of that name.
template <class Work>
auto with_loss(const std::string& name, Work&& work) {
    return std::apply(
        [&](auto... losses) {
            std::optional<decltype(work(wm::Hinge{}))> result;
            ((name == losses.name ? (result.emplace(work(losses)), 0) : 0), ...);
            if (!result) throw std::invalid_argument("no loss is called '" + name + "'");
            return *result;
        },
        wm::Losses{});
}

auto scores(const Rows& rows, Vector w, int threads) {
    need(w.size(), rows.d(), "w");
    double* out;
    auto result = fresh(out, rows.n());
    nb::gil_scoped_release release;
    rows.visit([&](const auto& x) { wm::scores(x, w.data(), out, threads); });
    return result;
}

auto combine(const Rows& rows, Vector v, int threads) {
    need(v.size(), rows.n(), "v");
    double* out;
    auto result = fresh(out, rows.d());
    nb::gil_scoped_release release;
    rows.visit([&](const auto& x) { wm::combine(x, v.data(), out, threads); });
    return result;
}

auto square_norms(const Rows& rows, int threads) {
    double* out;
    auto result = fresh(out, rows.n());
    nb::gil_scoped_release release;
    rows.visit([&](const auto& x) { wm::square_norms(x, out, threads); });
    return result;
}

auto gram(const Rows& rows, Vector weight, std::optional<Vector> shift, bool border, int threads) {
    need(weight.size(), rows.n(), "weight");
    if (shift) need(shift->size(), rows.d(), "shift");
    double* out;
    auto result = fresh(out, rows.d() + border, rows.d() + border);
    nb::gil_scoped_release release;
    rows.visit([&](const auto& x) {
        wm::gram(x, weight.data(), shift ? shift->data() : nullptr, border, out, threads);
    });
    return result;
}

nb::tuple dual_cd_pass(const std::string& loss, const Rows& rows, Vector y, Vector c, Vector norms, Array<double> alpha,
                       Array<double> w, double b, double s, double inverse_rho, Array<Index> active,
                       Array<const Index> order, double shrink_above, double shrink_below, int shards, int rounds,
                       int threads) {
    need(y.size(), rows.n(), "y");
    need(c.size(), rows.n(), "c");
    need(norms.size(), rows.n(), "norms");
    need(alpha.size(), rows.n(), "alpha");
    need(w.size(), rows.d(), "w");
    wm::DualCd pass{y.data(), c.data(), norms.data(), alpha.data(), w.data(), b, s, inverse_rho, active.data(),
                    static_cast<Index>(active.size()), order.data(), static_cast<Index>(order.size()), shrink_above,
                    shrink_below, shards, rounds, threads};
    wm::Sight sight;
    {
        nb::gil_scoped_release release;
        sight = with_loss(loss, [&](auto chosen) {
            return rows.visit([&](const auto& x) { return wm::dual_cd_pass<decltype(chosen)>(x, pass); });
        });
    }
    return nb::make_tuple(pass.s, sight.gap, sight.largest, sight.smallest);
}

// One loss function at one point, so that the tests can hold the kernels' formulas against losses.py.
double loss_function(const std::string& loss, const std::string& function, double at) {
    return with_loss(loss, [&](auto chosen) {
        using Loss = decltype(chosen);
        if (function == "value") return Loss::value(at);
        if (function == "slope") return Loss::slope(at);
        if (function == "conjugate") return Loss::conjugate(at);
        throw std::invalid_argument("no function of a loss is called '" + function + "'");
    });
}

double loss_step(const std::string& loss, double alpha, double m, double q, double c) {
    return with_loss(loss, [&](auto chosen) { return decltype(chosen)::step(alpha, m, q, c); });
}

#if defined(__x86_64__)
// The highest x86-64 level that this machine and the builds have in common.
int cpu_level() {
    __builtin_cpu_init();
    const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt");
    const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
    return v4 ? 4 : v3 ? 3 : 1;
}
#else
int cpu_level() { return 1; }
#endif

}  // namespace

NB_MODULE(MODULE_NAME, m) {
    using nb::literals::operator""_a;
    m.def("cpu_level", &cpu_level);
    nb::list names;
    std::apply([&](auto... losses) { (names.append(nb::str(losses.name)), ...); }, wm::Losses{});
    m.attr("losses") = nb::tuple(names);
    m.def("loss_function", &loss_function, "loss"_a, "function"_a, "at"_a);
    m.def("loss_step", &loss_step, "loss"_a, "alpha"_a, "m"_a, "q"_a, "c"_a);

    nb::class_<Rows>(m, "Rows")
        .def_prop_ro("n", &Rows::n)
        .def_prop_ro("d", &Rows::d)
        .def_prop_ro("nonzeros", &Rows::nonzeros);
    m.def("dense_rows", &dense_rows<float>, nb::arg("x").noconvert());
    m.def("dense_rows", &dense_rows<double>, nb::arg("x").noconvert());
    const auto bind_csr = [&]<class T, class I>(T, I) {
        m.def("csr_rows", &csr_rows<T, I>, nb::arg("x").noconvert(), nb::arg("columns").noconvert(),
              nb::arg("starts").noconvert(), "d"_a);
    };
    bind_csr(0.0F, std::int32_t{});
    bind_csr(0.0F, std::int64_t{});
    bind_csr(0.0, std::int32_t{});
    bind_csr(0.0, std::int64_t{});

    m.def("scores", &scores, "rows"_a, "w"_a, "threads"_a);
    m.def("combine", &combine, "rows"_a, "v"_a, "threads"_a);
    m.def("square_norms", &square_norms, "rows"_a, "threads"_a);
    m.def("gram", &gram, "rows"_a, "weight"_a, "shift"_a.none(), "border"_a, "threads"_a);
    m.def("dual_cd_pass", &dual_cd_pass, "loss"_a, "rows"_a, "y"_a, "c"_a, "norms"_a, nb::arg("alpha").noconvert(),
          nb::arg("w").noconvert(), "b"_a, "s"_a, "inverse_rho"_a, nb::arg("active").noconvert(), "order"_a,
          "shrink_above"_a, "shrink_below"_a, "shards"_a, "rounds"_a, "threads"_a);
}
