// COURSE: what dual coordinate descent makes of what a pass saw: which rows leave, when all come back, when to claim a gap.
#pragma once

#include <algorithm>
#include <cmath>

#include "../data/rows.hpp"
#include "../losses.hpp"

namespace widemargin {

// What a pass saw on its way.
struct Sight {
    double gap = 0;                         // Σ of each row's Fenchel–Young gap when it was visited
    double largest = -inf, smallest = inf;  // of the gradients of rows that may still move
    Index slow = 0;                         // how many of these were marked as slow to settle

    double worst() const { return std::max(largest, -smallest); }
};

// When rows leave, come back and are visited again; dual_cd.py says why.
struct Habits {
    double bold, shy, rough, least_return, worth, most_return, slow, near;
    Index again;
};

// Where descent stands after a pass, and what it makes of what the pass saw.
struct Course {
    double goal = 0, tol = 0;      // the relative gap to reach, and the one to believe: it falls when a proof failed
    double b = 0, s = 0, dual = 0;  // the bias, Σ αᵢyᵢ, and the dual when it was last looked at
    double last_s = 0;              // Σ αᵢyᵢ after the pass before, if b was moved by it
    double worst = inf, above = inf, below = -inf;  // the largest gradient, and those from which on rows leave
    double gap = inf, near = inf;                   // as the last pass saw it, and the relative gap that this suggests
    double before = inf, whole_claim = inf;         // relative gaps: of the last pass, of the last over all rows
    double returns = 0;  // the share of the whole gap at which it was worth the last time that all rows come back
    bool whole = true;      // whether the next pass is over all rows
    bool narrowed = false;  // whether the last one was not
    bool trusted = true;    // whether the gap may be thought to have fallen since it was seen: never again after that was wrong
    bool doubted = false;   // whether the caller was told of a gap that would do, and will have seen for himself
    Index passes = 0, visited = 0, unseen = 0;  // `unseen` since the dual was looked at

    // From one pass over all rows to the next Σ αᵢyᵢ falls by much the same share, and b, which moves by s/ρ each time, comes
    // to the sum of a geometric series: every other time it goes there at once, or most of the way.
    void foresee_bias(double inverse_rho, bool all_rows) {
        const double share = last_s != 0 ? std::min(s / last_s, 0.8) : 0.0;
        const bool falls = all_rows && share > 0;
        if (falls) b += s * inverse_rho * share / (1 - share);
        last_s = falls || !all_rows ? 0.0 : s;
    }

    // The relative gap of the rows in play at which all others come back.
    double enough(const Habits& habits) const { return std::max(tol, std::max(returns, habits.least_return) * whole_claim); }

    // After a pass that saw this, with `earlier` the gap of the one before it, over rows of which `left` stay in play; `present`
    // if it saw the gap as it is now.
    void judge(const Sight& seen, double earlier, Index left, const Habits& habits, bool present = false) {
        gap = std::abs(seen.gap);
        worst = seen.worst();
        const double claim = dual > 0 ? gap / dual : inf;
        if (earlier > 0 && dual > 0) before = earlier / dual;
        // The gaps were seen before the visits that shrank them: by now they have fallen as they did from the last time.
        const bool falls = before > 0 && before < inf && trusted && !present;
        const double now = claim * (falls ? std::clamp(claim / before, 0.1, 1.0) : 1.0);
        before = present ? inf : claim;
        near = (present ? goal / tol : habits.near) * now;  // what some rows suggest is doubted the more often it was wrong
        const double share = claim > habits.rough ? habits.bold : habits.shy;
        above = seen.largest > 0 ? share * seen.largest : inf;
        below = seen.smallest < 0 ? share * seen.smallest : -inf;
        if (whole) {  // and so was the pass that was just made
            if (narrowed) returns = std::clamp(habits.worth * claim / whole_claim, habits.least_return, habits.most_return);
            whole_claim = claim;
        }
        narrowed = !whole;
        whole = near <= tol || claim <= enough(habits) || left == 0;
        doubted = claim <= tol;
        if (doubted) tol *= present ? 0.5 : 0.8;  // if there is a next pass, the caller was not content with this one
        else if (now <= tol) trusted = false;
    }
};

}  // namespace widemargin
