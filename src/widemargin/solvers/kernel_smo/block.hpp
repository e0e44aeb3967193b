// SMO on a block of rows whose kernel matrix is at hand: max Σα − ½ΣΣ αᵢyᵢ k(i, j) yⱼαⱼ over 0 ≤ α ≤ c, Σ αᵢyᵢ = const.
//
// In eᵢ = yᵢ − Σⱼ αⱼyⱼ k(i, j): optimal when no row whose αᵢyᵢ may rise has a larger e than one whose αⱼyⱼ may fall. A step
// takes the row i of the largest e that may rise and the row j that promises the largest gain with it, (eᵢ − eⱼ)²/η with
// η = k(i, i) + k(j, j) − 2k(i, j), the first one where several do, and solves for the two exactly.
// Fan, Chen and Lin 2005. Where neither step nor row ends at a bound, the next step goes along a direction that is conjugate
// to the last one: Torres-Barrán, Alaíz and Dorronsoro 2021. At a large C that takes about six tenths of the steps.
//
// e is kept in the precision of the kernel values: the caller computes it anew, in double precision, from the α it gets.
#pragma once

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "../../kernels/memory.hpp"
#include "../../kernels/points.hpp"

namespace widemargin {

inline constexpr Index kFewest = 64;     // rows; a smaller block is solved before it is copied
inline constexpr std::size_t kPath = 16;     // rows of a conjugate direction, at most; 64 instead of 16 save at most 7 % of the steps
inline constexpr double kIndependent = 1e-3;  // share of a pair's curvature that is left of it; less is rounding, beside the last direction
inline constexpr Index kShrinkings = 2;  // how often, in as many steps as there are rows, inactive rows are looked for: copies of the rest take time

// The pair of rows whose η is smallest beside k(i, i) + k(j, j): below 0, the kernel is not positive semidefinite.
struct Curvature {
    Index i = -1, j = -1;
    double share = std::numeric_limits<double>::infinity();
};

// Numbers too small to be stored in full count as 0 while one of these is alive: arithmetic with them takes a hundred times
// as long, and kernel values of rows that are far apart are such numbers once they are multiplied.
class FlushToZero {
#if defined(__SSE2__)
   public:
    FlushToZero() { _mm_setcsr(before | 0x8040); }
    ~FlushToZero() { _mm_setcsr(before); }

   private:
    unsigned before = _mm_getcsr();
#endif
};

template <class T>
class Block {
   public:
    template <class U>
    using Buffer = kernels::Buffer<U>;
    static constexpr Index lanes = kernels::kLanes<T>;
    static constexpr T inf = std::numeric_limits<T>::infinity();
    // Smaller curvatures are rounding, as a share of k(i, i) + k(j, j).
    static constexpr T least = 4 * std::numeric_limits<T>::epsilon();

    Index q = 0, width = 0;  // rows, and those with what fills up the last vectors
    Buffer<T> e;
    Buffer<double> alpha, c, y;
    Curvature worst;
    bool conjugate = true;  // whether steps may go along conjugate directions

    // The kernel matrix of the rows, which the caller keeps.
    void set(const kernels::Table<T>& matrix) {
        k = &matrix, q = matrix.width, width = matrix.stride;
        const auto size = static_cast<std::size_t>(width);
        for (auto* one : {&alpha, &c, &y}) one->assign(size, 0.0);
        e.assign(size, T(0)), own.assign(size, T(0)), k_path.assign(size, T(0));
        bound.assign(size, nowhere);
    }

    // Up to `most` steps, until the violation, largest e that may rise less smallest that may fall, is at most `tol`.
    Index run(Index most, double tol) {
        const FlushToZero flush;
        for (Index i = 0; i < q; ++i) own[static_cast<std::size_t>(i)] = row(i)[i], bounds(i);
        Index steps = 0;
        change(row(0), row(0), 0.0);
        if (!active.empty() && violation() > tol) steps = run_active(most, tol);
        while (steps < most && violation() > tol) {
            const Index before = steps;
            steps += take_steps(std::min(most - steps, std::max<Index>(q / kShrinkings, 1)), tol);
            if (steps == before) break;
            if (steps < most && violation() > tol && shrink()) steps += run_active(most - steps, tol);
        }
        return steps;
    }
    // The rows that were active last; steps begin on them. Of another matrix there are none.
    const std::vector<std::int32_t>& active_rows() const { return active; }
    void activate(std::vector<std::int32_t> rows) { active = std::move(rows), copied = false; }

    double violation() const { return static_cast<double>(highest) - static_cast<double>(lowest); }

   private:
    using Values = kernels::Vector<T>;
    using Whole = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
    using Places = kernels::Vector<Whole>;

    const kernels::Table<T>* k = nullptr;
    const T* row(Index i) const { return k->row(i); }

    Buffer<T> own;         // k(i, i)
    Buffer<T> bound;       // of αy: 0 where it may rise and fall, 1 where it may rise only, −1 where it may fall only, else no number
    static constexpr T nowhere = std::numeric_limits<T>::quiet_NaN();
    T highest = 0, lowest = 0;
    Index highest_at = -1;
    std::unique_ptr<Block> smaller;  // of the active rows
    kernels::Table<T> smaller_matrix;
    std::vector<std::int32_t> active;

    bool copied = false;  // whether smaller_matrix is that of the active rows

    // Finds the active rows: one at a bound is not active if no other violates the KKT conditions together with it.
    // Returns whether there are so few that a matrix of their own pays.
    bool shrink() {
        std::vector<std::int32_t> now;
        for (Index i = 0; i < q; ++i) {
            const auto at = static_cast<std::size_t>(i);
            if ((bound[at] >= 0 && e[at] >= lowest) || (bound[at] <= 0 && e[at] <= highest)) now.push_back(static_cast<std::int32_t>(i));
        }
        const auto count = now.size();
        if (static_cast<Index>(count) < kFewest || 2 * static_cast<Index>(count) > q) return false;
        const bool as_before = 4 * count > 3 * active.size() && std::includes(active.begin(), active.end(), now.begin(), now.end());
        if (!as_before) activate(std::move(now));
        return true;
    }

    // Steps on the active rows alone, on a matrix of their own: those of the others are neither read nor brought up to
    // date before the end.
    Index run_active(Index most, double tol) {
        const auto count = static_cast<Index>(active.size());
        if (!smaller) smaller = std::make_unique<Block>();
        if (!copied) {
            smaller_matrix.resize(count, count);
            for (Index r = 0; r < count; ++r) {
                const T* const here = row(active[static_cast<std::size_t>(r)]);
                T* const there = smaller_matrix.row(r);
                for (Index k = 0; k < count; ++k) there[k] = here[active[static_cast<std::size_t>(k)]];
            }
            copied = true;
        }
        smaller->set(smaller_matrix), smaller->activate({}), smaller->worst = {}, smaller->conjugate = conjugate;
        for (Index r = 0; r < count; ++r) {
            const auto from = static_cast<std::size_t>(active[static_cast<std::size_t>(r)]), to = static_cast<std::size_t>(r);
            smaller->alpha[to] = alpha[from], smaller->e[to] = e[from], smaller->c[to] = c[from], smaller->y[to] = y[from];
        }
        const Index steps = smaller->run(most, tol);
        if (smaller->worst.share < worst.share) {
            worst = smaller->worst;
            worst.i = active[static_cast<std::size_t>(worst.i)], worst.j = active[static_cast<std::size_t>(worst.j)];
        }
        for (Index r = 0; r < count; ++r) {
            const Index i = active[static_cast<std::size_t>(r)];
            const auto from = static_cast<std::size_t>(r), to = static_cast<std::size_t>(i);
            const T by = static_cast<T>((smaller->alpha[from] - alpha[to]) * y[to]);
            alpha[to] = smaller->alpha[from], bounds(i);
            if (by == 0) continue;
            const T* const k = row(i);
#pragma omp simd
            for (Index j = 0; j < width; ++j) e[static_cast<std::size_t>(j)] -= by * k[j];
        }
        change(row(0), row(0), 0.0);
        return steps;
    }

    Index take_steps(Index most, double tol) {
        Index steps = 0;
        path.clear();
        for (; steps < most && violation() > tol; ++steps) {
            const Index i = highest_at;
            const Index j = partner(i);
            if (j < 0) break;
            const auto a = static_cast<std::size_t>(i), b = static_cast<std::size_t>(j);
            const T size = std::abs(own[a]) + std::abs(own[b]) + std::numeric_limits<T>::min(), curvature = own[a] + own[b] - 2 * row(i)[j];
            if (const auto share = static_cast<double>(curvature / size); share < worst.share) worst = {i, j, share};
            if (conjugate && curvature > least * size && conjugate_step(i, j, static_cast<double>(curvature))) continue;
            const double wanted = (static_cast<double>(e[a]) - static_cast<double>(e[b])) / static_cast<double>(std::max(curvature, least * size));
            const double up = y[a] > 0 ? c[a] - alpha[a] : alpha[a];
            const double down = y[b] > 0 ? alpha[b] : c[b] - alpha[b];
            const double step = std::min({wanted, up, down});
            alpha[a] = step < up ? alpha[a] + y[a] * step : (y[a] > 0 ? c[a] : 0.0);
            alpha[b] = step < down ? alpha[b] - y[b] * step : (y[b] > 0 ? 0.0 : c[b]);
            bounds(i), bounds(j);
            path.clear();
            if (step == wanted && curvature > least * size) path = {{i, 1.0}, {j, -1.0}}, path_curvature = static_cast<double>(curvature);
            change(row(i), row(j), step);
        }
        return steps;
    }

    // The last step's direction p, in αy, of the rows where it is not 0; pᵀKp; and Kp, which `change` keeps.
    struct Entry {
        Index row;
        double value;
    };
    std::vector<Entry> path, longer;
    double path_curvature = 0;
    Buffer<T> k_path;

    // A step along d − βp for the pair's direction d, with β such that K takes it to 0 with p: the gain of the last step is
    // not lost again. Not taken where there is no p, or where the step would end at a bound; p then begins anew.
    bool conjugate_step(Index i, Index j, double curvature) {
        if (path.empty() || path.size() + 2 > kPath) return false;
        const double with_path = static_cast<double>(k_path[static_cast<std::size_t>(i)]) - static_cast<double>(k_path[static_cast<std::size_t>(j)]);
        const double beta = with_path / path_curvature, own_curvature = curvature - beta * with_path;
        if (!(own_curvature > kIndependent * curvature)) return false;
        longer.clear();
        double of_i = 1, of_j = -1, slope = 0;
        for (const Entry& one : path) {
            const double value = -beta * one.value;
            if (one.row == i) of_i += value;
            else if (one.row == j) of_j += value;
            else longer.push_back({one.row, value});
        }
        longer.push_back({i, of_i}), longer.push_back({j, of_j});
        for (const Entry& one : longer) slope += one.value * static_cast<double>(e[static_cast<std::size_t>(one.row)]);
        const double step = slope / own_curvature;
        if (!(step > 0)) return false;
        for (const Entry& one : longer) {
            const auto at = static_cast<std::size_t>(one.row);
            const double by = step * one.value * y[at], now = alpha[at] + by;
            if (!(now > 0 && now < c[at])) return false;
        }
        for (const Entry& one : longer) {
            alpha[static_cast<std::size_t>(one.row)] += step * one.value * y[static_cast<std::size_t>(one.row)];
            bounds(one.row);
        }
        path.swap(longer), path_curvature = own_curvature;
        change(row(i), row(j), step, beta);
        return true;
    }

    static const Values& at(const T* from) { return *reinterpret_cast<const Values*>(from); }
    static Places first() {
        Places places;
        for (Index l = 0; l < lanes; ++l) places[l] = static_cast<Whole>(l);
        return places;
    }

    void bounds(Index i) {
        const auto at = static_cast<std::size_t>(i);
        const bool below = alpha[at] < c[at], above = alpha[at] > 0;
        bound[at] = below && above ? T(0) : !below && !above ? nowhere : below == (y[at] > 0) ? T(1) : T(-1);
    }

    // Kp ← kᵢ − kⱼ − β·Kp, e ← e − step·Kp, and the largest e that may rise, the first of them, and the smallest that may fall.
    void change(const T* ki, const T* kj, double step, double beta = 0) {
        Values most = Values{} - inf, least_fall = Values{} + inf;
        Places place{}, here = first();
        const T by = static_cast<T>(step), less = static_cast<T>(beta);
        for (Index k = 0; k < width; k += lanes) {
            Values& value = *reinterpret_cast<Values*>(e.data() + k);
            Values& product = *reinterpret_cast<Values*>(k_path.data() + k);
            const Values moved = at(ki + k) - at(kj + k) - less * product;
            const Values now = value - by * moved, side = at(bound.data() + k);
            product = moved, value = now;
            const auto larger = (side >= 0) & (now > most);
            most = larger ? now : most;
            place = larger ? here : place;
            least_fall = (side <= 0) & (now < least_fall) ? now : least_fall;
            here += static_cast<Whole>(lanes);
        }
        highest = -inf, lowest = inf, highest_at = -1;
        for (Index l = 0; l < lanes; ++l) {
            if (most[l] > highest || (most[l] == highest && place[l] < highest_at)) highest = most[l], highest_at = place[l];
            lowest = std::min(lowest, static_cast<T>(least_fall[l]));
        }
    }

    // The row j that promises the largest gain with i; −1 if there is none. Gains are compared without a division, which
    // would take as long as all the rest: a/b > c/d where a·d > c·b.
    Index partner(Index i) {
        const T own_i = own[static_cast<std::size_t>(i)], inverse = 1 / (highest - lowest);
        const T* const ki = row(i);
        Values most = Values{} - T(1), beside = Values{} + T(1);
        Places place{}, here = first();
        for (Index k = 0; k < width; k += lanes) {
            const Values apart = (highest - at(e.data() + k)) * inverse, others = at(own.data() + k);
            const Values curvature = own_i + others - 2 * at(ki + k);
            const Values floor = least * (kernels::absolute(others) + std::abs(own_i) + std::numeric_limits<T>::min());
            const Values over = curvature > floor ? curvature : floor, gain = apart * apart;
            const auto larger = (at(bound.data() + k) <= 0) & (apart > 0) & (gain * beside > most * over);
            most = larger ? gain : most;
            beside = larger ? over : beside;
            place = larger ? here : place;
            here += static_cast<Whole>(lanes);
        }
        T best = -1;
        Index at = -1;
        for (Index l = 0; l < lanes; ++l)
            if (const T gain = most[l] / beside[l]; gain > best || (gain == best && most[l] >= 0 && place[l] < at)) best = gain, at = place[l];
        return best < 0 ? -1 : at;
    }
};

}  // namespace widemargin
