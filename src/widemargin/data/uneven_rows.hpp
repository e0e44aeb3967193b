// UNEVEN ROWS: walks over compressed rows that are short and all of different lengths.
//
// A loop over each row in turn is mispredicted wherever one ends, which takes longer than the row. So one loop goes through the
// numbers of several rows, another through these rows as if all were of the same length: that of a short one. A score's last bit
// may differ from that of the same row among rows that are not uneven, but does not depend on which rows are around it. Norms
// go row by row: they are kept in files, part by part.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "rows.hpp"

namespace widemargin {

inline constexpr Index short_row = 32, rows_at_once = 32, numbers_at_once = 1024;

// Calls together(first, last) for several rows at once, as many as have no more numbers than that, or alone(i).
// Rows follow each other without gaps.
template <class T, class I, class Together, class Alone>
[[gnu::always_inline]] inline void several_at_once(const Csr<T, I>& rows, Index begin, Index end, Together together,
                                                   Alone alone) {
    for (Index first = begin, last; first < end; first = last) {
        last = std::min(end, first + rows_at_once);
        while (last > first + 1 && rows.starts[last] - rows.starts[first] > numbers_at_once) --last;
        if (rows.starts[last] - rows.starts[first] <= numbers_at_once) together(first, last);
        else alone(first);
    }
}

// out[i] = w·xᵢ for begin ≤ i < end.
template <class T, class I>
[[gnu::always_inline]] inline void scores_of_uneven_rows(const Csr<T, I>& rows, Index begin, Index end, const double* w,
                                                         double* out) {
    using Bits = std::int64_t __attribute__((vector_size(sizeof(Four)), aligned(8)));
    static constexpr auto kept = [] {  // all bits of the first half, none of the second
        std::array<std::int64_t, 2 * short_row> bits{};
        for (std::size_t k = 0; k < short_row; ++k) bits[k] = -1;
        return bits;
    }();
    std::array<double, numbers_at_once + short_row> terms{};
    const auto together = [&](Index first, Index last) __attribute__((always_inline)) {
        const Index from = rows.starts[first], numbers = rows.starts[last] - from;
        for (Index k = 0; k < numbers; ++k)
            terms[static_cast<std::size_t>(k)] = w[rows.columns[from + k]] * static_cast<double>(rows.x[from + k]);
        for (Index i = first; i < last; ++i) {
            const double* const own = terms.data() + (rows.starts[i] - from);
            const Index length = rows.starts[i + 1] - rows.starts[i];
            if (length > short_row) {
                out[i] = sum_of_four<double>(0, length, [&](Index k) { return own[k]; });
                continue;
            }
            const std::int64_t* const mine = kept.data() + short_row - length;
            std::array<Four, 4> sums{};
            for (Index k = 0; k < short_row; k += 4)
                sums[static_cast<std::size_t>(k / 4 % 4)] +=
                    reinterpret_cast<Four>(reinterpret_cast<Bits>(four(own + k)) & *reinterpret_cast<const Bits*>(mine + k));
            const Four all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
            out[i] = (all[0] + all[1]) + (all[2] + all[3]);
        }
    };
    several_at_once(rows, begin, end, together, [&](Index i) { out[i] = rows.dot(i, w); });
}

// Calls visit(column, x, v[i]) for every number of the rows i, begin ≤ i < end; those with v = 0 may be left out.
template <class T, class I, class Visit>
[[gnu::always_inline]] inline void visit_uneven_rows(const Csr<T, I>& rows, Index begin, Index end, const double* v,
                                                     Visit visit) {
    std::array<double, numbers_at_once + short_row> factors;
    const auto alone = [&](Index i) {
        if (v[i] != 0) rows.each(i, [&](Index j, double x) { visit(j, x, v[i]); });
    };
    const auto together = [&](Index first, Index last) __attribute__((always_inline)) {
        if (2 * std::count(v + first, v + last, 0.0) > last - first) {
            for (Index i = first; i < last; ++i) alone(i);
            return;
        }
        const Index from = rows.starts[first], numbers = rows.starts[last] - from;
        for (Index i = first; i < last; ++i) {
            double* const own = factors.data() + (rows.starts[i] - from);
            std::fill_n(own, short_row, v[i]);  // what is too much, the next rows write over
            for (Index k = short_row, length = rows.starts[i + 1] - rows.starts[i]; k < length; ++k) own[k] = v[i];
        }
        for (Index k = 0; k < numbers; ++k)
            visit(rows.columns[from + k], static_cast<double>(rows.x[from + k]), factors[static_cast<std::size_t>(k)]);
    };
    several_at_once(rows, begin, end, together, alone);
}

}  // namespace widemargin
