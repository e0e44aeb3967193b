// The bindings of kernels and of their solver.
#include "../bindings.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <set>

#include "../solvers/kernel_smo/kernel_smo.hpp"
#include "gram.hpp"
#include "row_source.hpp"

namespace widemargin::bindings {
namespace {

using kernels::Function;
using kernels::Points;

template <class T>
using Square = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;
using Shift = std::optional<Array<const double>>;

Function function(const std::string& name, double gamma, double coef0, int degree) {
    const auto shape = kernels::shape_of(name);
    if (!shape) throw std::invalid_argument("no kernel is called '" + name + "'");
    if (degree < 0) throw std::invalid_argument("a degree is at least 0");
    return {*shape, gamma, coef0, degree};
}

const double* shift_of(const Shift& shift, const Rows& rows) {
    if (!shift) return nullptr;
    need(shift->size(), rows.d(), "shift");
    return shift->data();
}

void need_columns(const Rows& a, const Rows& b) {
    if (a.d() != b.d()) throw std::invalid_argument("the two sets of rows have different numbers of columns");
}

template <class T>
Points<T> points_of(const Function& f, const Rows& rows, const double* shift, bool sparse) {
    return rows.visit([&](const auto& x) { return kernels::points_of<T>(f, x, nullptr, 0, rows.n(), shift, sparse); });
}

// k over all pairs of rows, in double precision.
auto kernel_matrix(const Function& f, const Rows& a, const Rows& b, const Shift& shift, bool sparse, int threads) {
    need_columns(a, b);
    double* out;
    auto result = fresh(out, a.n(), b.n());
    nb::gil_scoped_release release;
    const auto A = points_of<double>(f, a, shift_of(shift, a), sparse), B = points_of<double>(f, b, shift_of(shift, b), sparse);
    std::vector<Index> index(static_cast<std::size_t>(a.n()));
    std::vector<double*> rows(index.size());
    std::iota(index.begin(), index.end(), Index{0});
    for (std::size_t k = 0; k < rows.size(); ++k) rows[k] = out + static_cast<Index>(k) * b.n();
    kernels::rows_of_matrix(f, A, index.data(), a.n(), B, rows.data(), threads);
    return result;
}

// Σⱼ coef[j, v] k(xᵢ, bⱼ) for every row of X and every column v.
auto kernel_scores(const Function& f, const Rows& x, const Rows& b, Square<double> coef, const Shift& shift, bool sparse, int threads) {
    need_columns(x, b);
    need(coef.shape(0), b.n(), "coef");
    const auto columns = static_cast<Index>(coef.shape(1));
    if ((columns > 1 && coef.stride(1) != 1) || (b.n() > 1 && coef.stride(0) != columns)) throw std::invalid_argument("coef is not in C order");
    double* out;
    auto result = fresh(out, x.n(), columns);
    nb::gil_scoped_release release;
    const auto B = points_of<double>(f, b, shift_of(shift, b), sparse);
    x.visit([&](const auto& rows) {
        kernels::scores(f, rows, shift_of(shift, x), sparse, B, coef.data(), columns, out, threads);
    });
    return result;
}

// k(x, x) of every row.
auto kernel_diagonal(const Function& f, const Rows& rows, const Shift& shift, bool sparse, int threads) {
    constexpr Index length = 256;  // rows at a time, whose copies stay in the caches
    double* out;
    auto result = fresh(out, rows.n());
    const double* const less = shift_of(shift, rows);
    nb::gil_scoped_release release;
    rows.visit([&](const auto& x) {
        run_pieces(static_cast<int>((x.n + length - 1) / length), threads, [&](int piece) {
            const Index begin = piece * length, end = std::min(x.n, begin + length);
            const auto points = kernels::points_of<double>(f, x, nullptr, begin, end, less, sparse);
            for (Index i = begin; i < end; ++i) out[i] = kernels::value_with_itself(f, points.self[static_cast<std::size_t>(i - begin)]);
        });
    });
    return result;
}

template <class T>
struct Source {
    std::unique_ptr<kernels::RowSource<T>> rows;
    nb::object borrowed;

    static Source computed(const Function& f, const Rows& rows, const Shift& shift, bool sparse, std::size_t bytes) {
        nb::gil_scoped_release release;
        auto points = points_of<T>(f, rows, shift_of(shift, rows), sparse);
        return {kernels::rows_of_points<T>(f, std::move(points), bytes), nb::object()};
    }
    static Source whole(const Function& f, const Rows& rows, const Shift& shift, bool sparse, int threads) {
        nb::gil_scoped_release release;
        const auto points = points_of<T>(f, rows, shift_of(shift, rows), sparse);
        return {std::make_unique<kernels::WholeMatrix<T>>(f, kernels::Sums<T>(f, points, threads), threads), nb::object()};
    }
    static Source given(Square<T> matrix) {
        if (matrix.shape(0) != matrix.shape(1)) throw std::invalid_argument("a kernel matrix is square");
        if (matrix.stride(1) != 1 && matrix.shape(1) > 1) throw std::invalid_argument("the rows of a kernel matrix lie in one piece");
        const auto n = static_cast<Index>(matrix.shape(0));
        return {std::make_unique<kernels::GivenMatrix<T>>(matrix.data(), n, matrix.stride(0)), nb::cast(matrix)};
    }
};

// What the kernel matrices of several γ share.
template <class T>
struct SharedSums {
    kernels::Sums<T> sums;

    static SharedSums of(const Function& f, const Rows& rows, const Shift& shift, bool sparse, int threads) {
        nb::gil_scoped_release release;
        return {kernels::Sums<T>(f, points_of<T>(f, rows, shift_of(shift, rows), sparse), threads)};
    }
    Source<T> source(const Function& f, int threads) const {
        nb::gil_scoped_release release;
        return {std::make_unique<kernels::WholeMatrix<T>>(f, sums, threads), nb::object()};
    }
};

using SegmentTuple = std::tuple<Index, Index>;  // the first row in the source, and how many

template <class T>
class Solver {
   public:
    Solver(nb::handle source, const std::vector<SegmentTuple>& segments, Array<const double> y, Array<const double> c,
           Array<double> alpha, Array<double> e, Index largest, int threads)
        : borrowed(nb::make_tuple(source, y, c, alpha, e)), n(of_one_length(y, c, alpha, e)),
          smo(*nb::cast<Source<T>&>(source).rows, checked(segments, nb::cast<Source<T>&>(source).rows->size(), n), y.data(), c.data(),
              alpha.data(), e.data(), n, options(largest, threads)),
          whole(nb::cast<Source<T>&>(source).rows->whole()), most(std::max(largest, whole ? n : 0)) {}

    // e = y − K(αy), for an α that was given.
    void compute_gradient() {
        nb::gil_scoped_release release;
        smo.compute_gradient();
    }

    void run(Index rounds, double tol) {
        nb::gil_scoped_release release;
        advance(rounds, tol);
    }
    // The same for several, each on one thread; their source must be a matrix that is there.
    static void run_all(const std::vector<Solver*>& all, Index rounds, double tol, int threads) {
        for (const Solver* one : all)
            if (!one || !one->whole) throw std::invalid_argument("problems side by side need a kernel matrix that is there");
        nb::gil_scoped_release release;
        run_pieces(static_cast<int>(all.size()), threads, [&](int k) { all[static_cast<std::size_t>(k)]->advance(rounds, tol); });
    }
    // Rounds so far, primal, dual, violation, and whether nothing more can be done.
    auto status() const { return std::make_tuple(rounds_taken, seen.primal, seen.dual, seen.violation, smo.stalled); }
    // The rows of the working set, the rounds in which they came, how many rows there is room for, and which were active.
    auto working_set() const { return std::make_tuple(smo.working_set, smo.came, smo.size, smo.active_rows()); }
    void set_working_set(std::tuple<std::vector<Index>, std::vector<Index>, Index, std::vector<std::int32_t>> given) {
        auto& [rows, came, size, active] = given;
        need(came.size(), static_cast<Index>(rows.size()), "the rounds in which rows came");
        for (const Index i : rows)
            if (i < 0 || i >= n) throw std::out_of_range("a row of the working set does not exist");
        if (static_cast<Index>(rows.size()) > most || size > most || std::set<Index>(rows.begin(), rows.end()).size() < rows.size())
            throw std::invalid_argument("a working set is too large, or has a row twice");
        for (const std::int32_t i : active)
            if (i < 0 || i >= static_cast<Index>(rows.size())) throw std::out_of_range("an active row is not in the working set");
        smo.go_on(std::move(rows), std::move(came), size, std::move(active));
    }
    std::int64_t steps() const { return smo.steps; }
    bool conjugate() const { return smo.conjugate; }
    void set_conjugate(bool wanted) { smo.conjugate = wanted; }
    auto worst() const { return std::make_tuple(smo.worst.i, smo.worst.j, smo.worst.share); }

   private:
    nb::tuple borrowed;
    Index n, rounds_taken = 0;
    KernelSmo<T> smo;
    bool whole;  // whether the kernel matrix is there
    Index most;  // rows of a working set
    KernelSmoStatus seen;

    void advance(Index rounds, double tol) { rounds_taken += smo.run(rounds, tol, seen); }

    static KernelSmoOptions options(Index largest, int threads) {
        if (largest < 2) throw std::invalid_argument("a working set has at least two rows");
        KernelSmoOptions result;
        result.largest = largest, result.threads = threads;
        return result;
    }
    static Index of_one_length(Array<const double> y, Array<const double> c, Array<double> alpha, Array<double> e) {
        const auto n = static_cast<Index>(y.size());
        need(c.size(), n, "c");
        need(alpha.size(), n, "alpha");
        need(e.size(), n, "e");
        return n;
    }
    static std::vector<Segment> checked(const std::vector<SegmentTuple>& segments, Index size, Index n) {
        std::vector<Segment> result;
        Index local = 0;
        for (const auto& [source, count] : segments) {
            if (source < 0 || count < 0 || source + count > size) throw std::out_of_range("a segment outside of the kernel matrix");
            result.push_back({local, source, count});
            local += count;
        }
        need(static_cast<std::size_t>(local), n, "the segments");
        return result;
    }
};

template <class T>
void bind_precision(nb::module_& m, const char* source, const char* shared, const char* solver) {
    using namespace nb::literals;
    nb::class_<SharedSums<T>>(m, shared)
        .def_static("of", &SharedSums<T>::of, "function"_a, "rows"_a, "shift"_a.none(), "sparse"_a, "threads"_a)
        .def("source", &SharedSums<T>::source, "function"_a, "threads"_a);
    nb::class_<Source<T>>(m, source)
        .def_static("computed", &Source<T>::computed, "function"_a, "rows"_a, "shift"_a.none(), "sparse"_a, "bytes"_a)
        .def_static("whole", &Source<T>::whole, "function"_a, "rows"_a, "shift"_a.none(), "sparse"_a, "threads"_a)
        .def_static("given", &Source<T>::given, nb::arg("matrix").noconvert());
    nb::class_<Solver<T>>(m, solver)
        .def(nb::init<nb::handle, const std::vector<SegmentTuple>&, Array<const double>, Array<const double>, Array<double>,
                      Array<double>, Index, int>(),
             "source"_a, "segments"_a, "y"_a, "c"_a, nb::arg("alpha").noconvert(), nb::arg("e").noconvert(), "largest"_a, "threads"_a)
        .def("compute_gradient", &Solver<T>::compute_gradient)
        .def("run", &Solver<T>::run, "rounds"_a, "tol"_a)
        .def_prop_ro("status", &Solver<T>::status)
        .def_static("run_all", &Solver<T>::run_all, "all"_a, "rounds"_a, "tol"_a, "threads"_a)
        .def_prop_rw("working_set", &Solver<T>::working_set, &Solver<T>::set_working_set)
        .def_prop_ro("steps", &Solver<T>::steps)
        .def_prop_rw("conjugate", &Solver<T>::conjugate, &Solver<T>::set_conjugate)
        .def_prop_ro("worst", &Solver<T>::worst);
}

}  // namespace

void bind_kernels(nb::module_& m) {
    using namespace nb::literals;
    nb::class_<Function>(m, "KernelFunction");
    m.def("kernel_function", &function, "name"_a, "gamma"_a, "coef0"_a, "degree"_a);
    m.def("kernel_matrix", &kernel_matrix, "function"_a, "a"_a, "b"_a, "shift"_a.none(), "sparse"_a, "threads"_a);
    m.def("kernel_scores", &kernel_scores, "function"_a, "x"_a, "b"_a, "coef"_a, "shift"_a.none(), "sparse"_a, "threads"_a);
    m.def("kernel_diagonal", &kernel_diagonal, "function"_a, "rows"_a, "shift"_a.none(), "sparse"_a, "threads"_a);
    bind_precision<float>(m, "KernelRows32", "KernelSums32", "KernelSmo32");
    bind_precision<double>(m, "KernelRows64", "KernelSums64", "KernelSmo64");
}

}  // namespace widemargin::bindings
