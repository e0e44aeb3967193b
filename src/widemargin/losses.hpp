// LOSS: φ(m) of the margin m = y(w·x + b), its conjugate, and the step it takes on one dual coordinate.
//
// Each loss is a struct of pure functions. `a = α/c` is a dual variable in units of its row's strength c, so that the
// dual problem reads  min ½‖Σ αᵢyᵢxᵢ‖² + Σ cᵢ φ*(−αᵢ/cᵢ).  losses.py states the same formulas in NumPy; the tests hold
// the two equal.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "elementary.hpp"

namespace widemargin {

inline constexpr double inf = std::numeric_limits<double>::infinity();

// φ, φ′ and φ″ at one margin.
struct Shape {
    double value, slope, curvature;
};

// Of each number of a vector and one number, or of two numbers.
template <class V>
V larger(V a, double b) {
    return a > b ? a : V{} + b;
}
template <class V>
V smaller(V a, double b) {
    return a < b ? a : V{} + b;
}
template <>
inline double larger(double a, double b) {
    return std::max(a, b);
}
template <>
inline double smaller(double a, double b) {
    return std::min(a, b);
}

// Losses whose conjugate is a quadratic on an interval: φ*(−a) = −kink·a + bend·a²/4, lower ≤ a ≤ upper.
// One coordinate of their dual is solved by one division and one clip.
template <int kink, int bend, bool lower_bounded, bool upper_bounded>
struct Quadratic {
    static constexpr bool shrinks = lower_bounded;

    static double lower() { return lower_bounded ? 0.0 : -inf; }
    static double upper(double c) { return upper_bounded ? c : inf; }

    static double conjugate(double a) {
        if (a < lower() || a > upper(1.0)) return inf;
        return conjugate_of_row(a, 1.0);
    }

    // V is a number or a vector of them. Where there is no bend there is no division, so c may be infinite.

    // cφ*(−α/c) for an α within its bounds.
    template <class V>
    static V conjugate_of_row(V alpha, double c) {
        if constexpr (bend == 0) return -kink * alpha;
        else return alpha * (bend * (alpha / c) / 4 - kink);
    }

    // d/dα of the dual objective, margin included: positive means that α wants to fall.
    template <class V>
    static V gradient(V alpha, V m, double c) {
        if constexpr (bend == 0) return m - kink;
        else return m - kink + bend * (alpha / c) / 2;
    }

    // d²/dα² of cφ*(−α/c).
    static double bend_of_row(double c) { return bend ? bend / c / 2 : 0.0; }

    // argmin over α' of ½q(α'−α)² + m(α'−α) + cφ*(−α'/c). With q = 0 (an empty row) and no bend it is an end of the box.
    template <class V>
    static V step(V alpha, V m, double q, double c) {
        const V g = gradient(alpha, m, c);
        V next = alpha - g * (1 / (q + bend_of_row(c)));  // the division need not wait for m
        if constexpr (lower_bounded) next = larger(next, 0.0);
        if constexpr (upper_bounded) next = smaller(next, c);
        return g == 0 ? alpha : next;
    }
};

// φ(m) = max(0, 1−m); at m = 1 the slope is 0.
struct Hinge : Quadratic<1, 0, true, true> {
    static constexpr const char* name = "hinge";
    template <class V>
    static V value(V m) {
        return m >= 1 ? V{} : 1 - m;
    }
    static double slope(double m) { return m < 1 ? -1.0 : 0.0; }
};

// φ(m) = max(0, 1−m)²; smooth, its second derivative jumps at m = 1.
struct SquaredHinge : Quadratic<1, 1, true, false> {
    static constexpr const char* name = "squared_hinge";
    template <class V>
    static V value(V m) {
        return m >= 1 ? V{} : (1 - m) * (1 - m);
    }
    static double slope(double m) { return m >= 1 ? 0.0 : -2 * (1 - m); }
    static Shape shape(double m) { return {value(m), slope(m), m < 1 ? 2.0 : 0.0}; }
};

// φ(m) = (1−m)², which is (w·x + b − y)² for y = ±1.
struct Squared : Quadratic<1, 1, false, false> {
    static constexpr const char* name = "squared";
    static double value(double m) { return (1 - m) * (1 - m); }
    static double slope(double m) { return -2 * (1 - m); }
    static Shape shape(double m) { return {value(m), slope(m), 2.0}; }
};

// φ(m) = max(0, −m); at m = 0 the slope is 0.
struct Perceptron : Quadratic<0, 0, true, true> {
    static constexpr const char* name = "perceptron";
    static double value(double m) { return m >= 0 ? 0.0 : -m; }
    static double slope(double m) { return m < 0 ? -1.0 : 0.0; }
};

// φ(m) = log(1 + e^−m) = −log σ(m);  φ*(−a) = a log a + (1−a) log(1−a).
struct Logistic {
    static constexpr const char* name = "logistic";
    static constexpr bool shrinks = false;

    static double sigmoid(double t) {
        const double e = std::exp(-std::abs(t)), high = 1 / (1 + e);
        return t >= 0 ? high : e * high;
    }
    static double value(double m) { return m > 0 ? std::log1p(std::exp(-m)) : std::log1p(std::exp(m)) - m; }
    static double slope(double m) { return -sigmoid(-m); }
    static Shape shape(double m) {
        const double e = exp_of_negative(-std::abs(m)), high = 1 / (1 + e), low = e * high;
        return {log1p_up_to_one(e) + std::max(0.0, -m), m > 0 ? -low : -high, low * high};
    }
    static double lower() { return 0.0; }
    static double upper(double c) { return c; }

    static double conjugate(double a) {
        if (a < 0 || a > 1) return inf;
        return (a > 0 ? a * std::log(a) : 0.0) + (a < 1 ? (1 - a) * std::log1p(-a) : 0.0);
    }

    // The smaller of α and c − α over the larger, and its logarithm. Rounding may put α on an end of its range, where that
    // would be infinite.
    static double odds(double alpha, double c) { return std::min(alpha, c - alpha) / std::max(alpha, c - alpha); }
    static double log_of_odds(double odds, double alpha, double c) {
        constexpr double tiny = 1e-300, eps = 1e-16;
        return log_of_positive(std::max(odds, alpha <= c - alpha ? tiny : eps));
    }

    // log(α/(c − α)).
    static double log_odds(double alpha, double c) {
        const double log = log_of_odds(odds(alpha, c), alpha, c);
        return alpha <= c - alpha ? log : -log;
    }

    // a log r − log(1 + r), where a is the smaller of the two shares and r = a/(1 − a): exactly 0 at both ends.
    static double conjugate_of_row(double alpha, double c) {
        const double r = odds(alpha, c);
        return std::min(alpha, c - alpha) * log_of_odds(r, alpha, c) - c * log1p_up_to_one(r);
    }

    static double gradient(double alpha, double m, double c) { return m + log_odds(alpha, c); }

    // argmin over α' of ½q(α'−α)² + m(α'−α) + cφ*(−α'/c), over c. In t = log(α'/(c−α')) the condition for it,
    // q(cσ(t) − α) + m + t = 0, rises with slope at least 1 and at most 1 + qc/4: Newton's method, from a guess on and with a
    // bisection where it would not stay strictly inside its shrinking bracket, cannot fail, and α' near 0 keeps all its digits.
    static double share_of_step(double alpha, double m, double q, double c, double guess) {
        double low = -m - q * (c - alpha), high = -m + q * alpha, t = std::clamp(guess, low, high);
        for (int k = 0; k < 120; ++k) {
            const double p = sigmoid(t), f = q * (c * p - alpha) + m + t;
            if (f == 0) break;
            (f > 0 ? high : low) = t;
            const double steepness = q * c * p * (1 - p), less = 1 / (1 + steepness), move = -f * less, next = t + move;
            const bool inside = next > low && next < high;
            if (inside && std::abs(move) <= 1e-3) {  // Halley's move, and σ after it: what is left is the cube of move
                const double halley = move * (1 - move * (0.5 - p) * steepness * less);
                return p * (1 + (1 - p) * halley * (1 + (0.5 - p) * halley));
            }
            const double middle = low + (high - low) / 2;
            if (!inside && !(middle > low && middle < high)) break;
            t = inside ? next : middle;
        }
        return sigmoid(t);
    }
};

// A coordinate's step in descent: where to, the slope of cφ*(−α/c) at α, and how much more than that it rises on the way.
struct Stride {
    double next, slope, lift;
};

// What of a step need not wait for the margin. It is made before the product with the row, whose waits it fills.
template <class Loss>
struct Ahead {
    double alpha, q, c;

    [[gnu::always_inline]] Stride step(double m) const {
        const double next = Loss::step(alpha, m, q, c), change = next - alpha;
        return {next, Loss::gradient(alpha, 0.0, c), Loss::bend_of_row(c) * change * change / 2};
    }
};

// A short step of the logistic loss takes no exponential: Chebyshev's from t = log(α/(c−α)), the root of the tangent
// corrected by the bend, and α' by the series of σ around t. It misses by less than 3 % of its own length, which is cut by four
// where that is cut by two, as long as c − α has digits to tell; what it rises more than by its slope is taken from the slopes at
// both ends.
template <>
struct Ahead<Logistic> {
    double alpha, q, c, share, t, spread, less, lean;

    [[gnu::always_inline]] Ahead(double alpha, double q, double c)
        : alpha(alpha), q(q), c(c), share(alpha / c), t(Logistic::log_odds(alpha, c)), spread(share * (1 - share)),
          less(1 / (1 + q * c * spread)), lean(q * c * spread * less * (0.5 - share)) {}

    [[gnu::always_inline]] Stride step(double m) const {
        const double tangent = -(m + t) * less, move = tangent * (1 - tangent * lean);
        if (!(std::abs(tangent) <= 0.7 && tangent * tangent * (1 - less) <= 0.05)) return far(m);
        const double change = c * spread * move * (1 + move * ((0.5 - share) + move * (1 - 6 * spread) / 6));
        return {alpha + change, t, change * move / 2};
    }

    // Seldom: not inlined, it leaves the registers to the others.
    [[gnu::noinline]] Stride far(double m) const {
        const double next = c * Logistic::share_of_step(alpha, m, q, c, t - (m + t) * less);
        return {next, t, Logistic::conjugate_of_row(next, c) - Logistic::conjugate_of_row(alpha, c) - (next - alpha) * t};
    }
};

// The shape at one margin without its last digit, many times faster where there is an exponential in it.
template <class Loss>
Shape quick_shape(double m) {
    if constexpr (requires { Loss::shape(m); }) return Loss::shape(m);
    else return {Loss::value(m), Loss::slope(m), 0.0};
}

using SmoothLosses = std::tuple<SquaredHinge, Logistic, Squared>;
using Losses = std::tuple<Hinge, SquaredHinge, Logistic, Squared, Perceptron>;

}  // namespace widemargin
