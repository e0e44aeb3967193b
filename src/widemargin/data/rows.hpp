// ROWS: one way to walk over the rows of X, whatever X is made of.
//
// A kernel is written once against `dot`, `square`, `add` and `each` (from a given non-zero on); the storage is chosen at
// compile time. Sums run in double precision whatever the storage, so float32 data trains as accurately as its values allow.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace widemargin {

using Index = std::int64_t;

// How many cache lines numbers of that size take up, so many of them as rows have on average; not all of very many: the
// machine's own prefetcher follows. The same for all rows, since a loop of another length for each would be mispredicted.
template <class T>
Index lines_of(Index numbers, Index rows) {
    constexpr Index line = 64, most = 16;
    return std::clamp<Index>(numbers / std::max<Index>(rows, 1) * Index{sizeof(T)} / line + 2, 2, most);
}

// Asks for so many cache lines, for the second level: the first is the weights', and takes in the line at hand by itself.
// Always inlined: a function that does nothing but prefetch looks useless to the compiler, which would drop the call.
[[gnu::always_inline]] inline void fetch_lines(const void* begin, Index lines) {
    const auto first = reinterpret_cast<std::uintptr_t>(begin);
    for (Index k = 0; k < lines; ++k)
        __builtin_prefetch(reinterpret_cast<const void*>(first + 64 * static_cast<std::uintptr_t>(k)), 0, 2);
}

using Four = double __attribute__((vector_size(4 * sizeof(double)), aligned(8)));

[[gnu::always_inline]] inline Four four(const double* x) { return *reinterpret_cast<const Four*>(x); }
[[gnu::always_inline]] inline Four four(const float* x) { return Four{x[0], x[1], x[2], x[3]}; }

// Σ aⱼbⱼ in four running sums of four: the additions of one would wait for each other longer than for memory.
template <class A, class B>
[[gnu::always_inline]] inline double sum_of_products(const A* a, const B* b, Index d) {
    Four s0 = {}, s1 = {}, s2 = {}, s3 = {};
    Index j = 0;
    for (; j + 16 <= d; j += 16) {
        s0 += four(a + j) * four(b + j);
        s1 += four(a + j + 4) * four(b + j + 4);
        s2 += four(a + j + 8) * four(b + j + 8);
        s3 += four(a + j + 12) * four(b + j + 12);
    }
    for (; j + 4 <= d; j += 4) s0 += four(a + j) * four(b + j);
    double rest = 0;
    for (; j < d; ++j) rest += static_cast<double>(a[j]) * static_cast<double>(b[j]);
    const Four sums = (s0 + s1) + (s2 + s3);
    return (sums[0] + sums[1]) + (sums[2] + (sums[3] + rest));
}

// Σ of term(k) in four running sums, for the same reason.
template <class Sum, class Term>
[[gnu::always_inline]] inline Sum sum_of_four(Index k, Index end, Term term) {
    Sum s0{}, s1{}, s2{}, s3{};
    for (; k + 4 <= end; k += 4) {
        s0 += term(k);
        s1 += term(k + 1);
        s2 += term(k + 2);
        s3 += term(k + 3);
    }
    if (k < end) s0 += term(k);
    if (k + 1 < end) s1 += term(k + 1);
    if (k + 2 < end) s2 += term(k + 2);
    return (s0 + s1) + (s2 + s3);
}

// Dense rows whose elements lie side by side (C order).
template <class T>
struct Contiguous {
    const T* x;
    Index n, d, stride, lines = lines_of<T>(d, 1);

    [[gnu::always_inline]] double dot(Index i, const double* w) const { return sum_of_products(w, x + i * stride, d); }
    double square(Index i) const { return sum_of_products(x + i * stride, x + i * stride, d); }

    template <class Sum, class Term>
    [[gnu::always_inline]] Sum sum(Index i, Term term) const {
        const T* row = x + i * stride;
        return sum_of_four<Sum>(0, d, [&](Index j) { return term(j, static_cast<double>(row[j])); });
    }

    void add(Index i, double scale, double* w) const {
        const T* row = x + i * stride;
#pragma omp simd
        for (Index j = 0; j < d; ++j) w[j] += scale * static_cast<double>(row[j]);
    }

    [[gnu::always_inline]] void fetch_start(Index) const {}
    [[gnu::always_inline]] void fetch_pages(Index i) const { __builtin_prefetch(x + i * stride); }
    [[gnu::always_inline]] void fetch(Index i) const { fetch_lines(x + i * stride, lines); }

    template <class Visit>
    void each(Index i, Visit visit, Index from = 0) const {
        const T* row = x + i * stride;
        for (Index j = from; j < d; ++j) visit(j, static_cast<double>(row[j]));
    }
};

// Dense rows of any strides (F order, slices). Neighbouring rows share cache lines: walk them in blocks.
template <class T>
struct Strided {
    const T* x;
    Index n, d, row_stride, column_stride;

    [[gnu::always_inline]] double dot(Index i, const double* w) const {
        return sum<double>(i, [&](Index j, double value) { return w[j] * value; });
    }

    double square(Index i) const {
        return sum<double>(i, [](Index, double value) { return value * value; });
    }

    template <class Sum, class Term>
    [[gnu::always_inline]] Sum sum(Index i, Term term) const {
        Sum total{};
        each(i, [&](Index j, double value) { total += term(j, value); });
        return total;
    }

    void add(Index i, double scale, double* w) const {
        each(i, [&](Index j, double value) { w[j] += scale * value; });
    }

    // Its elements lie on too many lines to fetch.
    [[gnu::always_inline]] void fetch_start(Index) const {}
    [[gnu::always_inline]] void fetch_pages(Index) const {}
    [[gnu::always_inline]] void fetch(Index) const {}

    template <class Visit>
    void each(Index i, Visit visit, Index from = 0) const {
        const T* element = x + i * row_stride + from * column_stride;
        for (Index j = from; j < d; ++j, element += column_stride) visit(j, static_cast<double>(*element));
    }
};

// Whether rows are short on average, and mostly followed by one of another length, judged by some of them. `starts` may be
// anything.
template <class I>
bool are_uneven(const I* starts, Index n) {
    using Unsigned = std::make_unsigned_t<I>;
    constexpr Index most = 24, sample = 256;
    const Index pairs = std::min(n - 1, sample);
    if (pairs < 1 || starts[n] > most * n) return false;
    Index different = 0;
    for (Index k = 0; k < pairs; ++k) {
        const I* const start = starts + (n - 1) * k / pairs;
        const auto length = [start](int k) { return static_cast<Unsigned>(start[k + 1]) - static_cast<Unsigned>(start[k]); };
        different += length(0) != length(1);
    }
    return 2 * different > pairs;
}

// Compressed sparse rows with indices of 32 or 64 bits, ascending within a row. Row i is from starts[i] to
// ends[i].
template <class T, class I>
struct Csr {
    const T* x;
    const I* columns;
    const I* starts;
    Index n, d, lines = lines_of<T>(starts[n], n), column_lines = lines_of<I>(starts[n], n);
    const I* ends = starts + 1;
    bool uneven = are_uneven(starts, n);

    [[gnu::always_inline]] double dot(Index i, const double* w) const {
        return sum<double>(i, [&](Index j, double value) { return w[j] * value; });
    }

    double square(Index i) const {
        return sum<double>(i, [](Index, double value) { return value * value; });
    }

    template <class Sum, class Term>
    [[gnu::always_inline]] Sum sum(Index i, Term term) const {
        return sum_of_four<Sum>(starts[i], ends[i], [&](Index k) { return term(columns[k], static_cast<double>(x[k])); });
    }

    // Four at a time: no column comes twice, so what is read need not wait for what is written.
    void add(Index i, double scale, double* w) const {
        Index k = starts[i];
        const Index end = ends[i];
        for (; k + 4 <= end; k += 4) {
            double sums[4];
            for (Index j = 0; j < 4; ++j) sums[j] = w[columns[k + j]] + scale * static_cast<double>(x[k + j]);
            for (Index j = 0; j < 4; ++j) w[columns[k + j]] = sums[j];
        }
        for (; k < end; ++k) w[columns[k]] += scale * static_cast<double>(x[k]);
    }

    [[gnu::always_inline]] void fetch_start(Index i) const { __builtin_prefetch(starts + i); }
    [[gnu::always_inline]] void fetch_pages(Index i) const {
        __builtin_prefetch(x + starts[i]);
        __builtin_prefetch(columns + starts[i]);
    }
    [[gnu::always_inline]] void fetch(Index i) const {
        fetch_lines(x + starts[i], lines);
        fetch_lines(columns + starts[i], column_lines);
    }

    template <class Visit>
    void each(Index i, Visit visit, Index from = 0) const {
        for (Index k = starts[i] + from, end = ends[i]; k < end; ++k) visit(columns[k], static_cast<double>(x[k]));
    }
};

// A list of rows in the order of their visit: the blocks order[begin] … order[end − 1] of 2^shift neighbours each.
struct Blocks {
    const Index *list, *order;
    Index begin, end, count;  // `count` rows in the list: the last of its blocks may be shorter
    int shift;

    // Visits are numbered from first() to last(); where a short block has no row any more, the position is behind the list.
    Index first() const { return begin << shift; }
    Index last() const { return end << shift; }
    [[gnu::always_inline]] Index position(Index visit) const {
        const Index within = (Index{1} << shift) - 1;
        return (order[visit >> shift] << shift) + (visit & within);
    }
};

// Visits the positions of the visits `from` … `to` − 1; brings closer what belongs to each, and then its row, some visits
// before its own.
template <class Numbers, class Row, class Visit>
[[gnu::always_inline]] inline void walk_ahead(const Blocks& blocks, Index from, Index to, Numbers fetch_numbers, Row fetch_row,
                                              Visit visit) {
    constexpr Index of_list = 20, of_numbers = 10, of_row = 5;
    const Index last = blocks.last(), count = blocks.count;
    const auto ahead = [&](Index at, auto fetch) __attribute__((always_inline)) {
        if (at >= last) return;
        if (const Index position = blocks.position(at); position < count) fetch(position);
    };
    const auto fetch_list = [&](Index position) __attribute__((always_inline)) { __builtin_prefetch(blocks.list + position); };
    for (Index at = from; at < to; ++at) {
        ahead(at + of_list, fetch_list);
        ahead(at + of_numbers, fetch_numbers);
        ahead(at + of_row, fetch_row);
        if (const Index position = blocks.position(at); position < count) visit(position);
    }
}

// Brings the rows drawn next closer, in three stages, each of which needs what the one before has fetched: where a row
// starts, the pages it lies on, its lines. `also` fetches what belongs to a row beside X.
template <class Rows, class Also>
[[gnu::always_inline]] inline void look_ahead(const Rows& rows, const Index* draws, Index position, Index total, Also also) {
    constexpr Index start = 40, pages = 24, lines = 10;
    if (position + start < total) {
        rows.fetch_start(draws[position + start]);
        also(draws[position + start]);
    }
    if (position + pages < total) rows.fetch_pages(draws[position + pages]);
    if (position + lines < total) rows.fetch(draws[position + lines]);
}

}  // namespace widemargin
