// ROWS OF THE KERNEL MATRIX ON DEMAND: from a matrix that is there, computed from points each time, or computed and kept.
#pragma once

#include <memory>
#include <numeric>

#include "gram.hpp"
#include "memory.hpp"

namespace widemargin::kernels {

// Columns source … source + count of the kernel matrix, which are local … local + count of a problem.
struct Segment {
    Index local, source, count;
};

template <class T>
class RowSource {
   public:
    virtual ~RowSource() = default;
    virtual Index size() const = 0;  // rows and columns of the kernel matrix
    virtual bool whole() const { return false; }                  // whether all of it is in memory
    virtual const Table<T>* table() const { return nullptr; }  // as a table, if it is kept as one
    // Rows and columns `fresh` of the kernel matrix of these rows, with `width` numbers from one row of it to the next.
    virtual void block(const std::vector<Index>& rows, const std::vector<Index>& fresh, T* matrix, Index width, int threads) = 0;
    // e[local] −= Σ by[r] K[rows[r], source] over the columns of these segments, in double precision.
    virtual void update(const Index* rows, const double* by, Index count, const std::vector<Segment>& segments, double* e, int threads) = 0;
};

// The segments cut into pieces of at most `length` columns.
inline std::vector<Segment> pieces_of(const std::vector<Segment>& segments, Index length) {
    std::vector<Segment> pieces;
    for (const Segment& one : segments)
        for (Index k = 0; k < one.count; k += length) pieces.push_back({one.local + k, one.source + k, std::min(length, one.count - k)});
    return pieces;
}

// to[k] −= Σ by[r] rows[r][k].
template <class T>
void subtract(const T* const* rows, const double* by, Index count, double* to, Index width) {
    Index r = 0;
    for (; r + 4 <= count; r += 4) {
        const T *k0 = rows[r], *k1 = rows[r + 1], *k2 = rows[r + 2], *k3 = rows[r + 3];
        const double d0 = by[r], d1 = by[r + 1], d2 = by[r + 2], d3 = by[r + 3];
#pragma omp simd
        for (Index k = 0; k < width; ++k)
            to[k] -= (d0 * static_cast<double>(k0[k]) + d1 * static_cast<double>(k1[k])) +
                     (d2 * static_cast<double>(k2[k]) + d3 * static_cast<double>(k3[k]));
    }
    for (; r < count; ++r) {
        const T* const row = rows[r];
        const double change = by[r];
#pragma omp simd
        for (Index k = 0; k < width; ++k) to[k] -= change * static_cast<double>(row[k]);
    }
}

// Writes some rows of a symmetric matrix, and the same numbers as its columns.
template <class T>
class Mirror {
   public:
    Mirror(std::size_t rows, const std::vector<Index>& places, T* matrix, Index width)
        : places(places), matrix(matrix), width(width), is_place(rows, 0) {
        for (const Index at : places) is_place[static_cast<std::size_t>(at)] = 1;
    }
    // values[r·kChunk + c − from] is the element of row places[first + r], r < count, and of column c from `from` to `to`.
    void write(Index first, Index count, Index from, Index to, const T* values) const {
        const Index* const here = places.data() + first;
        for (Index r = 0; r < count; ++r) std::copy_n(values + r * kChunk, to - from, matrix + here[r] * width + from);
        for (Index c = from; c < to; ++c) {
            if (is_place[static_cast<std::size_t>(c)]) continue;  // a row of its own
            T* const row = matrix + c * width;
            for (Index r = 0; r < count; ++r) row[here[r]] = values[r * kChunk + c - from];
        }
    }

    // Copies what stands in these rows' columns from … to to the rows from … to, where they are not rows of their own.
    void copy(Index from, Index to) const {
        for (const Index at : places)
            for (Index c = from; c < to; ++c)
                if (!is_place[static_cast<std::size_t>(c)]) matrix[c * width + at] = matrix[at * width + c];
    }

   private:
    const std::vector<Index>& places;
    T* matrix;
    Index width;
    std::vector<unsigned char> is_place;
};

// A source whose rows are in memory when they are asked for.
template <class T>
class StoredRows : public RowSource<T> {
   public:
    void block(const std::vector<Index>& rows, const std::vector<Index>& fresh, T* matrix, Index width, int threads) override {
        const auto count = static_cast<Index>(fresh.size()), q = static_cast<Index>(rows.size());
        constexpr Index some = 64;
        std::vector<Index> wanted(fresh.size());
        for (std::size_t k = 0; k < fresh.size(); ++k) wanted[k] = rows[static_cast<std::size_t>(fresh[k])];
        std::vector<Segment> runs;  // of neighbouring rows, which are copied together
        for (Index c = 0; c < q; ++c) {
            const Index i = rows[static_cast<std::size_t>(c)];
            if (!runs.empty() && i == runs.back().source + runs.back().count) ++runs.back().count;
            else runs.push_back({c, i, 1});
        }
        for (Index first = 0; first < count; first += capacity()) {
            const Index last = std::min(count, first + capacity());
            fetch(wanted.data() + first, last - first, threads);
            run_pieces(static_cast<int>((last - first + some - 1) / some), threads, [&](int piece) {
                for (Index r = first + piece * some; r < std::min(last, first + piece * some + some); ++r) {
                    const T* const from = row(wanted[static_cast<std::size_t>(r)]);
                    T* const to = matrix + fresh[static_cast<std::size_t>(r)] * width;
                    for (const Segment& one : runs) std::copy_n(from + one.source, one.count, to + one.local);
                }
            });
        }
        const Mirror<T> mirror(rows.size(), fresh, matrix, width);
        if (count < q)
            run_pieces(static_cast<int>((q + some - 1) / some), threads, [&](int piece) { mirror.copy(piece * some, std::min(q, piece * some + some)); });
    }

    void update(const Index* rows, const double* by, Index count, const std::vector<Segment>& segments, double* e, int threads) override {
        const auto pieces = pieces_of(segments, 1024);
        const Index most = capacity() / 4 * 4;  // rows are added four at a time, wherever they are cut
        for (Index first = 0; first < count; first += std::max<Index>(most, 4)) {
            const Index some = std::min(std::max<Index>(most, 4), count - first);
            fetch(rows + first, some, threads);
            run_pieces(static_cast<int>(pieces.size()), threads, [&](int piece) {
                const Segment& one = pieces[static_cast<std::size_t>(piece)];
                std::vector<const T*> here(static_cast<std::size_t>(some));
                for (Index r = 0; r < some; ++r) here[static_cast<std::size_t>(r)] = row(rows[first + r]) + one.source;
                subtract(here.data(), by + first, some, e + one.local, one.count);
            });
        }
    }

   protected:
    virtual void fetch(const Index*, Index, int) {}  // makes at most capacity() rows available until the next call
    virtual Index capacity() const = 0;
    virtual const T* row(Index i) const = 0;
};

// A kernel matrix that was given, of any row stride.
template <class T>
class GivenMatrix final : public StoredRows<T> {
   public:
    GivenMatrix(const T* k, Index n, Index stride) : k(k), n(n), stride(stride) {}
    Index size() const override { return n; }
    bool whole() const override { return true; }

   private:
    const T* k;
    Index n, stride;
    Index capacity() const override { return n; }
    const T* row(Index i) const override { return k + i * stride; }
};

// The sums over the columns that the kernel values of all pairs of rows begin with: γ, degree and coef0 are not in them.
template <class T>
class Sums {
   public:
    Index n;
    Buffer<T> self;
    Table<T> matrix;

    Sums(const Function& f, const Points<T>& points, int threads)
        : n(points.n), self(points.self), matrix(n, n) {
        if (!n) return;
        std::vector<Index> all(static_cast<std::size_t>(n));
        std::iota(all.begin(), all.end(), Index{0});
        const Groups<T> groups(points, all.data(), n);
        const Index length = Stretch<T>::length(points);
        run_pieces(static_cast<int>((n + length - 1) / length), threads, [&](int piece) {
            const Index begin = piece * length, end = std::min(n, begin + length);
            thread_local Scratch<T> scratch;
            const Stretch<T> stretch(points, begin, end, scratch);
            for (Index group = 0; group < groups.size(); ++group) {
                groups.enter(group, scratch);
                for (Index from = begin; from < end; from += kChunk) {
                    const Index to = std::min(end, from + kChunk);
                    with_combine(f.shape, [&]<class Combine>(Combine) { sums_of_group<Combine>(groups, group, stretch, from, to, scratch); });
                    for (Index r = 0; r < groups.rows(group); ++r)
                        std::copy_n(scratch.sums.data() + r * kChunk, to - from, matrix.row(group * kGroup + r) + from);
                }
                groups.leave(group, scratch);
            }
        });
    }
};

// All rows, computed once.
template <class T>
class WholeMatrix final : public StoredRows<T> {
   public:
    WholeMatrix(const Function& f, Sums<T>&& sums, int threads) : n(sums.n), matrix(std::move(sums.matrix)) {  // in their place
        finish_rows(f, sums.self, threads, [](Index, T*) {});
    }
    WholeMatrix(const Function& f, const Sums<T>& sums, int threads) : n(sums.n), matrix(n, n) {
        finish_rows(f, sums.self, threads, [&](Index i, T* to) { std::copy_n(sums.matrix.row(i), n, to); });
    }
    Index size() const override { return n; }
    bool whole() const override { return true; }
    const Table<T>* table() const override { return &matrix; }

   private:
    Index n;
    Table<T> matrix;
    Index capacity() const override { return n; }
    const T* row(Index i) const override { return matrix.row(i); }

    template <class Fill>
    void finish_rows(const Function& f, const Buffer<T>& self, int threads, Fill fill) {
        int weight = 0;
        with_combine(f.shape, [&]<class Combine>(Combine) { weight = Combine::weight; });
        run_pieces(static_cast<int>((n + kGroup - 1) / kGroup), threads, [&](int piece) {
            for (Index i = piece * kGroup; i < std::min(n, piece * kGroup + kGroup); ++i) {
                T* const row = matrix.row(i);
                fill(i, row);
                finish(f, row, n, self[static_cast<std::size_t>(i)], self.data(), weight);
            }
        });
    }
};

// Rows and columns `fresh` of the kernel matrix of these points.
template <class T>
void block_of_points(const Function& f, const Points<T>& points, const std::vector<Index>& rows, const std::vector<Index>& fresh,
                     T* matrix, Index width, int threads) {
    if (fresh.empty()) return;
    const auto q = static_cast<Index>(rows.size());
    const Points<T> some = points.subset(rows.data(), q);
    const Mirror<T> mirror(rows.size(), fresh, matrix, width);
    const Groups<T> groups(some, fresh.data(), static_cast<Index>(fresh.size()));
    const Index length = Stretch<T>::length(some);
    run_pieces(static_cast<int>((q + length - 1) / length), threads, [&](int piece) {
        const Index begin = piece * length, end = std::min(q, begin + length);
        thread_local Scratch<T> scratch;
        const Stretch<T> stretch(some, begin, end, scratch);
        for (Index group = 0; group < groups.size(); ++group)
            values_of_group(f, groups, group, stretch, begin, end, scratch, [&](Index from, Index to, const T* values) {
                mirror.write(group * kGroup, groups.rows(group), from, to, values);
            });
    });
}

// Rows computed from points whenever they are needed, a few hundred columns at a time: they never leave the caches.
template <class T>
class ComputedRows final : public RowSource<T> {
   public:
    ComputedRows(const Function& f, Points<T> points) : f(f), points(std::move(points)) {}
    Index size() const override { return points.n; }

    void block(const std::vector<Index>& rows, const std::vector<Index>& fresh, T* matrix, Index width, int threads) override {
        block_of_points(f, points, rows, fresh, matrix, width, threads);
    }

    void update(const Index* rows, const double* by, Index count, const std::vector<Segment>& segments, double* e, int threads) override {
        const auto pieces = pieces_of(segments, Stretch<T>::length(points));
        if (!count) return;
        const Groups<T> groups(points, rows, count);
        std::vector<double> less(by, by + count);
        for (double& one : less) one = -one;
        run_pieces(static_cast<int>(pieces.size()), threads, [&](int piece) {
            const Segment& one = pieces[static_cast<std::size_t>(piece)];
            const Index begin = one.source, end = one.source + one.count;
            thread_local Scratch<T> scratch;
            const Stretch<T> stretch(points, begin, end, scratch);
            for (Index group = 0; group < groups.size(); ++group)
                values_of_group(f, groups, group, stretch, begin, end, scratch, [&](Index from, Index to, const T* values) {
                    add_rows(values, less.data() + group * kGroup, groups.rows(group), e + one.local + (from - begin), to - from);
                });
        });
    }

   private:
    Function f;
    Points<T> points;
};

// Rows computed from points; those used least recently make room for new ones.
template <class T>
class CachedRows final : public StoredRows<T> {
   public:
    CachedRows(const Function& f, Points<T> given, std::size_t bytes)
        : f(f), points(std::move(given)), n(points.n), stride((n + 15) / 16 * 16), place(static_cast<std::size_t>(n), -1) {
        const auto rows = static_cast<Index>(bytes / (sizeof(T) * static_cast<std::size_t>(stride)));
        slots = std::clamp<Index>(rows, std::min(least, n), n);
        owner.assign(static_cast<std::size_t>(slots), -1), used.assign(static_cast<std::size_t>(slots), 0);
    }
    Index size() const override { return n; }

    void block(const std::vector<Index>& rows, const std::vector<Index>& fresh, T* matrix, Index width, int threads) override {
        block_of_points(f, points, rows, fresh, matrix, width, threads);
    }

   private:
    static constexpr Index least = 64;           // rows
    static constexpr Index slots_in_block = 64;  // memory is taken block by block, as it is needed

    Index capacity() const override { return slots; }
    const T* row(Index i) const override { return slot(place[static_cast<std::size_t>(i)]); }
    T* slot(Index at) const { return blocks[static_cast<std::size_t>(at / slots_in_block)].get() + at % slots_in_block * stride; }

    void fetch(const Index* index, Index count, int threads) override {
        ++now;
        missing.clear();
        for (Index k = 0; k < count; ++k) {
            const Index at = place[static_cast<std::size_t>(index[k])];
            if (at < 0) missing.push_back(index[k]);
            else used[static_cast<std::size_t>(at)] = now;
        }
        if (missing.empty()) return;
        targets.clear();
        free_slots(static_cast<Index>(missing.size()));
        for (std::size_t k = 0; k < missing.size(); ++k) {
            const Index at = chosen[k], before = owner[static_cast<std::size_t>(at)];
            if (before >= 0) place[static_cast<std::size_t>(before)] = -1;
            owner[static_cast<std::size_t>(at)] = missing[k], used[static_cast<std::size_t>(at)] = now;
            place[static_cast<std::size_t>(missing[k])] = at;
            targets.push_back(slot(at));
        }
        rows_of_matrix(f, points, missing.data(), static_cast<Index>(missing.size()), points, targets.data(), threads);
    }

    // Puts `count` slots into `chosen`: those never used first, then those used least recently.
    void free_slots(Index count) {
        chosen.clear();
        while (filled < slots && static_cast<Index>(chosen.size()) < count) {
            if (filled % slots_in_block == 0) blocks.push_back(huge_memory<T>(std::min(slots_in_block, slots - filled) * stride));
            used[static_cast<std::size_t>(filled)] = now;  // it is taken: not among those used least recently
            chosen.push_back(filled++);
        }
        const auto left = count - static_cast<Index>(chosen.size());
        if (left <= 0) return;
        order.resize(static_cast<std::size_t>(slots));
        std::iota(order.begin(), order.end(), Index{0});
        std::nth_element(order.begin(), order.begin() + left - 1, order.end(), [&](Index a, Index b) {
            const auto one = used[static_cast<std::size_t>(a)], other = used[static_cast<std::size_t>(b)];
            return one != other ? one < other : a < b;
        });
        chosen.insert(chosen.end(), order.begin(), order.begin() + left);
    }

    Function f;
    Points<T> points;
    Index n, stride, slots = 0, filled = 0;
    std::vector<Index> place, owner, missing, chosen, order;
    std::vector<std::int64_t> used;
    std::vector<T*> targets;
    std::vector<Memory<T>> blocks;
    std::int64_t now = 0;
};

// Multiplications per kernel value up to which computing it again is as quick as reading it from memory.
inline constexpr double kCheap = 64;

// Rows of the kernel matrix of these points, with memory of `bytes` for those that are worth keeping.
template <class T>
std::unique_ptr<RowSource<T>> rows_of_points(const Function& f, Points<T> points, std::size_t bytes) {
    if (points.effort() <= kCheap) return std::make_unique<ComputedRows<T>>(f, std::move(points));
    return std::make_unique<CachedRows<T>>(f, std::move(points), bytes);
}

}  // namespace widemargin::kernels
