// The only binding file: arrays come in, the storage and the loss are chosen once, a kernel runs without the GIL.
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
#include <set>
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
#include "solvers/descent.hpp"
#include "solvers/dual_cd.hpp"
#include "solvers/hildreth.hpp"
#include "solvers/lanes.hpp"
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

// Calls work(Loss{}) for the loss of that name.
template <class Losses = wm::Losses, class Work>
auto with_loss(const std::string& name, Work&& work) {
    return std::apply(
        [&](auto... losses) {
            std::optional<decltype(work(std::get<0>(Losses{})))> result;
            ((name == losses.name ? (result.emplace(work(losses)), 0) : 0), ...);
            if (!result) throw std::invalid_argument("no loss is called '" + name + "'");
            return *result;
        },
        Losses{});
}

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

void need_rows(Array<const Index> draws, Index n) {
    for (std::size_t k = 0; k < draws.size(); ++k)
        if (draws.data()[k] < 0 || draws.data()[k] >= n)
            throw std::out_of_range("a row, or a block of them, that does not exist was drawn");
}

// Threads must not meet on a row, and rows that are the same problem as one are shared out once.
void need_ascending(const Index* list, Index count) {
    if (std::adjacent_find(list, list + count, std::greater_equal<>()) != list + count)
        throw std::invalid_argument("rows in play must ascend");
}

// The numbers that dual coordinate descent reads and writes beside X, of the right lengths.
wm::DualCd numbers_of_descent(const Rows& rows, Vector y, Vector c, Vector norms, Array<double> alpha, Array<double> w,
                              double inverse_rho, Array<Index> active, Index actives, int shift, Array<unsigned char> slow,
                              int threads, Index apart) {
    need(y.size(), rows.n(), "y");
    need(c.size(), rows.n(), "c");
    need(norms.size(), rows.n(), "norms");
    need(alpha.size(), rows.n(), "alpha");
    need(w.size(), rows.d(), "w");
    need(slow.size(), rows.n(), "slow");
    if (actives < 0 || actives > static_cast<Index>(active.size()))
        throw std::invalid_argument("more rows in play than there are");
    if (shift < 0 || shift > 30 || apart < 1)
        throw std::invalid_argument("a block, and the way between merges, has at least one row");
    for (Index k = 0; k < actives; ++k)
        if (active.data()[k] < 0 || active.data()[k] >= rows.n()) throw std::out_of_range("a row in play that does not exist");
    wm::DualCd pass{};
    pass.y = y.data(), pass.c = c.data(), pass.norms = norms.data(), pass.alpha = alpha.data(), pass.w = w.data();
    pass.inverse_rho = inverse_rho, pass.active = active.data(), pass.actives = actives, pass.shift = shift;
    pass.slow = slow.data(), pass.watched = true, pass.threads = threads, pass.apart = apart;
    return pass;
}

// Lets descent go through rows in two halves, if their storage can be cut; their columns must ascend.
bool cut(wm::Workspace& work, const Rows& rows, int threads) {
    nb::gil_scoped_release release;
    rows.visit([&](const auto& x) {
        if constexpr (wm::can_be_cut<std::decay_t<decltype(x)>>) work.cut = wm::cut_in_two(x, threads);
    });
    return work.cut.has_value();
}

nb::tuple dual_cd_pass(const std::string& loss, const Rows& rows, Vector y, Vector c, Vector norms, Array<double> alpha,
                       Array<double> w, double b, double s, double inverse_rho, Array<Index> active, Index actives,
                       Array<const Index> order, int shift, double shrink_above, double shrink_below,
                       Array<unsigned char> slow, double slow_from, double share, Index times, Index many, double proof,
                       double enough_gap, Index enough_visits, bool split, int threads, Index apart, wm::Workspace& work) {
    wm::DualCd pass =
        numbers_of_descent(rows, y, c, norms, alpha, w, inverse_rho, active, actives, shift, slow, threads, apart);
    need(order.size(), wm::blocks_of(actives, shift), "order");
    need_rows(order, static_cast<Index>(order.size()));
    std::vector<bool> drawn(order.size());
    for (std::size_t k = 0; k < order.size(); ++k) drawn[static_cast<std::size_t>(order.data()[k])] = true;
    if (std::find(drawn.begin(), drawn.end(), false) != drawn.end()) throw std::invalid_argument("a block was drawn twice");
    if (split) need_ascending(pass.active, pass.actives);
    pass.b = b, pass.s = s, pass.order = order.data(), pass.blocks = static_cast<Index>(order.size());
    pass.shrink_above = shrink_above, pass.shrink_below = shrink_below, pass.slow_from = slow_from, pass.split = split;
    wm::Sight sight;
    Index visits = 0;
    double before = 0;
    {
        nb::gil_scoped_release release;
        sight = with_loss(loss, [&](auto chosen) {
            return rows.visit([&](const auto& x) {
                return wm::dual_cd_pass<decltype(chosen)>(x, pass, {share, times, many}, proof, {enough_gap, enough_visits},
                                                          work, wm::Draws(), visits, before);
            });
        });
    }
    return nb::make_tuple(pass.b, pass.s, sight.gap, before, sight.largest, sight.smallest, pass.actives, visits);
}

// Dual coordinate descent on rows that are all at hand, with the arrays it borrows kept alive.
class Descent {
   public:
    Descent(const std::string& loss, const Rows& rows, Vector y, Vector c, Vector norms, Array<double> alpha, Array<double> w,
            double inverse_rho, Array<Index> active, Index actives, Array<const Index> live, bool hard, int shift,
            Array<unsigned char> slow, nb::handle course, nb::handle habits, Index very_few, Index many, bool exact, Index seed,
            int threads, Index apart, nb::handle work)
        : loss(loss), rows(rows), borrowed(nb::make_tuple(y, c, norms, alpha, w, active, live, slow, course, habits, work)),
          pass(numbers_of_descent(rows, y, c, norms, alpha, w, inverse_rho, active, actives, shift, slow, threads, apart)),
          course(nb::cast<wm::Course&>(course)), habits(nb::cast<const wm::Habits&>(habits)), work(nb::cast<wm::Workspace&>(work)),
          terms{live.data(), static_cast<Index>(live.size()), very_few, many, seed, hard, exact} {
        need_rows(live, rows.n());
        need(active.size(), static_cast<Index>(live.size()), "active");
        need_ascending(terms.live, terms.count);
        need_ascending(pass.active, pass.actives);
    }

    Index actives() const { return pass.actives; }
    void all_play() { std::copy_n(terms.live, terms.count, pass.active), pass.actives = terms.count; }

    // As many passes as the budget allows; how many rows were in play in the last one, and the visits.
    nb::tuple go_on(Index passes, Index visits) {
        {
            nb::gil_scoped_release release;
            run({passes, visits});
        }
        return nb::make_tuple(playing, visited);
    }

    // The same for several, each on a thread of its own.
    static void all_go_on(const std::vector<Descent*>& all, Index passes, Index visits, int threads) {
        if (std::any_of(all.begin(), all.end(), [](const Descent* one) { return !one || one->pass.threads > 1; }))
            throw std::invalid_argument("descents side by side have a thread each");
        if (std::set(all.begin(), all.end()).size() < all.size()) throw std::invalid_argument("the same descent twice");
        nb::gil_scoped_release release;
        wm::run_pieces(static_cast<int>(all.size()), threads, [&](int k) { all[static_cast<std::size_t>(k)]->run({passes, visits}); });
    }

   private:
    std::string loss;
    Rows rows;
    nb::tuple borrowed;
    wm::DualCd pass;
    wm::Course& course;
    const wm::Habits& habits;
    wm::Workspace& work;
    wm::Terms terms;
    Index playing = 0, visited = 0;

    void run(const wm::Budget& budget) {
        playing = with_loss(loss, [&](auto chosen) {
            return rows.visit([&](const auto& x) {
                return wm::descend<decltype(chosen)>(x, pass, terms, course, habits, budget, work, visited);
            });
        });
    }
};

// A course with all its numbers, which Python keeps and brings back by name.
void bind_course(nb::module_& m) {
    using namespace nb::literals;
    using wm::Course;
    nb::class_<Course> course(m, "Course");
    nb::list names;
    const auto number = [&](const char* name, auto member) {
        course.def_rw(name, member);
        names.append(name);
    };
    number("goal", &Course::goal);
    number("tol", &Course::tol);
    number("b", &Course::b);
    number("s", &Course::s);
    number("last_s", &Course::last_s);
    number("dual", &Course::dual);
    number("worst", &Course::worst);
    number("above", &Course::above);
    number("below", &Course::below);
    number("gap", &Course::gap);
    number("near", &Course::near);
    number("before", &Course::before);
    number("whole_claim", &Course::whole_claim);
    number("returns", &Course::returns);
    number("whole", &Course::whole);
    number("narrowed", &Course::narrowed);
    number("trusted", &Course::trusted);
    number("doubted", &Course::doubted);
    number("passes", &Course::passes);
    number("visited", &Course::visited);
    number("unseen", &Course::unseen);
    course.attr("names") = nb::tuple(names);
    course.def(nb::init<>());
    course.def("enough", &Course::enough, "habits"_a);
    course.def(
        "judge",
        [](Course& self, double gap, double largest, double smallest, double earlier, Index left, const wm::Habits& habits) {
            self.judge({gap, largest, smallest}, earlier, left, habits);
        },
        "gap"_a, "largest"_a, "smallest"_a, "earlier"_a, "left"_a, "habits"_a);
}

// Up to eight classes in lanes, with the arrays they borrow kept alive.
class LaneDescent {
   public:
    LaneDescent(const std::string& loss, const Rows& rows, Array<const unsigned char> label, Vector b,
                Vector c, Vector norms, Array<const Index> live, int shift, double inverse_rho, unsigned seed)
        : loss(loss), rows(rows), borrowed(nb::make_tuple(label, c, norms)), used(checked(rows, label, b, c, norms, live, shift)),
          descent(label.data(), used, c.data(), norms.data(), rows.n(), rows.d(), inverse_rho, b.data(),
                  std::vector<Index>(live.data(), live.data() + live.size()), shift, seed) {}

    // Whether all classes seem to be solved, the largest of their relative gaps, the passes and the visits so far.
    nb::tuple run(double tol, const wm::Habits& habits, Index leave, Index budget) {
        nb::gil_scoped_release release;
        with_loss<std::tuple<wm::Hinge, wm::SquaredHinge>>(loss, [&](auto chosen) {
            rows.visit([&](const auto& x) {
                descent.run<decltype(chosen)>(x, tol, habits, leave, budget);
            });
            return 0;
        });
        nb::gil_scoped_acquire acquire;
        const double worst = *std::max_element(descent.claim.begin(), descent.claim.begin() + used);
        return nb::make_tuple(descent.done, worst, descent.passes, descent.visits);
    }

    // α, b and w of one class, and whether they seem to be its solution.
    nb::tuple solution(int lane) const {
        if (lane < 0 || lane >= used) throw std::out_of_range("no such lane");
        double *alpha, *w;
        auto alphas = fresh(alpha, rows.n()), weights = fresh(w, rows.d());
        descent.alpha_of(lane, alpha);
        descent.weights_of(lane, w);
        const auto k = static_cast<std::size_t>(lane);
        return nb::make_tuple(alphas, descent.bias[k], weights, descent.open[lane] == 0);
    }

   private:
    std::string loss;
    Rows rows;
    nb::tuple borrowed;
    int used;
    wm::LaneDescent descent;

    // The number of lanes, if nothing is wrong with what comes in.
    static int checked(const Rows& rows, Array<const unsigned char> label, Vector b, Vector c, Vector norms,
                       Array<const Index> live, int shift) {
        need(label.size(), rows.n(), "label");
        need(c.size(), rows.n(), "c");
        need(norms.size(), rows.n(), "norms");
        need_rows(live, rows.n());
        if (std::any_of(label.data(), label.data() + label.size(), [](unsigned char one) { return one > wm::lanes; }))
            throw std::out_of_range("a label of no lane");
        if (b.size() < 1 || b.size() > wm::lanes) throw std::invalid_argument("there are one to eight lanes");
        if (shift < 0 || shift > 30) throw std::invalid_argument("a block has at least one row");
        return static_cast<int>(b.size());
    }
};

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
    nb::class_<wm::Workspace>(m, "Workspace")
        .def(nb::init<>())
        .def("cut", &cut, "rows"_a, "threads"_a)
        .def_prop_ro("is_cut", [](const wm::Workspace& work) { return work.cut.has_value(); })
        .def_ro("shared", &wm::Workspace::shared);
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
    m.def("dual_cd_pass", &dual_cd_pass, "loss"_a, "rows"_a, "y"_a, "c"_a, "norms"_a, nb::arg("alpha").noconvert(),
          nb::arg("w").noconvert(), "b"_a, "s"_a, "inverse_rho"_a, nb::arg("active").noconvert(),
          "actives"_a, "order"_a, "shift"_a, "shrink_above"_a, "shrink_below"_a, nb::arg("slow").noconvert(),
          "slow_from"_a, "share"_a, "times"_a, "many"_a, "proof"_a, "enough_gap"_a, "enough_visits"_a,
          "split"_a, "threads"_a, "apart"_a, "work"_a);
    nb::class_<wm::Habits>(m, "Habits")
        .def(nb::init<double, double, double, double, double, double, double, double, Index>(), "bold"_a, "shy"_a, "rough"_a,
             "least_return"_a, "worth"_a, "most_return"_a, "slow"_a, "near"_a, "again"_a);
    bind_course(m);
    nb::class_<Descent>(m, "Descent")
        .def(nb::init<const std::string&, const Rows&, Vector, Vector, Vector, Array<double>, Array<double>, double, Array<Index>, Index,
                      Array<const Index>, bool, int, Array<unsigned char>, nb::handle, nb::handle, Index, Index, bool, Index, int, Index,
                      nb::handle>(),
             "loss"_a, "rows"_a, "y"_a, "c"_a, "norms"_a, nb::arg("alpha").noconvert(), nb::arg("w").noconvert(), "inverse_rho"_a,
             nb::arg("active").noconvert(), "actives"_a, "live"_a, "hard"_a, "shift"_a, nb::arg("slow").noconvert(), "course"_a, "habits"_a,
             "very_few"_a, "many"_a, "exact"_a, "seed"_a, "threads"_a, "apart"_a, "work"_a)
        .def_prop_ro("actives", &Descent::actives)
        .def("all_play", &Descent::all_play)
        .def("go_on", &Descent::go_on, "passes"_a, "visits"_a);
    m.def("all_go_on", &Descent::all_go_on, "descents"_a, "passes"_a, "visits"_a, "threads"_a);
    m.attr("lanes") = wm::lanes;
    nb::class_<LaneDescent>(m, "LaneDescent")
        .def(nb::init<const std::string&, const Rows&, Array<const unsigned char>, Vector, Vector, Vector,
                      Array<const Index>, int, double, unsigned>(),
             "loss"_a, "rows"_a, "label"_a, "b"_a, "c"_a, "norms"_a, "live"_a, "shift"_a, "inverse_rho"_a, "seed"_a)
        .def("run", &LaneDescent::run, "tol"_a, "habits"_a, "leave"_a, "budget"_a)
        .def("solution", &LaneDescent::solution, "lane"_a);
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
