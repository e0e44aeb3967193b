// The bindings of dual coordinate descent: a pass, passes in a row, and several classes at once.
#include "../bindings.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <functional>
#include <set>
#include <vector>

#include "descent.hpp"
#include "dual_cd.hpp"
#include "lanes.hpp"

namespace widemargin::bindings {
namespace {

namespace wm = widemargin;

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

}  // namespace

void bind_dual_cd(nb::module_& m) {
    using namespace nb::literals;
    nb::class_<wm::Workspace>(m, "Workspace")
        .def(nb::init<>())
        .def("cut", &cut, "rows"_a, "threads"_a)
        .def_prop_ro("is_cut", [](const wm::Workspace& work) { return work.cut.has_value(); })
        .def_ro("shared", &wm::Workspace::shared);
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
}

}  // namespace widemargin::bindings
