// KERNEL FUNCTIONS: from Σ combine(aⱼ, bⱼ) over the columns, and one number per row, to k(a, b).
//
//   linear     a·b                                 rbf            exp(−γ‖a − b‖²)
//   poly       (γ a·b + coef0)^degree              laplacian      exp(−γ Σ|a − b|)
//   sigmoid    tanh(γ a·b + coef0)                 chi2           exp(−γ Σ (a − b)²/(a + b))
//   cosine     a·b/(‖a‖‖b‖)                        additive_chi2  −Σ (a − b)²/(a + b)
#pragma once

#include <bit>
#include <optional>
#include <string>
#include <string_view>

#include "../elementary.hpp"
#include "points.hpp"

namespace widemargin::kernels {

enum class Shape { linear, poly, rbf, sigmoid, cosine, laplacian, chi2, additive_chi2 };

struct Function {
    Shape shape;
    double gamma, coef0;
    int degree;
};

inline std::optional<Shape> shape_of(std::string_view name) {
    constexpr std::array<std::string_view, 8> names = {"linear", "poly",      "rbf",  "sigmoid",
                                                       "cosine", "laplacian", "chi2", "additive_chi2"};
    for (std::size_t k = 0; k < names.size(); ++k)
        if (names[k] == name) return static_cast<Shape>(k);
    return std::nullopt;
}

// Calls work(Combine{}) with the sum over the columns that this kernel asks for.
template <class Work>
void with_combine(Shape shape, Work&& work) {
    switch (shape) {
        case Shape::laplacian: return work(CommonPart{});
        case Shape::chi2:
        case Shape::additive_chi2: return work(HarmonicMean{});
        default: return work(InnerProduct{});
    }
}

// eˣ for x ≤ 0, to two units in the last place; below −87 it is that of −87.
[[gnu::always_inline]] inline float exp_of_negative(float x) {
    constexpr float whole = 0x1.8p23F;  // a sum with it ends in the whole number next to the other summand
    x = std::max(x, -87.0F);
    const float shifted = x * 0x1.715476p0F + whole, k = shifted - whole;
    const float r = (x - k * 0x1.62e4p-1F) - k * 0x1.7f7d1cp-20F;  // log 2 in two parts
    float series = 1.0F / 5040;
    for (const float a : {1.0F / 720, 1.0F / 120, 1.0F / 24, 1.0F / 6, 0.5F, 1.0F, 1.0F}) series = series * r + a;
    const auto power = (std::bit_cast<std::uint32_t>(shifted) << 23) + std::bit_cast<std::uint32_t>(1.0F);
    return series * std::bit_cast<float>(power);
}

template <class T>
[[gnu::always_inline]] inline T tanh_of(T z) {
    const T e = widemargin::kernels::exp_of_negative(-2 * std::abs(z));
    return std::copysign((1 - e) / (1 + e), z);
}
template <>
[[gnu::always_inline]] inline double tanh_of(double z) {
    const double e = widemargin::exp_of_negative(-2 * std::abs(z));
    return std::copysign((1 - e) / (1 + e), z);
}

template <class T>
[[gnu::always_inline]] inline T power_of(T base, int degree) {
    T result = 1;
    for (; degree; degree >>= 1, base *= base)
        if (degree & 1) result *= base;
    return result;
}

// Turns sums over the columns into kernel values, in place: of one row whose own number is `own`, with the `count` rows
// whose own numbers are `others`. `twice` is Combine::weight: a distance is own + other − weight·sum.
template <class T>
[[gnu::noinline]] inline void finish(const Function& f, T* s, Index count, T own, const T* others, int weight) {
    using widemargin::exp_of_negative, kernels::exp_of_negative;
    const T gamma = static_cast<T>(f.gamma), coef0 = static_cast<T>(f.coef0), twice = static_cast<T>(weight);
    switch (f.shape) {
        case Shape::linear: return;
        case Shape::rbf:
        case Shape::laplacian:
        case Shape::chi2:
#pragma omp simd
            for (Index c = 0; c < count; ++c) s[c] = exp_of_negative(-gamma * std::max(own + others[c] - twice * s[c], T(0)));
            return;
        case Shape::additive_chi2:
#pragma omp simd
            for (Index c = 0; c < count; ++c) s[c] = -std::max(own + others[c] - twice * s[c], T(0));
            return;
        case Shape::poly:
            for (Index c = 0; c < count; ++c) s[c] = gamma * s[c] + coef0;
            if (f.degree == 3) {
#pragma omp simd
                for (Index c = 0; c < count; ++c) s[c] = s[c] * s[c] * s[c];
            } else {
                for (Index c = 0; c < count; ++c) s[c] = power_of(s[c], f.degree);
            }
            return;
        case Shape::sigmoid:
#pragma omp simd
            for (Index c = 0; c < count; ++c) s[c] = tanh_of(gamma * s[c] + coef0);
            return;
        case Shape::cosine:
            for (Index c = 0; c < count; ++c) {
                const T size = std::sqrt(own) * std::sqrt(others[c]);
                s[c] = size > 0 ? s[c] / size : T(0);
            }
            return;
    }
}

// Calls use(from, to, values) for one chunk of the columns begin … end after another, with values[r·kChunk + c − from] =
// k(a, b) of the rows of one group and the rows c of a stretch that ends with `end` and begins with `begin`.
template <class T, class Use>
void values_of_group(const Function& f, const Groups<T>& groups, Index group, const Stretch<T>& stretch, Index begin, Index end,
                     Scratch<T>& scratch, Use&& use) {
    groups.enter(group, scratch);
    with_combine(f.shape, [&]<class Combine>(Combine) {
        for (Index from = begin; from < end; from += kChunk) {
            const Index to = std::min(end, from + kChunk);
            sums_of_group<Combine>(groups, group, stretch, from, to, scratch);
            for (Index r = 0; r < groups.rows(group); ++r)
                finish(f, scratch.sums.data() + r * kChunk, to - from, groups.self(group, r), stretch.rows().self.data() + from, Combine::weight);
            use(from, to, static_cast<const T*>(scratch.sums.data()));
        }
    });
    groups.leave(group, scratch);
}

// k(x, x) of the row whose own number is given.
template <class T>
T value_with_itself(const Function& f, T own) {
    T s = f.shape == Shape::laplacian || f.shape == Shape::chi2 || f.shape == Shape::additive_chi2 ? 2 * own : own;
    const int weight = f.shape == Shape::rbf ? 2 : 1;
    finish(f, &s, 1, own, &own, weight);
    return s;
}

// Points of X for this kernel, with their own numbers.
template <class T, class Rows>
Points<T> points_of(const Function& f, const Rows& rows, const Index* index, Index begin, Index end, const double* shift,
                    bool sparse) {
    Points<T> points;
    points.read(rows, index, begin, end, shift, sparse);
    with_combine(f.shape, [&]<class Combine>(Combine) { points.template measure<Combine>(); });
    return points;
}

}  // namespace widemargin::kernels
