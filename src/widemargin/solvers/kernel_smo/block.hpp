// SMO on a block of rows whose kernel matrix is at hand: max Σα − ½ΣΣ αᵢyᵢ k(i, j) yⱼαⱼ over 0 ≤ α ≤ c, Σ αᵢyᵢ = const.
//
// In eᵢ = yᵢ − Σⱼ αⱼyⱼ k(i, j): optimal when no row whose αᵢyᵢ may rise has a larger e than one whose αⱼyⱼ may fall. A step
// takes the row i of the largest e that may rise and the row j that promises the largest gain with it, (eᵢ − eⱼ)²/η with
// η = k(i, i) + k(j, j) − 2k(i, j), the first one where several do, and solves for the two exactly.
// Fan, Chen and Lin 2005.
//
// e is kept in the precision of the kernel values: the caller computes it anew, in double precision, from the α it gets.
#pragma once

#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "../../kernels/points.hpp"

namespace widemargin {

inline constexpr Index kFewest = 64;     // rows; a smaller block is solved before it is copied
inline constexpr Index kShrinkings = 4;  // looks for inactive rows in as many steps as there are rows: a copy costs as much as some

// The pair of rows whose η is smallest beside k(i, i) + k(j, j): below 0, the kernel is not positive semidefinite.
struct Curvature {
    Index i = -1, j = -1;
    double share = std::numeric_limits<double>::infinity();
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

    Index q = 0, width = 0;  // rows, and the distance between two rows of the matrix
    T* k = nullptr;          // the matrix, which the caller owns; 0 beyond the q-th column
    Buffer<T> e;
    Buffer<double> alpha, c, y;
    Curvature worst;

    // Whole vectors, an odd number of them: elements of one column then lie in different sets of the caches.
    static Index width_of(Index rows) { return ((rows + lanes - 1) / lanes | 1) * lanes; }
    void resize(Index rows, T* matrix) {
        q = rows, width = width_of(rows), k = matrix;
        const auto size = static_cast<std::size_t>(width);
        for (auto* one : {&alpha, &c, &y}) one->assign(size, 0.0);
        e.assign(size, T(0)), own.assign(size, T(0));
        rise.assign(size, -inf), fall.assign(size, inf);
    }
    T* row(Index i) { return k + i * width; }

    // Up to `most` steps, until the violation, largest e that may rise less smallest that may fall, is at most `tol`.
    Index run(Index most, double tol) {
        for (Index i = 0; i < q; ++i) own[static_cast<std::size_t>(i)] = row(i)[i], bounds(i);
        Index steps = 0;
        change(row(0), row(0), 0.0);
        while (steps < most && violation() > tol) {
            const Index before = steps;
            steps += take_steps(std::min(most - steps, std::max<Index>(q / kShrinkings, 1)), tol);
            if (steps == before) break;
            if (steps < most && violation() > tol) steps += shrink_and_run(most - steps, tol);
        }
        return steps;
    }

    double violation() const { return static_cast<double>(highest) - static_cast<double>(lowest); }
    Index last_i = -1, last_j = -1;  // of the last step
    double last_step = 0;

   private:
    using Values = kernels::Vector<T>;
    using Whole = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
    using Places = kernels::Vector<Whole>;

    Buffer<T> own;         // k(i, i)
    Buffer<T> rise, fall;  // 0 where αy may rise, else −∞; 0 where it may fall, else ∞
    T highest = 0, lowest = 0;
    Index highest_at = -1;
    std::unique_ptr<Block> smaller;  // of the active rows
    Buffer<T> smaller_matrix;
    std::vector<Index> active;

    // Steps on the active rows alone, on a matrix of their own: those of the others are neither read nor brought up to
    // date before the end. A row at a bound is not active if no other violates the KKT conditions together with it.
    Index shrink_and_run(Index most, double tol) {
        active.clear();
        for (Index i = 0; i < q; ++i) {
            const auto at = static_cast<std::size_t>(i);
            if ((rise[at] == 0 && e[at] >= lowest) || (fall[at] == 0 && e[at] <= highest)) active.push_back(i);
        }
        const auto count = static_cast<Index>(active.size());
        if (count < kFewest || 4 * count > 3 * q) return 0;
        if (!smaller) smaller = std::make_unique<Block>();
        smaller_matrix.resize(static_cast<std::size_t>(count * width_of(count)));
        smaller->resize(count, smaller_matrix.data());
        smaller->worst = {};
        for (Index r = 0; r < count; ++r) {
            const auto from = static_cast<std::size_t>(active[static_cast<std::size_t>(r)]), to = static_cast<std::size_t>(r);
            smaller->alpha[to] = alpha[from], smaller->e[to] = e[from], smaller->c[to] = c[from], smaller->y[to] = y[from];
            const T* const here = row(static_cast<Index>(from));
            T* const there = smaller->row(r);
            for (Index k = 0; k < count; ++k) there[k] = here[active[static_cast<std::size_t>(k)]];
            std::fill(there + count, there + smaller->width, T(0));
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
        for (; steps < most && violation() > tol; ++steps) {
            const Index i = highest_at;
            const Index j = partner(i);
            if (j < 0) break;
            const auto at = [](Index at) { return static_cast<std::size_t>(at); };
            const T bend = own[at(i)] + own[at(j)] - 2 * row(i)[j], floor = least * (std::abs(own[at(i)]) + std::abs(own[at(j)]));
            const double eta = static_cast<double>(std::max({bend, floor, std::numeric_limits<T>::min()}));
            const double wanted = (static_cast<double>(e[at(i)]) - static_cast<double>(e[at(j)])) / eta;
            const double up = y[at(i)] > 0 ? c[at(i)] - alpha[at(i)] : alpha[at(i)];
            const double down = y[at(j)] > 0 ? alpha[at(j)] : c[at(j)] - alpha[at(j)];
            const double step = std::min({wanted, up, down});
            alpha[at(i)] = step < up ? alpha[at(i)] + y[at(i)] * step : (y[at(i)] > 0 ? c[at(i)] : 0.0);
            alpha[at(j)] = step < down ? alpha[at(j)] - y[at(j)] * step : (y[at(j)] > 0 ? 0.0 : c[at(j)]);
            bounds(i), bounds(j);
            last_i = i, last_j = j, last_step = step;
            change(row(i), row(j), step);
        }
        return steps;
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
        rise[at] = (y[at] > 0 ? below : above) ? T(0) : -inf;
        fall[at] = (y[at] > 0 ? above : below) ? T(0) : inf;
    }

    // e ← e − step·(kᵢ − kⱼ), and the largest e that may rise, the first of them, and the smallest that may fall.
    void change(const T* ki, const T* kj, double step) {
        Values most = Values{} - inf, least_fall = Values{} + inf;
        Places place{}, here = first();
        const T by = static_cast<T>(step);
        for (Index k = 0; k < width; k += lanes) {
            Values& value = *reinterpret_cast<Values*>(e.data() + k);
            const Values now = value - by * (at(ki + k) - at(kj + k));
            value = now;
            const Values up = now + at(rise.data() + k), down = now + at(fall.data() + k);
            const auto larger = up > most;
            most = larger ? up : most;
            place = larger ? here : place;
            least_fall = down < least_fall ? down : least_fall;
            here += static_cast<Whole>(lanes);
        }
        highest = -inf, lowest = inf, highest_at = -1;
        for (Index l = 0; l < lanes; ++l) {
            if (most[l] > highest || (most[l] == highest && place[l] < highest_at)) highest = most[l], highest_at = place[l];
            lowest = std::min(lowest, static_cast<T>(least_fall[l]));
        }
    }

    // The row j that promises the largest gain with i; −1 if there is none.
    Index partner(Index i) {
        const T own_i = own[static_cast<std::size_t>(i)];
        const T* const ki = row(i);
        Values most = Values{} - T(1), tightest = Values{} + T(2);
        Places place{}, here = first(), tight{};
        for (Index k = 0; k < width; k += lanes) {
            const Values apart = highest - (at(e.data() + k) + at(fall.data() + k));
            const Values others = at(own.data() + k);
            const Values size = kernels::absolute(others) + std::abs(own_i) + std::numeric_limits<T>::min();
            const Values bend = own_i + others - 2 * at(ki + k), floor = least * size;
            const Values gain = apart > 0 ? apart * apart / (bend > floor ? bend : floor) : Values{} - T(1);
            const auto larger = gain > most;
            most = larger ? gain : most;
            place = larger ? here : place;
            const Values share = bend / size;
            const auto tighter = (share < tightest) & (apart > 0);
            tightest = tighter ? share : tightest;
            tight = tighter ? here : tight;
            here += static_cast<Whole>(lanes);
        }
        T best = -1;
        Index at = -1;
        for (Index l = 0; l < lanes; ++l) {
            if (most[l] > best || (most[l] == best && most[l] >= 0 && place[l] < at)) best = most[l], at = place[l];
            if (static_cast<double>(tightest[l]) < worst.share) worst = {i, static_cast<Index>(tight[l]), static_cast<double>(tightest[l])};
        }
        return best < 0 ? -1 : at;
    }
};

}  // namespace widemargin
