// DESCENT: passes of dual coordinate descent one after the other, until a proof seems worth its while.
//
// Few rows in play are gathered in memory of their own, equal ones as one row of their common strength: that is the same
// problem, whose solution they share. Very few are known by their products with each other alone.
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <optional>
#include <vector>

#include "../data/few_rows.hpp"
#include "../data/products_of_rows.hpp"
#include "../losses.hpp"
#include "../sums.hpp"
#include "course.hpp"
#include "dual_cd.hpp"
#include "shuffle.hpp"
#include "step_back.hpp"

namespace widemargin {

// The rows in play, of equal ones only one, with numbers of their own; what becomes of these is shared out in the end.
template <class Loss>
class InPlay {
   public:
    const Kinds kinds;

    template <class Rows>
    InPlay(const Rows& rows, DualCd& all)
        : kinds(rows, all.y, all.active, all.actives), all(all), list(all.active, all.active + all.actives) {
        for (const Index i : kinds.first) y.push_back(all.y[i]), norms.push_back(all.norms[i]);
        const std::size_t count = kinds.first.size();
        for (auto* numbers : {&c, &alpha}) numbers->resize(count);
        slow.resize(count), active.resize(count), order.resize(count);
        for (std::size_t k = 0; k < list.size(); ++k) {
            const auto kind = static_cast<std::size_t>(kinds.of[k]);
            c[kind] += all.c[list[k]], alpha[kind] += all.alpha[list[k]];
        }
        before = alpha;
        for (auto* places : {&active, &order}) std::iota(places->begin(), places->end(), Index{0});
    }

    // Whether common strengths are numbers still.
    bool is_finite() const {
        return std::all_of(c.begin(), c.end(), [](double one) { return one < inf; });
    }

    // A pass over them, in a new order.
    DualCd pass(Draws& draws) {
        DualCd own = all;
        shuffle(order, draws);
        own.y = y.data(), own.c = c.data(), own.norms = norms.data(), own.alpha = alpha.data(), own.slow = slow.data();
        own.active = active.data(), own.actives = kinds.count(), own.split = false;
        own.order = order.data(), own.blocks = kinds.count(), own.shift = 0;
        return own;
    }

    // Hands over what the pass has come to; equal rows have α in proportion to their strengths, where that matters even if
    // their sum is what it was.
    void share_out(const DualCd& own) {
        std::vector<bool> stays(alpha.size());
        for (Index k = 0; k < own.actives; ++k) stays[static_cast<std::size_t>(own.active[k])] = true;
        all.actives = 0, all.b = own.b, all.s = own.s;
        for (std::size_t k = 0; k < list.size(); ++k) {
            const auto kind = static_cast<std::size_t>(kinds.of[k]);
            const Index i = list[k];
            if (alpha[kind] != before[kind] || Loss::bend_of_row(1.0) > 0)
                all.alpha[i] = alpha[kind] == Loss::upper(c[kind])
                                   ? Loss::upper(all.c[i])
                                   : std::min(alpha[kind] * (all.c[i] / c[kind]), Loss::upper(all.c[i]));
            if (stays[kind]) all.active[all.actives++] = i;
        }
    }

    // By how much their α have changed, times y.
    double change(std::size_t kind) const { return (alpha[kind] - before[kind]) * y[kind]; }

   private:
    DualCd& all;
    const std::vector<Index> list;
    std::vector<double> y, c, norms, alpha, before;
    std::vector<unsigned char> slow;
    std::vector<Index> active, order;
};

// Passes over few rows in play; at most so many that differ are known by their products.
template <class Loss, class Rows>
Sight dual_cd_pass_among_few(const Rows& rows, DualCd& pass, Index very_few, Again again, double proof, const Enough& enough,
                             Workspace& work, Draws draws, Index& visits, double& before) {
    constexpr double patience = 90;  // visits of each row: what to move all at once costs when it takes longest
    InPlay<Loss> few(rows, pass);
    if (!few.is_finite()) return dual_cd_pass<Loss>(rows, pass, again, proof, enough, work, draws, visits, before);
    DualCd own = few.pass(draws);
    Sight sight;
    if (few.kinds.count() <= very_few) {
        const ProductsOfRows products(rows, few.kinds.first.data(), few.kinds.count());
        std::vector<double> scores;
        for (const Index i : few.kinds.first) scores.push_back(rows.dot(i, pass.w));
        own.w = scores.data();
        again.times = 0, again.patience = 0;  // all at once is all it takes
        sight = dual_cd_pass<Loss>(products, own, again, proof, enough, work, draws, visits, before);
        for (std::size_t kind = 0; kind < scores.size(); ++kind)
            if (few.change(kind) != 0) rows.add(few.kinds.first[kind], few.change(kind), pass.w);
    } else {
        const Packed<Rows> packed(rows, few.kinds.first);
        again.patience = patience;
        sight = dual_cd_pass<Loss>(packed.rows(), own, again, proof, enough, work, draws, visits, before);
    }
    few.share_out(own);
    return sight;
}

// What stays the same from pass to pass: the rows that may be in play; at most how many are very few, and how many are worth
// two shards; whether C = ∞; and whether a gap that would do is looked at in full before the caller is asked.
struct Terms {
    const Index* live;
    Index count, very_few, many, seed;
    bool hard, exact;
};

// What is to be done before the caller is asked again.
struct Budget {
    Index passes, visits;
};

// Σ of each row's Fenchel–Young gap at this w and b.
template <class Loss, class Rows>
double gap_of_all(const Rows& rows, const DualCd& pass, double b, const Terms& terms) {
    return sum_of_stretches(terms.count, pass.threads, [&](Index begin, Index end) {
        double gap = 0;
        for (Index k = begin; k < end; ++k) {
            const Index i = terms.live[k];
            const double m = pass.y[i] * (rows.dot(i, pass.w) + b);
            gap += pass.c[i] * quick_shape<Loss>(m).value + Loss::conjugate_of_row(pass.alpha[i], pass.c[i]) + pass.alpha[i] * m;
        }
        return gap;
    });
}

// Passes over rows that are all at hand: one at least, then until a proof seems worth its while or the budget is used up. `pass`
// has the numbers of the rows and those in play, in the end those of the next pass. Returns how many the last one began with;
// `visits` counts all.
template <class Loss, class Rows>
Index descend(const Rows& rows, DualCd& pass, const Terms& terms, Course& course, const Habits& habits, const Budget& budget,
              Workspace& work, Index& visits) {
    constexpr Index one_in = 16, least = 128;  // rows in play are few: a copy is small; and worth one: the cache holds fewer
    const Index count = terms.count, many = terms.many;
    const Index some = std::min<Index>(count / 32, 150);  // rows of each class that cost next to nothing
    const Index enough_passes = course.passes + budget.passes;
    const auto look_at_dual = [&] {
        const double square = inner(pass.w, pass.w, rows.d);
        const double total = -conjugates<Loss>(pass.alpha, pass.c, rows.n, pass.threads);
        course.unseen = 0;
        course.dual = total - square / 2 - course.b * course.s;  // what balance costs or gains, to first order
        if (terms.hard) course.dual = square > 0 ? total / square * total / 2 : 0.0;  // any multiple of α is feasible: the best
    };
    std::vector<Index> order;
    Index playing = 0;
    for (visits = 0;;) {
        playing = pass.actives;
        order.resize(static_cast<std::size_t>(blocks_of(playing, pass.shift)));
        std::iota(order.begin(), order.end(), Index{0});
        Draws draws(static_cast<std::uint64_t>(terms.seed), static_cast<std::uint64_t>(++course.passes));
        shuffle(order, draws);
        pass.order = order.data(), pass.blocks = static_cast<Index>(order.size());
        pass.b = course.b, pass.s = course.s;
        pass.shrink_above = course.above, pass.shrink_below = course.below, pass.focus = 0;
        pass.slow_from = habits.slow * course.worst;
        pass.split = playing >= many;
        const double bound = course.dual > 0 ? course.dual : 0.0;
        const bool few = playing < many && playing <= count / one_in && (playing <= terms.very_few || playing > least);
        const Enough enough{bound > 0 ? bound * course.enough(habits) : 0.0, count};
        Index visited = 0;
        double earlier = 0;
        const Again again{habits.slow, habits.again, many};
        std::optional<StepBack> step_back;
        if (!Loss::shrinks && some >= 25) step_back.emplace(pass, rows.n, rows.d, work.before);
        pass.watched = !step_back;
        Sight seen = [&] {
            if constexpr (Loss::shrinks)
                if (few && !terms.hard)
                    return dual_cd_pass_among_few<Loss>(rows, pass, terms.very_few, again, course.tol * bound, enough, work, draws,
                                                        visited, earlier);
            return dual_cd_pass<Loss>(rows, pass, again, course.tol * bound, enough, work, draws, visited, earlier);
        }();
        if (step_back) seen.gap = step_back->take<Loss>(rows, pass, terms.live, count, some, draws);
        course.b = pass.b, course.s = pass.s;
        course.foresee_bias(pass.inverse_rho, playing == count);
        course.visited += visited, course.unseen += visited, visits += visited;
        if (course.unseen >= count) look_at_dual();  // it costs O(n): no more often than a pass's worth of rows
        course.judge(seen, earlier, pass.actives, habits, step_back.has_value());
        if (course.near <= course.goal && course.unseen) look_at_dual();  // the proof begins with it
        if (course.near <= course.goal && terms.exact)
            course.near = course.dual > 0 ? gap_of_all<Loss>(rows, pass, course.b, terms) / course.dual : inf;
        if (course.whole) {  // the caller was not content, or those in play are solved far better than others may be
            std::copy_n(terms.live, count, pass.active);
            pass.actives = count;
        }
        if (course.near <= course.goal || visits >= budget.visits || course.passes >= enough_passes) return playing;
    }
}

}  // namespace widemargin
