// POINTS: rows prepared for kernel values by the block, and the sums over columns that every kernel begins with.
//
// A kernel is a function of s = Σ combine(aⱼ, bⱼ) over the columns and of one number per row:
//   inner product     combine = ab                                       linear, poly, sigmoid, cosine, rbf
//   common part       combine = |a| + |b| − |a − b|                      laplacian: Σ|a − b| = Σ|a| + Σ|b| − s
//   harmonic mean     combine = 4ab/(a + b), a and b at least 0          chi2: Σ (a − b)²/(a + b) = Σa + Σb − s
// combine(0, b) = 0 in all of them, so that sparse rows need their non-zeros only.
//
// Dense rows are packed, a stretch of them at a time, in panels of two vectors, in which the elements of one column lie
// side by side. A group of kGroup rows meets them in tiles: kRowsInTile × panel sums are kept in registers while kDepth
// columns go by. Sparse rows meet a group that is written out with its rows side by side: a non-zero costs one
// multiplication of a vector.
// Every sum runs over the columns in ascending order, alone in its lane: its bits do not depend on what else is computed.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <new>
#include <numeric>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "../data/rows.hpp"

namespace widemargin::kernels {

// As many sums as the registers hold: 16 of 64 bytes, or 8 of 32.
#ifdef __AVX512F__
inline constexpr std::size_t kVectorBytes = 64;
inline constexpr Index kRowsInTile = 8;
#else
inline constexpr std::size_t kVectorBytes = 32;
inline constexpr Index kRowsInTile = 4;
#endif
inline constexpr Index kGroup = 32;    // rows; kernel values of one group of rows are computed together
inline constexpr Index kChunk = 128;   // columns of the kernel matrix; a group's sums with them stay in the first level of cache

template <class T>
struct VectorOf {
    typedef T type __attribute__((vector_size(kVectorBytes)));
};
template <class T>
using Vector = typename VectorOf<T>::type;
template <class T>
inline constexpr Index kLanes = static_cast<Index>(kVectorBytes / sizeof(T));
template <class T>
inline constexpr Index kPanel = 2 * kLanes<T>;  // rows of a panel

// Columns of the rows: a group's and a panel's part for so many stay in the first level of cache, too.
template <class T>
inline constexpr Index kDepth = static_cast<Index>(256 / sizeof(T));

template <class T>
struct Aligned {
    using value_type = T;
    Aligned() = default;
    template <class U>
    Aligned(const Aligned<U>&) {}
    T* allocate(std::size_t n) { return static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t{64})); }
    void deallocate(T* p, std::size_t) { ::operator delete(p, std::align_val_t{64}); }
    template <class U>
    bool operator==(const Aligned<U>&) const { return true; }
};
template <class T>
using Buffer = std::vector<T, Aligned<T>>;

template <class V>
[[gnu::always_inline]] inline V absolute(V x) {
    return x > -x ? x : -x;
}

struct InnerProduct {
    static constexpr int weight = 2;  // ‖a − b‖² = ‖a‖² + ‖b‖² − 2 a·b
    template <class V>
    [[gnu::always_inline]] static V add(V sum, V a, V b) { return sum + a * b; }
};
struct CommonPart {
    static constexpr int weight = 1;
    template <class V>
    [[gnu::always_inline]] static V add(V sum, V a, V b) { return sum + (absolute(a) + absolute(b) - absolute(a - b)); }
};
struct HarmonicMean {
    static constexpr int weight = 1;
    template <class V>
    [[gnu::always_inline]] static V add(V sum, V a, V b) {
        const V total = a + b, one = V{} + 1;
        return sum + 4 * a * b / (total > 0 ? total : one);
    }
};

// Scratch memory of one thread.
template <class T>
struct Scratch {
    Buffer<T> sums = Buffer<T>(static_cast<std::size_t>(kGroup * kChunk));  // of a group with a chunk, a row of them after another
    Buffer<T> scattered;  // a group of sparse rows written out in the columns it has, its rows side by side
    std::vector<std::int32_t> slot;  // of each column in it; the others, and all between two uses, have slot 0, of zeros
    Buffer<T> packed;     // panels of dense rows
};

template <class T>
class Points;
template <class T>
class Groups;
template <class T>
class Stretch;
template <class Combine, class T>
void sums_of_group(const Groups<T>& groups, Index group, const Stretch<T>& stretch, Index begin, Index end, Scratch<T>& scratch);

// Rows of X, less a shift that kernels of differences do not see, in precision T.
template <class T>
class Points {
   public:
    Index n = 0, d = 0;
    bool sparse = false;
    Buffer<T> values;                   // dense: n × d; sparse: those that are not 0
    std::vector<Index> starts;          // sparse: of each row
    std::vector<std::int32_t> columns;  // sparse
    Buffer<T> self;                     // of each row, the number that its kernel asks for: Σ combine(a, a)/weight

    // Rows `index[begin … end)` of X, or begin … end if there is no index.
    template <class Rows>
    void read(const Rows& rows, const Index* index, Index begin, Index end, const double* shift, bool as_sparse) {
        n = end - begin, d = rows.d, sparse = as_sparse;
        const auto row = [&](Index i) { return index ? index[begin + i] : begin + i; };
        if (sparse) {
            if (d > std::numeric_limits<std::int32_t>::max()) throw std::invalid_argument("more than 2³¹ columns");
            starts.assign(1, 0), columns.clear(), values.clear();
            for (Index i = 0; i < n; ++i) {
                rows.each(row(i), [&](Index j, double x) {
                    if (x == 0) return;
                    columns.push_back(static_cast<std::int32_t>(j)), values.push_back(static_cast<T>(x));
                });
                starts.push_back(static_cast<Index>(columns.size()));
            }
            return;
        }
        values.resize(static_cast<std::size_t>(n * d));
        for (Index i = 0; i < n; ++i) {
            T* __restrict const to = values.data() + i * d;
            if constexpr (requires { rows.starts; })  // most columns are not visited
                for (Index j = 0; j < d; ++j) to[j] = shift ? static_cast<T>(-shift[j]) : T(0);
            if (shift) rows.each(row(i), [&](Index j, double x) { to[j] = static_cast<T>(x - shift[j]); });
            else rows.each(row(i), [&](Index j, double x) { to[j] = static_cast<T>(x); });
        }
    }

    // Σ combine(a, a)/weight of every row, summed like all others: a row's distance from itself is 0, to the last bit.
    template <class Combine>
    void measure() {
        self.resize(static_cast<std::size_t>(n));
        thread_local Scratch<T> scratch;
        std::array<Index, kGroup> index;
        for (Index begin = 0; begin < n; begin += kGroup) {
            const Index count = std::min(kGroup, n - begin);
            const Stretch<T> stretch(*this, begin, begin + count, scratch);
            const auto keep = [&](Index k, T sum) { self[static_cast<std::size_t>(begin + k)] = sum * T(Combine::weight) / 2; };
            if (!sparse) {
                for (Index k = 0; k < count; k += kPanel<T>) {
                    const auto sums = stretch.template squares<Combine>(begin + k);
                    for (Index l = 0; l < std::min(kPanel<T>, count - k); ++l) keep(k + l, sums[static_cast<std::size_t>(l)]);
                }
                continue;
            }
            std::iota(index.begin(), index.end(), begin);
            const Groups<T> group(*this, index.data(), count);
            group.enter(0, scratch);
            sums_of_group<Combine>(group, 0, stretch, begin, begin + count, scratch);
            group.leave(0, scratch);
            for (Index k = 0; k < count; ++k) keep(k, scratch.sums[static_cast<std::size_t>(k * kChunk + k)]);
        }
    }

    // Some of these rows.
    Points subset(const Index* index, Index count) const {
        Points some;
        some.n = count, some.d = d, some.sparse = sparse;
        some.self.resize(static_cast<std::size_t>(count));
        for (Index i = 0; i < count; ++i) some.self[static_cast<std::size_t>(i)] = self[static_cast<std::size_t>(index[i])];
        if (sparse) {
            some.starts.assign(1, 0);
            for (Index i = 0; i < count; ++i) {
                const Index begin = starts[static_cast<std::size_t>(index[i])], end = starts[static_cast<std::size_t>(index[i]) + 1];
                some.columns.insert(some.columns.end(), columns.data() + begin, columns.data() + end);
                some.values.insert(some.values.end(), values.data() + begin, values.data() + end);
                some.starts.push_back(static_cast<Index>(some.columns.size()));
            }
            return some;
        }
        some.values.resize(static_cast<std::size_t>(count * d));
        for (Index i = 0; i < count; ++i) std::copy_n(values.data() + index[i] * d, d, some.values.data() + i * d);
        return some;
    }

    // Multiplications that a kernel value takes.
    double effort() const { return sparse ? static_cast<double>(columns.size()) / static_cast<double>(std::max<Index>(n, 1)) : static_cast<double>(d); }
};

// Some rows of A in groups of kGroup, laid out to meet other rows.
template <class T>
class Groups {
   public:
    Groups(const Points<T>& A, const Index* index, Index count) : A(A), index(index), count(count) {
        if (A.sparse) return;
        tiles.resize(static_cast<std::size_t>(size() * kGroup * A.d));
        for (Index r = 0; r < size() * kGroup; ++r) {
            const Index row = index[std::min(r, count - 1)];  // the last group is filled up with its last row
            const T* const from = A.values.data() + row * A.d;
            T* const to = tiles.data() + r / kRowsInTile * A.d * kRowsInTile + r % kRowsInTile;
            for (Index j = 0; j < A.d; ++j) to[j * kRowsInTile] = from[j];
        }
    }
    Index size() const { return (count + kGroup - 1) / kGroup; }
    Index rows(Index group) const { return std::min(kGroup, count - group * kGroup); }
    T self(Index group, Index r) const { return A.self[static_cast<std::size_t>(index[group * kGroup + r])]; }
    Index columns() const { return A.d; }

    // kRowsInTile rows of a group: their elements of one column lie side by side.
    const T* tile(Index group, Index r) const { return tiles.data() + (group * kGroup + r) * A.d; }

    // Writes a group of sparse rows out, an element of column j and row r at slot[j]·kGroup + r, and forgets it again.
    void enter(Index group, Scratch<T>& scratch) const {
        if (!A.sparse) return;
        if (static_cast<Index>(scratch.slot.size()) < A.d) scratch.slot.resize(static_cast<std::size_t>(A.d), 0);
        std::int32_t last = 0;
        each(group, [&](Index, std::size_t j, T) {
            if (!scratch.slot[j]) scratch.slot[j] = ++last;
        });
        scratch.scattered.assign(static_cast<std::size_t>((last + 1) * kGroup), T(0));
        each(group, [&](Index r, std::size_t j, T value) {
            scratch.scattered[static_cast<std::size_t>(scratch.slot[j] * kGroup + r)] = value;
        });
    }
    void leave(Index group, Scratch<T>& scratch) const {
        if (A.sparse) each(group, [&](Index, std::size_t j, T) { scratch.slot[j] = 0; });
    }

   private:
    const Points<T>& A;
    const Index* index;
    Index count;
    Buffer<T> tiles;

    template <class Work>
    void each(Index group, Work&& work) const {
        for (Index r = 0; r < rows(group); ++r) {
            const auto row = static_cast<std::size_t>(index[group * kGroup + r]);
            for (auto k = static_cast<std::size_t>(A.starts[row]); k < static_cast<std::size_t>(A.starts[row + 1]); ++k)
                work(r, static_cast<std::size_t>(A.columns[k]), A.values[k]);
        }
    }
};

// Lane c of vector r and lane r of vector c change places: blocks off the diagonal do, of 1, 2, 4 … lanes.
template <class T, Index size = 1>
[[gnu::always_inline]] inline void transpose(Vector<T>* v) {
    if constexpr (constexpr Index lanes = kLanes<T>; size < lanes) {
        [&]<Index... l>(std::integer_sequence<Index, l...>) {
            const auto swap = [&](Index r) {
                const Vector<T> a = v[r], b = v[r + size];
                v[r] = __builtin_shufflevector(a, b, (l & size ? lanes + l - size : l)...);
                v[r + size] = __builtin_shufflevector(a, b, (l & size ? lanes + l : l + size)...);
            };
            ((l & size ? void() : swap(l)), ...);
        }(std::make_integer_sequence<Index, lanes>{});
        transpose<T, 2 * size>(v);
    }
}

// The rows begin … end of B, packed if they are dense. Of all its stretches a thread holds one at a time.
template <class T>
class Stretch {
   public:
    Stretch(const Points<T>& B, Index begin, Index end, Scratch<T>& scratch) : B(B), begin(begin), packed(scratch.packed) {
        if (B.sparse) return;
        const Index d = B.d, panels = (end - begin + kPanel<T> - 1) / kPanel<T>;
        packed.resize(static_cast<std::size_t>(panels * d * kPanel<T>));
        for (Index panel = 0; panel < panels; ++panel) {
            T* const to = packed.data() + panel * d * kPanel<T>;
            const Index first = begin + panel * kPanel<T>;
            for (Index l = 0; l < kPanel<T>; l += kLanes<T>) pack(first + l, end, to + l);
        }
    }
    const Points<T>& rows() const { return B; }
    const T* panel(Index row) const { return packed.data() + (row - begin) * B.d; }

    // Σ combine(b, b) of the rows of a panel, in the order of all other sums.
    template <class Combine>
    std::array<T, static_cast<std::size_t>(kPanel<T>)> squares(Index row) const {
        Vector<T> sum[2] = {};
        for (Index j = 0; j < B.d; ++j) {
            const auto* const b = reinterpret_cast<const Vector<T>*>(panel(row) + j * kPanel<T>);
            for (int v = 0; v < 2; ++v) sum[v] = Combine::add(sum[v], b[v], b[v]);
        }
        std::array<T, static_cast<std::size_t>(kPanel<T>)> sums;
        std::memcpy(sums.data(), sum, sizeof sum);
        return sums;
    }

    // So many rows that their panels stay in the second level of cache.
    static Index length(const Points<T>& B) {
        constexpr Index bytes = 1 << 18;
        return std::clamp<Index>(bytes / (static_cast<Index>(sizeof(T)) * std::max<Index>(B.d, 1)) / kChunk, 1, 8) * kChunk;
    }

   private:
    const Points<T>& B;
    Index begin;
    Buffer<T>& packed;

    // Rows `first` … first + kLanes of B, those from `end` on being 0, to one vector of a panel.
    void pack(Index first, Index end, T* to) const {
        constexpr Index lanes = kLanes<T>;
        const Index d = B.d, rows = std::clamp<Index>(end - first, 0, lanes);
        const T* const from = B.values.data() + first * d;
        Index j = 0;
        if (rows == lanes)
            for (; j + lanes <= d; j += lanes) {
                Vector<T> block[lanes];
                for (Index l = 0; l < lanes; ++l) std::memcpy(&block[l], from + l * d + j, sizeof(Vector<T>));
                transpose<T>(block);
                for (Index l = 0; l < lanes; ++l) std::memcpy(to + (j + l) * kPanel<T>, &block[l], sizeof(Vector<T>));
            }
        for (; j < d; ++j)
            for (Index l = 0; l < lanes; ++l) to[j * kPanel<T> + l] = l < rows ? from[l * d + j] : T(0);
    }
};

// sums[r·kChunk …] += those of kRowsInTile rows with one panel over `depth` columns, or = if these are the `first`.
template <class Combine, bool first, class T>
[[gnu::always_inline]] inline void add_tile(const T* a, const T* panel, Index depth, T* sums) {
    Vector<T> sum[kRowsInTile][2] = {};
    const auto at = [&](Index r) { return reinterpret_cast<Vector<T>*>(sums + r * kChunk); };
    if constexpr (!first)
#pragma GCC unroll 8
        for (Index r = 0; r < kRowsInTile; ++r) sum[r][0] = at(r)[0], sum[r][1] = at(r)[1];
    for (Index j = 0; j < depth; ++j) {
        const auto* const b = reinterpret_cast<const Vector<T>*>(panel + j * kPanel<T>);
#pragma GCC unroll 8
        for (Index r = 0; r < kRowsInTile; ++r) {
            const Vector<T> x = a[j * kRowsInTile + r] - Vector<T>{};  // − 0 is nothing to the compiler, + 0 is an addition
            sum[r][0] = Combine::add(sum[r][0], x, b[0]);
            sum[r][1] = Combine::add(sum[r][1], x, b[1]);
        }
    }
#pragma GCC unroll 8
    for (Index r = 0; r < kRowsInTile; ++r) at(r)[0] = sum[r][0], at(r)[1] = sum[r][1];
}

// scratch.sums[r·kChunk + c − begin] = Σ combine(a, b) for the rows of a group that was entered and the rows
// begin … end ≤ begin + kChunk of a stretch, begin being whole panels from its own.
template <class Combine, class T>
void sums_of_group(const Groups<T>& groups, Index group, const Stretch<T>& stretch, Index begin, Index end, Scratch<T>& scratch) {
    const Points<T>& B = stretch.rows();
    T* const sums = scratch.sums.data();
    const Index count = groups.rows(group), d = groups.columns();
    if (B.sparse) {
        constexpr Index vectors = kGroup / kLanes<T>, lanes = kLanes<T>;
        const Index* const starts = B.starts.data();
        const std::int32_t *const columns = B.columns.data(), *const slot = scratch.slot.data();
        const T *const values = B.values.data(), *const written = scratch.scattered.data();
        Vector<T> block[vectors][lanes];  // of the last `lanes` rows of B, each with the whole group
        for (Index c = begin; c < end; c += lanes) {
            const Index width = std::min(lanes, end - c);
            for (Index l = 0; l < width; ++l) {
                Vector<T> sum[vectors] = {};
                const Index last = starts[c + l + 1];
                for (Index k = starts[c + l]; k < last; ++k) {
                    const auto* const a = reinterpret_cast<const Vector<T>*>(written + slot[columns[k]] * kGroup);
                    const Vector<T> x = values[k] - Vector<T>{};
                    for (Index v = 0; v < vectors; ++v) sum[v] = Combine::add(sum[v], x, a[v]);
                }
                for (Index v = 0; v < vectors; ++v) block[v][l] = sum[v];
            }
            for (Index v = 0; v * lanes < count; ++v) {
                transpose<T>(block[v]);
                for (Index r = 0; r < lanes; ++r) std::memcpy(sums + (v * lanes + r) * kChunk + c - begin, &block[v][r], sizeof(Vector<T>));
            }
        }
        return;
    }
    const auto add = [&]<bool first>(Index from, std::bool_constant<first>) {
        const Index depth = std::min(kDepth<T>, d - from);
        for (Index c = begin; c < end; c += kPanel<T>)
            for (Index r = 0; r < count; r += kRowsInTile)
                add_tile<Combine, first>(groups.tile(group, r) + from * kRowsInTile, stretch.panel(c) + from * kPanel<T>, depth,
                                         sums + r * kChunk + c - begin);
    };
    add(0, std::true_type{});
    for (Index from = kDepth<T>; from < d; from += kDepth<T>) add(from, std::false_type{});
}

}  // namespace widemargin::kernels
