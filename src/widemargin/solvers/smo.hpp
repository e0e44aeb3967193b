// SMO: max Σα − ½‖Σ αᵢyᵢxᵢ‖² over 0 ≤ α ≤ c, Σ αᵢyᵢ = 0, two coordinates at a time.
//
// In f = y − Xw: optimal when no row whose αᵢyᵢ may rise has a larger f than one whose αⱼyⱼ may fall. A step takes the row
// i of the largest f that may rise, the row j that promises the largest gain with it, and solves for the two exactly.
// Without a bias there is no Σ αᵢyᵢ = 0, and a step is the single coordinate of the largest gain.
// Platt 1998; Fan, Chen and Lin 2005.
#pragma once

#include <algorithm>
#include <cmath>

#include "../data/rows.hpp"
#include "../losses.hpp"

namespace widemargin {

struct Smo {
    const double *y, *c, *norms;
    double *alpha, *f;
    Index n;
    bool may_rise(Index i) const { return y[i] > 0 ? alpha[i] < c[i] : alpha[i] > 0; }
    bool may_fall(Index i) const { return y[i] > 0 ? alpha[i] > 0 : alpha[i] < c[i]; }
    // How far αᵢyᵢ may rise, or fall.
    double room_up(Index i) const { return y[i] > 0 ? c[i] - alpha[i] : alpha[i]; }
    double room_down(Index i) const { return y[i] > 0 ? alpha[i] : c[i] - alpha[i]; }
};

// Columns Xxᵢ of the Gram matrix, the last `slots` of them kept.
struct Columns {
    double *values, *spread;  // slots × n; d zeros to work in
    Index *owner, *place;     // which row a slot belongs to, which slot a row has (−1: none)
    Index slots;
    Index* next;

    // The slot for a new column: the oldest, unless it is the one in use.
    Index free_slot(Index in_use) {
        Index slot = *next;
        if (owner[slot] >= 0 && owner[slot] == in_use) slot = (slot + 1) % slots;
        *next = (slot + 1) % slots;
        if (owner[slot] >= 0) place[owner[slot]] = -1;
        return slot;
    }

    template <class Rows>
    const double* get(const Rows& rows, Index i, Index in_use) {
        if (place[i] < 0) {
            const Index slot = free_slot(in_use);
            owner[slot] = i;
            place[i] = slot;
            double* column = values + slot * rows.n;
            rows.each(i, [&](Index j, double x) { spread[j] = x; });
            for (Index k = 0; k < rows.n; ++k) column[k] = rows.dot(k, spread);
            rows.each(i, [&](Index j, double) { spread[j] = 0; });
        }
        return values + place[i] * rows.n;
    }
};

// Rows as good as equal differ by rounding: this share of their norms.
inline constexpr double least_bend = 1e-15;

// A pair step; false if the largest violation is at most tol, which comes back in `violation`.
template <class Rows>
bool smo_pair(const Rows& rows, Smo& p, Columns& columns, double tol, double& violation) {
    Index i = -1;
    double highest = -inf, lowest = inf;
    for (Index k = 0; k < p.n; ++k) {
        if (p.f[k] > highest && p.may_rise(k)) highest = p.f[k], i = k;
        if (p.f[k] < lowest && p.may_fall(k)) lowest = p.f[k];
    }
    violation = std::max(highest - lowest, 0.0);
    if (i < 0 || !(violation > tol)) return false;
    // The last pair's f are equal but for rounding: then the first of them.
    const double tie = violation > 1e-7 ? 1e-10 : 0;
    for (Index k = 0; k < i; ++k)
        if (p.f[k] >= highest - tie && p.may_rise(k)) i = k;
    highest = p.f[i];
    const double* with_i = columns.get(rows, i, -1);
    Index j = -1;
    double most = -inf, bend_of_most = 0;
    for (Index k = 0; k < p.n; ++k) {
        const double apart = highest - p.f[k];
        if (!(apart > 0) || !p.may_fall(k)) continue;
        const double bend = std::max(p.norms[i] + p.norms[k] - 2 * with_i[k], least_bend * (p.norms[i] + p.norms[k]));
        if (apart * apart / bend > most) most = apart * apart / bend, j = k, bend_of_most = bend;
    }
    if (j < 0) return false;  // nothing but overflow
    const double* with_j = columns.get(rows, j, i);
    with_i = columns.get(rows, i, j);
    const double wanted = (highest - p.f[j]) / bend_of_most, up = p.room_up(i), down = p.room_down(j);
    const double step = std::min({wanted, up, down});
    p.alpha[i] = step < up ? p.alpha[i] + p.y[i] * step : (p.y[i] > 0 ? p.c[i] : 0.0);
    p.alpha[j] = step < down ? p.alpha[j] - p.y[j] * step : (p.y[j] > 0 ? 0.0 : p.c[j]);
#pragma omp simd
    for (Index k = 0; k < p.n; ++k) p.f[k] -= step * (with_i[k] - with_j[k]);
    return true;
}

// A step on one coordinate, for the dual without Σ αᵢyᵢ = 0.
template <class Rows>
bool smo_single(const Rows& rows, Smo& p, Columns& columns, double tol, double& violation) {
    Index i = -1;
    double most = 0, next = 0;
    violation = 0;
    for (Index k = 0; k < p.n; ++k) {
        const double pull = p.y[k] * p.f[k];  // how much the dual rises with αₖ
        if ((pull > 0 && p.alpha[k] >= p.c[k]) || (pull < 0 && p.alpha[k] <= 0)) continue;
        violation = std::max(violation, std::abs(pull));
        const double bend = p.norms[k];
        const double to = std::clamp(p.alpha[k] + pull / bend, 0.0, p.c[k]), change = to - p.alpha[k];
        const double gain = change * (pull - bend * change / 2);
        if (gain > most) most = gain, i = k, next = to;
    }
    if (i < 0 || !(violation > tol)) return false;
    const double* column = columns.get(rows, i, -1);
    const double change = (next - p.alpha[i]) * p.y[i];
    p.alpha[i] = next;
#pragma omp simd
    for (Index k = 0; k < p.n; ++k) p.f[k] -= change * column[k];
    return true;
}

// Up to `count` steps; returns how many were taken.
template <class Rows>
[[gnu::noinline]] Index smo_steps(const Rows& rows, Smo& problem, Columns& columns, bool bias, Index count, double tol,
                                  double& violation) {
    for (Index t = 0; t < count; ++t)
        if (!(bias ? smo_pair(rows, problem, columns, tol, violation) : smo_single(rows, problem, columns, tol, violation)))
            return t;
    return count;
}

}  // namespace widemargin
