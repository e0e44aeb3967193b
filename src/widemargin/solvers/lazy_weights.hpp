// LAZY WEIGHTS: w = scale·v. Shrinking w costs O(1), moving it along a row the row's non-zeros, whatever d is.
//
// With an average: the sum of w over all steps so far is mass·v − missed, for the price of a second move along the row.
// With dual variables: the same scale and the same sum serve α, where w = Σ αᵢyᵢxᵢ.
#pragma once

#include <algorithm>
#include <cmath>

#include "../data/rows.hpp"

namespace widemargin {

struct LazyWeights {
    double *v, *v_missed;  // d each
    double *a, *a_missed;  // n each: α = scale·a. All but v may be null
    Index d, n;
    double scale, mass, b, b_sum;
    double square = 0;  // ‖v‖², kept up to date by those who project

    template <class Rows>
    double score(const Rows& rows, Index i) const {
        return scale * rows.dot(i, v) + b;
    }

    void shrink(double factor) {
        scale *= factor;
        // v grows as the scale falls, and the sum would lose the digits by which it is larger than w.
        if (std::abs(scale) < 1e-4) fold();
    }

    // w += change·xᵢ, αᵢ += |change| with the sign of yᵢ taken off.
    template <class Rows>
    void move(const Rows& rows, Index i, double y, double change) {
        const double step = change / scale;
        rows.add(i, step * y, v);
        if (v_missed) rows.add(i, mass * step * y, v_missed);
        if (a) a[i] += step;
        if (a_missed) a_missed[i] += mass * step;
    }

    // Cuts w back into the ball of that radius.
    void project(double radius) {
        const double norm = std::abs(scale) * std::sqrt(square);
        if (norm > radius) shrink(radius / norm);
    }

    void end_of_step() {
        mass += scale;
        b_sum += b;
    }

    void fold() {
        fold(v, v_missed, d);
        fold(a, a_missed, n);
        square *= scale * scale;
        scale = 1;
        mass = 0;
    }

    void fold(double* x, double* missed, Index size) const {
        if (missed)
            for (Index j = 0; j < size; ++j) missed[j] -= mass * x[j];
        if (x)
            for (Index j = 0; j < size; ++j) x[j] *= scale;
    }
};

}  // namespace widemargin
