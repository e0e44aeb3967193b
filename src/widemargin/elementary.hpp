// ELEMENTARY: exp and log where the logistic loss needs them, without branches: loops over them run in vectors.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

namespace widemargin {

// A sum with it ends in the whole number next to the other summand.
inline constexpr double to_whole = 0x1.8p52;

// log 2 in two parts, the first with so few digits that whole multiples of it are exact.
inline constexpr double log2_first = 0x1.62e42fefa3800p-1, log2_rest = 0x1.ef35793c76730p-45;

// Σ aₖxᵏ.
template <std::size_t N>
[[gnu::always_inline]] inline double polynomial(const std::array<double, N>& a, double x) {
    double sum = a[N - 1];
    for (std::size_t k = N - 1; k-- > 0;) sum = sum * x + a[k];
    return sum;
}

// eˣ for x ≤ 0, to two units in the last place; below −700 it is that of −700. With x = k log 2 + r and |r| ≤ log(2)/2
// it is 2ᵏeʳ: eʳ by its power series, 2ᵏ by writing k where a double has its exponent.
[[gnu::always_inline]] inline double exp_of_negative(double x) {
    constexpr std::array<double, 14> series = [] {
        std::array<double, 14> a{1.0};
        for (std::size_t k = 1; k < a.size(); ++k) a[k] = a[k - 1] / static_cast<double>(k);
        return a;
    }();
    x = std::max(x, -700.0);
    const double shifted = x * 0x1.71547652b82fep0 + to_whole, k = shifted - to_whole;
    const double r = (x - k * log2_first) - k * log2_rest;
    const auto power = (std::bit_cast<std::uint64_t>(shifted) << 52) + std::bit_cast<std::uint64_t>(1.0);
    return polynomial(series, r) * std::bit_cast<double>(power);
}

// log(1 + x) for 0 ≤ x ≤ 1, to two units in the last place: 2 artanh(s) with s = x/(2 + x) ≤ 1/3.
[[gnu::always_inline]] inline double log1p_up_to_one(double x) {
    constexpr std::array<double, 17> series = [] {
        std::array<double, 17> a{};
        for (std::size_t k = 0; k < a.size(); ++k) a[k] = 2.0 / static_cast<double>(2 * k + 1);
        return a;
    }();
    const double s = x / (2 + x);
    return s * polynomial(series, s * s);
}

// log x for x from the smallest normal number on, to two units in the last place: x = 2ᵏf with f between √½ and √2, and
// log f = 2 artanh(s) with s = (f − 1)/(f + 1) ≤ 0.172.
[[gnu::always_inline]] inline double log_of_positive(double x) {
    constexpr std::array<double, 11> series = [] {
        std::array<double, 11> a{};
        for (std::size_t k = 0; k < a.size(); ++k) a[k] = 2.0 / static_cast<double>(2 * k + 1);
        return a;
    }();
    const auto bits = std::bit_cast<std::int64_t>(x);
    const std::int64_t power = (bits - std::bit_cast<std::int64_t>(0x1.6a09e667f3bcdp-1)) >> 52;
    const double k = std::bit_cast<double>(std::bit_cast<std::int64_t>(to_whole) + power) - to_whole;
    const double f = std::bit_cast<double>(bits - (power << 52)), s = (f - 1) / (f + 1);
    return k * log2_first + (s * polynomial(series, s * s) + k * log2_rest);
}

}  // namespace widemargin
