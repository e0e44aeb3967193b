// SMO on a block of rows whose kernel matrix is at hand: max Σα − ½ΣΣ αᵢyᵢ k(i, j) yⱼαⱼ over 0 ≤ α ≤ c, Σ αᵢyᵢ = const.
//
// In eᵢ = yᵢ − Σⱼ αⱼyⱼ k(i, j): optimal when no row whose αᵢyᵢ may rise has a larger e than one whose αⱼyⱼ may fall. A step
// takes the row i of the largest e that may rise and the row j that promises the largest gain with it, (eᵢ − eⱼ)²/η with
// η = k(i, i) + k(j, j) − 2k(i, j), the first one where several do, and solves for the two exactly.
// Fan, Chen and Lin 2005.
#pragma once

#include <cmath>
#include <limits>
#include <vector>

#include "../../kernels/points.hpp"

namespace widemargin {

// The pair of rows whose η is smallest beside k(i, i) + k(j, j): below 0, the kernel is not positive semidefinite.
struct Curvature {
    Index i = -1, j = -1;
    double share = std::numeric_limits<double>::infinity();
};

// Vectors with as many elements as one of kernel values has: of doubles, of whole numbers as long, and of those as long as T.
template <class T>
struct Lanes;
template <>
struct Lanes<float> {
    typedef double Doubles __attribute__((vector_size(64)));
    typedef std::int64_t Longs __attribute__((vector_size(64)));
    typedef std::int32_t Places __attribute__((vector_size(32)));
};
template <>
struct Lanes<double> {
    typedef double Doubles __attribute__((vector_size(32)));
    typedef std::int64_t Longs __attribute__((vector_size(32)));
    typedef std::int64_t Places __attribute__((vector_size(32)));
};

template <class T>
class Block {
   public:
    template <class U>
    using Buffer = kernels::Buffer<U>;
    static constexpr Index lanes = kernels::kLanes<T>;
    static constexpr double inf = std::numeric_limits<double>::infinity();
    // Smaller curvatures are rounding, as a share of k(i, i) + k(j, j).
    static constexpr T least = 4 * std::numeric_limits<T>::epsilon();

    Index q = 0, width = 0;  // rows, and their number rounded up to whole vectors
    Buffer<T> k;             // q × width
    Buffer<double> alpha, e, c, y;
    Curvature worst;

    void resize(Index rows) {
        q = rows, width = (rows + lanes - 1) / lanes * lanes;
        const auto size = static_cast<std::size_t>(width);
        k.resize(static_cast<std::size_t>(q) * size);
        for (auto* one : {&alpha, &e, &c, &y}) one->assign(size, 0.0);
        own.assign(size, T(0));
        rise.assign(size, -inf), fall.assign(size, inf);
    }
    T* row(Index i) { return k.data() + i * width; }

    // Up to `most` steps, until the violation, largest e that may rise less smallest that may fall, is at most `tol`.
    Index run(Index most, double tol) {
        for (Index i = 0; i < q; ++i) own[static_cast<std::size_t>(i)] = row(i)[i], bounds(i);
        Index steps = 0;
        change(row(0), row(0), 0.0);
        for (; steps < most && violation() > tol; ++steps) {
            const Index i = highest_at;
            const Index j = partner(i);
            if (j < 0) break;
            const auto at = [](Index at) { return static_cast<std::size_t>(at); };
            const T bend = own[at(i)] + own[at(j)] - 2 * row(i)[j], floor = least * (std::abs(own[at(i)]) + std::abs(own[at(j)]));
            const double wanted = (e[at(i)] - e[at(j)]) / static_cast<double>(std::max({bend, floor, std::numeric_limits<T>::min()}));
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

    double violation() const { return highest - lowest; }
    Index last_i = -1, last_j = -1;  // of the last step
    double last_step = 0;

   private:
    using Wide = typename Lanes<T>::Doubles;
    using WidePlaces = typename Lanes<T>::Longs;
    using Narrow = kernels::Vector<T>;
    using Places = typename Lanes<T>::Places;

    Buffer<T> own;              // k(i, i)
    Buffer<double> rise, fall;  // 0 where αy may rise, else −∞; 0 where it may fall, else ∞
    double highest = 0, lowest = 0;
    Index highest_at = -1;

    void bounds(Index i) {
        const auto at = static_cast<std::size_t>(i);
        const bool below = alpha[at] < c[at], above = alpha[at] > 0;
        rise[at] = (y[at] > 0 ? below : above) ? 0.0 : -inf;
        fall[at] = (y[at] > 0 ? above : below) ? 0.0 : inf;
    }

    // e ← e − step·(kᵢ − kⱼ), and the largest e that may rise, the first of them, and the smallest that may fall.
    void change(const T* ki, const T* kj, double step) {
        Wide most = Wide{} - inf, least_fall = Wide{} + inf;
        WidePlaces place{}, here;
        for (Index l = 0; l < lanes; ++l) here[l] = l;
        for (Index at = 0; at < width; at += lanes) {
            Wide& value = *reinterpret_cast<Wide*>(e.data() + at);
            const Narrow with_i = *reinterpret_cast<const Narrow*>(ki + at), with_j = *reinterpret_cast<const Narrow*>(kj + at);
            const Wide now = value - step * (__builtin_convertvector(with_i, Wide) - __builtin_convertvector(with_j, Wide));
            value = now;
            const Wide up = now + *reinterpret_cast<const Wide*>(rise.data() + at);
            const Wide down = now + *reinterpret_cast<const Wide*>(fall.data() + at);
            const auto larger = up > most;
            most = larger ? up : most;
            place = larger ? here : place;
            least_fall = down < least_fall ? down : least_fall;
            here += lanes;
        }
        highest = -inf, lowest = inf, highest_at = -1;
        for (Index l = 0; l < lanes; ++l) {
            if (most[l] > highest || (most[l] == highest && place[l] < highest_at)) highest = most[l], highest_at = place[l];
            lowest = std::min(lowest, static_cast<double>(least_fall[l]));
        }
    }

    // The row j that promises the largest gain with i; −1 if there is none.
    Index partner(Index i) {
        const T own_i = own[static_cast<std::size_t>(i)];
        const T* const ki = row(i);
        Narrow most = Narrow{} - T(1), tightest = Narrow{} + T(2);
        Places place{}, here, tight{};
        for (Index l = 0; l < lanes; ++l) here[l] = static_cast<std::int32_t>(l);
        for (Index at = 0; at < width; at += lanes) {
            const Wide down = *reinterpret_cast<const Wide*>(e.data() + at) + *reinterpret_cast<const Wide*>(fall.data() + at);
            const Narrow apart = __builtin_convertvector(highest - down, Narrow);
            const Narrow with_i = *reinterpret_cast<const Narrow*>(ki + at), others = *reinterpret_cast<const Narrow*>(own.data() + at);
            const Narrow size = kernels::absolute(others) + std::abs(own_i) + std::numeric_limits<T>::min();
            const Narrow bend = own_i + others - 2 * with_i;
            const Narrow floor = least * size;
            const Narrow gain = apart > 0 ? apart * apart / (bend > floor ? bend : floor) : Narrow{} - T(1);
            const auto larger = gain > most;
            most = larger ? gain : most;
            place = larger ? here : place;
            const Narrow share = bend / size;
            const auto tighter = (share < tightest) & (apart > 0);
            tightest = tighter ? share : tightest;
            tight = tighter ? here : tight;
            here += static_cast<std::int32_t>(lanes);
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
