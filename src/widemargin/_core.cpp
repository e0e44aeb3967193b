// What is bound beside dual coordinate descent and kernels: arrays come in, the storage and the loss are chosen once, a kernel runs without the GIL.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "bias.hpp"
#include "bindings.hpp"
#include "certificate.hpp"
#include "data/one_walk.hpp"
#include "data/products.hpp"
#include "data/rows.hpp"
#include "data/svmlight.hpp"
#include "losses.hpp"
#include "solvers/curve.hpp"
#include "solvers/hildreth.hpp"
#include "solvers/lazy_weights.hpp"
#include "solvers/mira.hpp"
#include "solvers/proximal_newton.hpp"
#include "solvers/sgd.hpp"
#include "solvers/smo.hpp"
#include "sums.hpp"

namespace nb = nanobind;
namespace wm = widemargin;
using wm::Index;

namespace {

using namespace wm::bindings;

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

// Whether `starts` rises, all columns are below d, and columns ascend within each row.
template <class I>
nb::tuple check_order(Array<const I> columns, Array<const I> starts, Index d, int threads) {
    const wm::Csr<double, I> rows{nullptr, columns.data(), starts.data(), static_cast<Index>(starts.shape(0)) - 1, d};
    wm::Order order;
    {
        nb::gil_scoped_release release;
        order = wm::check_order(rows, static_cast<Index>(columns.size()), threads);
    }
    return nb::make_tuple(order.rising, order.inside, order.ascending);
}

// Lets other threads of Python go on meanwhile, if this takes longer than to hand over to them and to wait for one's turn.
// It reads or writes so many numbers, each in a nanosecond or less.
class Release {
   public:
    explicit Release(Index numbers) {
        constexpr Index worth = 100'000;
        if (numbers >= worth) release.emplace();
    }

   private:
    std::optional<nb::gil_scoped_release> release;
};

// The stochastic steps also know the perceptron's rule, which is a slope of no loss.
using Rules = decltype(std::tuple_cat(wm::Losses{}, std::tuple<wm::Mistake>{}));

auto scores(const Rows& rows, Vector w, int threads) {
    need(w.size(), rows.d(), "w");
    double* out;
    auto result = fresh(out, rows.n());
    const Release release(rows.nonzeros() + rows.n() + rows.d());
    rows.visit([&](const auto& x) { wm::scores(x, w.data(), out, threads); });
    return result;
}

auto combine(const Rows& rows, Vector v, int threads) {
    need(v.size(), rows.n(), "v");
    double* out;
    auto result = fresh(out, rows.d());
    const Release release(rows.nonzeros() + rows.n() + rows.d());
    rows.visit([&](const auto& x) { wm::combine(x, v.data(), out, threads); });
    return result;
}

nb::tuple scores_and_combine(const Rows& rows, Vector w, Vector v, int threads) {
    need(w.size(), rows.d(), "w");
    need(v.size(), rows.n(), "v");
    double *scores, *sum;
    auto result = nb::make_tuple(fresh(scores, rows.n()), fresh(sum, rows.d()));
    const Release release(rows.nonzeros() + rows.n() + rows.d());
    rows.visit([&](const auto& x) { wm::scores_and_combine(x, w.data(), v.data(), scores, sum, threads); });
    return result;
}

auto combine_by_sign(const Rows& rows, Vector v, int threads) {
    need(v.size(), rows.n(), "v");
    double* out;
    auto result = fresh(out, 2, rows.d());
    const Release release(rows.nonzeros() + rows.n() + rows.d());
    rows.visit([&](const auto& x) { wm::combine_by_sign(x, v.data(), out, threads); });
    return result;
}

auto combine_squares(const Rows& rows, Vector v, int threads) {
    need(v.size(), rows.n(), "v");
    double* out;
    auto result = fresh(out, rows.d());
    const Release release(rows.nonzeros() + rows.n() + rows.d());
    rows.visit([&](const auto& x) { wm::combine_squares(x, v.data(), out, threads); });
    return result;
}

auto square_norms(const Rows& rows, int threads) {
    double* out;
    auto result = fresh(out, rows.n());
    const Release release(rows.nonzeros() + rows.n() + rows.d());
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

void scale_both_ways(nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu> matrix, Vector scale,
                     nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu> copy) {
    const auto size = static_cast<Index>(scale.size());
    for (const auto& one : {matrix, copy})
        for (std::size_t side : {0, 1}) need(one.shape(side), size, "each side of the matrix and its copy");
    const Release release(size * size);
    wm::scale_both_ways(matrix.data(), scale.data(), size, copy.data());
}

double best_bias_of_lines(Vector scores, Vector y, Vector c, double kink, double flat) {
    const auto n = static_cast<Index>(scores.size());
    need(y.size(), n, "y");
    need(c.size(), n, "c");
    if (std::none_of(c.data(), c.data() + n, [](double one) { return one > 0; }))
        throw std::invalid_argument("no row has any strength");
    const Release release(4 * n);
    return wm::best_bias_of_lines(scores.data(), y.data(), c.data(), kink, flat, n);
}

wm::Clock::duration seconds(double time) {
    return std::chrono::duration_cast<wm::Clock::duration>(std::chrono::duration<double>(time));
}

double inner(Vector a, Vector b) {
    need(b.size(), static_cast<Index>(a.size()), "b");
    const Release release(static_cast<Index>(a.size()));
    return wm::inner(a.data(), b.data(), static_cast<Index>(a.size()));
}

double distance(Vector a, Vector b) {
    need(b.size(), static_cast<Index>(a.size()), "b");
    const Release release(static_cast<Index>(a.size()));
    return wm::distance(a.data(), b.data(), static_cast<Index>(a.size()));
}

double losses(const std::string& loss, Vector m, Vector c, int threads) {
    need(c.size(), static_cast<Index>(m.size()), "c");
    const Release release(4 * static_cast<Index>(m.size()));
    return with_loss(loss, [&](auto chosen) {
        return wm::losses<decltype(chosen)>(m.data(), c.data(), static_cast<Index>(m.size()), threads);
    });
}

double conjugates(const std::string& loss, Vector alpha, Vector c, int threads) {
    need(c.size(), static_cast<Index>(alpha.size()), "c");
    const Release release(4 * static_cast<Index>(alpha.size()));
    return with_loss(loss, [&](auto chosen) {
        return wm::conjugates<decltype(chosen)>(alpha.data(), c.data(), static_cast<Index>(alpha.size()), threads);
    });
}

// The KKT table's counts and worst misses; the slacks' sum, how many are positive and above 1; how many rows are right;
// the rounding of the margins. `support` comes back.
nb::tuple facts_of_rows(const std::string& loss, Vector m, Vector alpha, Vector y, Vector c, Vector norms, double w_size,
                        double implied_size, double b, double at_bound, double tiny, Array<unsigned char> support,
                        int threads) {
    const auto n = static_cast<Index>(m.size());
    need(alpha.size(), n, "alpha");
    need(y.size(), n, "y");
    need(c.size(), n, "c");
    need(norms.size(), n, "norms");
    need(support.size(), n, "support");
    const wm::Proof proof{m.data(), alpha.data(), y.data(), c.data(), norms.data(), n, w_size, implied_size, b, at_bound,
                          tiny, support.data()};
    wm::RowFacts facts;
    {
        const Release release(8 * n);
        facts = with_loss(loss, [&](auto chosen) { return wm::facts_of_rows<decltype(chosen)>(proof, threads); });
    }
    const auto triple = [](const auto& x) { return nb::make_tuple(x[0], x[1], x[2]); };
    return nb::make_tuple(triple(facts.counts), triple(facts.worst), facts.slack, facts.violations, facts.misclassified,
                          facts.right, facts.rounding);
}

nb::tuple follow_ramp(Vector m, Vector dm, double t, Vector centre, Vector c, Vector y, double tau, Array<double> alpha,
                      int threads) {
    const auto n = static_cast<Index>(alpha.size());
    need(m.size(), n, "m");
    need(dm.size(), n, "dm");
    need(centre.size(), n, "centre");
    need(c.size(), n, "c");
    need(y.size(), n, "y");
    wm::RampSums sums;
    {
        const Release release(8 * n);
        sums = wm::follow_ramp({m.data(), dm.data(), centre.data(), c.data(), y.data(), t, tau, alpha.data(), n}, threads);
    }
    return nb::make_tuple(sums.slope, sums.bend, sums.loss, sums.held, sums.total, sums.balance, sums.free);
}

nb::tuple follow_curve(const std::string& loss, Vector m, Vector dm, double t, Vector c, Array<double> alpha,
                       Array<double> weights, int threads) {
    const auto n = static_cast<Index>(alpha.size());
    need(m.size(), n, "m");
    need(dm.size(), n, "dm");
    need(c.size(), n, "c");
    need(weights.size(), n, "weights");
    const wm::Curve curve{m.data(), dm.data(), c.data(), t, alpha.data(), weights.data(), n};
    wm::CurveSums sums;
    {
        const Release release(8 * n);
        sums = with_loss<wm::SmoothLosses>(
            loss, [&](auto chosen) { return wm::follow_curve<decltype(chosen)>(curve, threads); });
    }
    return nb::make_tuple(sums.slope, sums.bend, sums.loss, sums.held);
}

// The arrays of the Python class LazyWeights, and its four numbers: scale, mass, b and the sum of b.
struct Lazy {
    Array<double> v, v_missed, a, a_missed, numbers;

    wm::LazyWeights unpack(const Rows& rows) const {
        need(v.size(), rows.d(), "v");
        if (v_missed.size()) need(v_missed.size(), rows.d(), "v_missed");
        if (a.size()) need(a.size(), rows.n(), "a");
        if (a_missed.size()) need(a_missed.size(), rows.n(), "a_missed");
        need(numbers.size(), 4, "numbers");
        const auto or_null = [](const Array<double>& x) { return x.size() ? x.data() : nullptr; };
        const double* x = numbers.data();
        return {v.data(), or_null(v_missed), or_null(a), or_null(a_missed), rows.d(), rows.n(), x[0], x[1], x[2], x[3]};
    }
    void pack(const wm::LazyWeights& w) const {
        double* x = numbers.data();
        x[0] = w.scale, x[1] = w.mass, x[2] = w.b, x[3] = w.b_sum;
    }
};

Index sgd_steps(const std::string& rule, const Rows& rows, Vector y, Vector g, Array<double> v, Array<double> v_missed,
                Array<double> a, Array<double> a_missed, Array<double> numbers, Array<const Index> draws, Vector eta,
                Vector shrink, Index batch, bool bias, double radius, Vector norms) {
    need(y.size(), rows.n(), "y");
    if (g.size()) need(g.size(), rows.n(), "g");
    const auto count = static_cast<Index>(eta.size());
    need(shrink.size(), count, "shrink");
    need(draws.size(), count * batch, "draws");
    const Lazy lazy{v, v_missed, a, a_missed, numbers};
    wm::LazyWeights weights = lazy.unpack(rows);
    if (radius < wm::inf) need(norms.size(), rows.n(), "norms");
    const auto slope = with_loss<Rules>(rule, [](auto chosen) { return &decltype(chosen)::slope; });
    const wm::Steps steps{slope, draws.data(), eta.data(), shrink.data(), count, batch, bias, radius, norms.data()};
    Index moved;
    {
        nb::gil_scoped_release release;
        need_rows(draws, rows.n());
        if (radius < wm::inf)
            for (std::size_t j = 0; j < v.size(); ++j) weights.square += v.data()[j] * v.data()[j];
        moved = rows.visit([&](const auto& x) {
            return wm::sgd_steps(x, y.data(), g.size() ? g.data() : nullptr, weights, steps);
        });
    }
    lazy.pack(weights);
    return moved;
}

Index mira_steps(const Rows& rows, Vector y, Array<double> v, Array<double> v_missed,
                 Array<double> numbers, Array<const Index> draws, Index batch, bool bias, double p, double limit) {
    need(y.size(), rows.n(), "y");
    if (batch < 1 || static_cast<Index>(draws.size()) % batch) throw std::invalid_argument("draws are not whole batches");
    const Lazy lazy{v, v_missed, {}, {}, numbers};
    wm::LazyWeights weights = lazy.unpack(rows);
    const wm::MiraSteps steps{draws.data(), static_cast<Index>(draws.size()) / batch, batch, bias, p, limit};
    Index violated;
    {
        nb::gil_scoped_release release;
        need_rows(draws, rows.n());
        violated = rows.visit([&](const auto& x) { return wm::mira_steps(x, y.data(), weights, steps); });
    }
    lazy.pack(weights);
    return violated;
}

// Climbs through the coordinates in `visits`, or `count` times along the steepest one if there are none. Returns what
// was gained and how many visits changed something.
nb::tuple hildreth_steps(nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu> q, Vector upper,
                         Array<double> alpha, Array<double> gradient, Array<const Index> visits, Index count) {
    const auto n = static_cast<Index>(alpha.size());
    need(q.shape(0), n, "Q");
    need(q.shape(1), n, "Q");
    need(upper.size(), n, "upper");
    need(gradient.size(), n, "gradient");
    wm::BoxQp problem{q.data(), upper.data(), alpha.data(), gradient.data(), n};
    Index moved = 0;
    double gain;
    {
        nb::gil_scoped_release release;
        need_rows(visits, n);
        gain = visits.size() ? wm::hildreth_visits(problem, visits.data(), static_cast<Index>(visits.size()), moved)
                             : wm::hildreth_greedy(problem, count, moved);
    }
    return nb::make_tuple(gain, moved);
}

// `columns`, `owner`, `place` and `next` are the cache of the Gram matrix's columns, kept between calls.
nb::tuple smo_steps(const Rows& rows, Vector y, Vector c, Vector norms, Array<double> alpha, Array<double> f,
                    nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu> columns, Array<Index> owner,
                    Array<Index> place, Array<Index> next, bool bias, Index count, double tol) {
    const Index n = rows.n(), slots = static_cast<Index>(columns.shape(0));
    need(y.size(), n, "y");
    need(c.size(), n, "c");
    need(norms.size(), n, "norms");
    need(alpha.size(), n, "alpha");
    need(f.size(), n, "f");
    need(columns.shape(1), n, "columns");
    need(owner.size(), slots, "owner");
    need(place.size(), n, "place");
    need(next.size(), 1, "next");
    if (slots < 2) throw std::invalid_argument("columns needs at least two slots");
    std::vector<double> spread(static_cast<std::size_t>(rows.d()));
    wm::Smo problem{y.data(), c.data(), norms.data(), alpha.data(), f.data(), n};
    wm::Columns cache{columns.data(), spread.data(), owner.data(), place.data(), slots, next.data()};
    double violation = wm::inf;
    Index taken;
    {
        nb::gil_scoped_release release;
        taken = rows.visit(
            [&](const auto& x) { return wm::smo_steps(x, problem, cache, bias, count, tol, violation); });
    }
    return nb::make_tuple(taken, violation);
}

// Hands memory from realloc over to NumPy.
template <class T>
auto adopt(T* data, Index size) {
    nb::capsule owner(data, [](void* p) noexcept { std::free(p); });
    return nb::ndarray<nb::numpy, T, nb::ndim<1>>(data, {static_cast<std::size_t>(size)}, owner);
}

// A problem of a line as Python sees it: its name, the line, the token and a number; None if there is none.
nb::object describe(const wm::svmlight::Problem& problem) {
    if (problem.fault == wm::svmlight::Fault::none) return nb::none();
    const Index shown = std::min<Index>(problem.end - problem.begin, 200);
    return nb::make_tuple(wm::svmlight::fault_names[static_cast<int>(problem.fault)], problem.line,
                          nb::bytes(problem.begin, static_cast<std::size_t>(shown)), problem.number);
}

// Reads lines of svmlight text from chunks.
struct SvmlightParser {
    std::variant<wm::svmlight::Parser<float>, wm::svmlight::Parser<double>> parser;

    static SvmlightParser make(bool single, const std::string& base, Index n_features) {
        const auto chosen = base == "zero"  ? wm::svmlight::Base::zero
                            : base == "one" ? wm::svmlight::Base::one
                                            : wm::svmlight::Base::automatic;
        if (single) return {wm::svmlight::Parser<float>(chosen, n_features)};
        return {wm::svmlight::Parser<double>(chosen, n_features)};
    }
    Index rows() const {
        return std::visit([](const auto& it) { return it.rows; }, parser);
    }
    Index lines() const {
        return std::visit([](const auto& it) { return it.lines; }, parser);
    }

    bool zero_based() const {
        return std::visit([](const auto& it) { return it.counts_from_zero(); }, parser);
    }
    // `text` is whole lines up to `size`, and at least `padding` bytes behind them.
    nb::object feed(nb::bytearray text, Index size, double times, Index piece, int threads) {
        const char* begin = text.c_str();
        if (size < 1 || size + wm::svmlight::padding > static_cast<Index>(text.size()) || begin[size - 1] != '\n' || piece < 1 || !(times >= 1))
            throw std::invalid_argument("text must be whole lines, with room behind them");
        wm::svmlight::Problem problem;
        {
            nb::gil_scoped_release release;
            problem = std::visit([&](auto& it) { return it.feed(begin, begin + size, times, piece, threads); }, parser);
        }
        return describe(problem);
    }
    // (values, indices, starts, labels, qids or None, number of columns), or a problem and nothing else.
    nb::tuple take() {
        return std::visit(
            [](auto& it) {
                wm::svmlight::Problem problem;
                const auto taken = it.take(problem);
                if (problem.fault != wm::svmlight::Fault::none) return nb::make_tuple(describe(problem));
                const auto whole = [&](void* data, Index size) {
                    return taken.is_wide ? nb::cast(adopt(static_cast<std::int64_t*>(data), size))
                                         : nb::cast(adopt(static_cast<std::int32_t*>(data), size));
                };
                return nb::make_tuple(adopt(taken.values, taken.nonzeros), whole(taken.indices, taken.nonzeros),
                                      whole(taken.starts, taken.rows + 1), adopt(taken.labels, taken.rows),
                                      taken.has_qids ? nb::cast(adopt(taken.qids, taken.rows)) : nb::none(),
                                      taken.columns);
            },
            parser);
    }
};

template <class T, class I>
nb::bytes svmlight_text(Array<const T> x, Array<const I> columns, Array<const I> starts, Index begin, Index end,
                        Vector labels, std::optional<Array<const Index>> qids, Index offset) {
    const Index rows = static_cast<Index>(starts.size()) - 1;
    if (begin < 0 || begin > end || end > rows) throw std::invalid_argument("rows that do not exist");
    need(labels.size(), rows, "labels");
    if (qids) need(qids->size(), rows, "qids");
    for (Index i = begin; i < end; ++i)
        if (starts.data()[i] < 0 || starts.data()[i] > starts.data()[i + 1] ||
            starts.data()[i + 1] > static_cast<I>(std::min(x.size(), columns.size())))
            throw std::invalid_argument("starts does not rise");
    const Index most = wm::svmlight::longest(end - begin, starts.data()[end] - starts.data()[begin]);
    const auto text = std::make_unique_for_overwrite<char[]>(static_cast<std::size_t>(most) + 1);
    char* stop;
    {
        nb::gil_scoped_release release;
        stop = wm::svmlight::format(text.get(), x.data(), columns.data(), starts.data(), begin, end, labels.data(),
                                    qids ? qids->data() : nullptr, offset);
    }
    return nb::bytes(text.get(), static_cast<std::size_t>(stop - text.get()));
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
    return with_loss(loss, [&](auto chosen) { return wm::Ahead<decltype(chosen)>{alpha, q, c}.step(m).next; });
}

}  // namespace

NB_MODULE(MODULE_NAME, m) {
    using nb::literals::operator""_a;
    nb::set_leak_warnings(false);  // a traceback that is alive where Python ends holds objects: no fault, and nobody's business
    bind_dual_cd(m);
    bind_kernels(m);
    nb::list names;
    std::apply([&](auto... losses) { (names.append(nb::str(losses.name)), ...); }, wm::Losses{});
    m.attr("loss_names") = nb::tuple(names);
    m.def("loss_function", &loss_function, "loss"_a, "function"_a, "at"_a);
    m.def("loss_step", &loss_step, "loss"_a, "alpha"_a, "m"_a, "q"_a, "c"_a);

    nb::class_<Rows>(m, "Rows")
        .def_prop_ro("n", &Rows::n)
        .def_prop_ro("d", &Rows::d)
        .def_prop_ro("nonzeros", &Rows::nonzeros)
        .def_prop_ro("uneven", &Rows::uneven);
    const auto at = [](double now) { return wm::Clock::time_point(seconds(now)); };
    nb::class_<wm::Prudence>(m, "Prudence")  // for tests, which have a clock of their own
        .def(nb::init<>())
        .def("says_no", [at](const wm::Prudence& self, double now) { return self.says_no(at(now)); }, "now"_a)
        .def(
            "judge",
            [at](wm::Prudence& self, double lost, double took, double now) { self.judge(seconds(lost), seconds(took), at(now)); },
            "lost"_a, "took"_a, "now"_a);
    m.def("dense_rows", &dense_rows<float>, nb::arg("x").noconvert());
    m.def("dense_rows", &dense_rows<double>, nb::arg("x").noconvert());
    const auto bind_csr = [&]<class T, class I>(T, I) {
        m.def("csr_rows", &csr_rows<T, I>, nb::arg("x").noconvert(), nb::arg("columns").noconvert(),
              nb::arg("starts").noconvert(), "d"_a);
    };
    m.def("check_order", &check_order<std::int32_t>, nb::arg("columns").noconvert(), nb::arg("starts").noconvert(), "d"_a,
          "threads"_a);
    m.def("check_order", &check_order<std::int64_t>, nb::arg("columns").noconvert(), nb::arg("starts").noconvert(), "d"_a,
          "threads"_a);
    nb::class_<SvmlightParser>(m, "SvmlightParser")
        .def_prop_ro("rows", &SvmlightParser::rows)
        .def_prop_ro("lines", &SvmlightParser::lines)
        .def_prop_ro("zero_based", &SvmlightParser::zero_based)
        .def("feed", &SvmlightParser::feed, "text"_a, "size"_a, "times"_a, "piece"_a, "threads"_a)
        .def("take", &SvmlightParser::take);
    m.def("svmlight_parser", &SvmlightParser::make, "single"_a, "base"_a, "n_features"_a);
    m.attr("svmlight_padding") = wm::svmlight::padding;
    const auto bind_svmlight_text = [&]<class T, class I>(T, I) {
        m.def("svmlight_text", &svmlight_text<T, I>, nb::arg("x").noconvert(), nb::arg("columns").noconvert(),
              nb::arg("starts").noconvert(), "begin"_a, "end"_a, "labels"_a, "qids"_a.none(), "offset"_a);
    };
    bind_svmlight_text(0.0F, std::int32_t{});
    bind_svmlight_text(0.0F, std::int64_t{});
    bind_svmlight_text(0.0, std::int32_t{});
    bind_svmlight_text(0.0, std::int64_t{});
    bind_csr(0.0F, std::int32_t{});
    bind_csr(0.0F, std::int64_t{});
    bind_csr(0.0, std::int32_t{});
    bind_csr(0.0, std::int64_t{});

    m.def("scores", &scores, "rows"_a, "w"_a, "threads"_a);
    m.def("scores_and_combine", &scores_and_combine, "rows"_a, "w"_a, "v"_a, "threads"_a);
    m.def("combine", &combine, "rows"_a, "v"_a, "threads"_a);
    m.def("combine_by_sign", &combine_by_sign, "rows"_a, "v"_a, "threads"_a);
    m.def("combine_squares", &combine_squares, "rows"_a, "v"_a, "threads"_a);
    m.def("square_norms", &square_norms, "rows"_a, "threads"_a);
    m.def("gram", &gram, "rows"_a, "weight"_a, "shift"_a.none(), "border"_a, "threads"_a);
    m.def("best_bias_of_lines", &best_bias_of_lines, "scores"_a, "y"_a, "c"_a, "kink"_a, "flat"_a);
    m.def("scale_both_ways", &scale_both_ways, nb::arg("matrix").noconvert(), "scale"_a, nb::arg("copy").noconvert());
    m.def("inner", &inner, "a"_a, "b"_a);
    m.def("distance", &distance, "a"_a, "b"_a);
    m.def("losses", &losses, "loss"_a, "m"_a, "c"_a, "threads"_a);
    m.def("conjugates", &conjugates, "loss"_a, "alpha"_a, "c"_a, "threads"_a);
    m.def("facts_of_rows", &facts_of_rows, "loss"_a, "m"_a, "alpha"_a, "y"_a, "c"_a, "norms"_a, "w_size"_a,
          "implied_size"_a, "b"_a, "at_bound"_a, "tiny"_a, nb::arg("support").noconvert(), "threads"_a);
    m.def("follow_curve", &follow_curve, "loss"_a, "m"_a, "dm"_a, "t"_a, "c"_a, nb::arg("alpha").noconvert(),
          nb::arg("weights").noconvert(), "threads"_a);
    m.def("follow_ramp", &follow_ramp, "m"_a, "dm"_a, "t"_a, "centre"_a, "c"_a, "y"_a, "tau"_a,
          nb::arg("alpha").noconvert(), "threads"_a);
    m.def("sgd_steps", &sgd_steps, "rule"_a, "rows"_a, "y"_a, "g"_a, nb::arg("v").noconvert(),
          nb::arg("v_missed").noconvert(), nb::arg("a").noconvert(), nb::arg("a_missed").noconvert(),
          nb::arg("numbers").noconvert(), "draws"_a, "eta"_a, "shrink"_a, "batch"_a, "bias"_a, "radius"_a,
          "norms"_a);
    m.def("mira_steps", &mira_steps, "rows"_a, "y"_a, nb::arg("v").noconvert(),
          nb::arg("v_missed").noconvert(), nb::arg("numbers").noconvert(), "draws"_a, "batch"_a, "bias"_a, "p"_a,
          "limit"_a);
    m.def("hildreth_steps", &hildreth_steps, "q"_a, "upper"_a, nb::arg("alpha").noconvert(),
          nb::arg("gradient").noconvert(), "visits"_a, "count"_a);
    m.def("smo_steps", &smo_steps, "rows"_a, "y"_a, "c"_a, "norms"_a, nb::arg("alpha").noconvert(),
          nb::arg("f").noconvert(), nb::arg("columns").noconvert(), nb::arg("owner").noconvert(),
          nb::arg("place").noconvert(), nb::arg("next").noconvert(), "bias"_a, "count"_a, "tol"_a);
}
