// ROWS OF THE KERNEL MATRIX ON DEMAND: from a matrix that is there, or computed from points and kept while there is room.
#pragma once

#include <cstring>
#include <memory>
#include <numeric>

#include "gram.hpp"

namespace widemargin::kernels {

template <class T>
class RowSource {
   public:
    virtual ~RowSource() = default;
    virtual Index size() const = 0;  // rows and columns of the kernel matrix
    virtual T diagonal(Index i) const = 0;
    // Makes these rows available until the next call; there are at most `capacity` of them.
    virtual void need(const Index* index, Index count, int threads) = 0;
    virtual Index capacity() const = 0;
    virtual const T* row(Index i) const = 0;
    virtual std::int64_t computed() const { return 0; }  // rows computed so far
};

// A kernel matrix that was given, of any row stride.
template <class T>
class GivenMatrix final : public RowSource<T> {
   public:
    GivenMatrix(const T* k, Index n, Index stride) : k(k), n(n), stride(stride) {}
    Index size() const override { return n; }
    T diagonal(Index i) const override { return k[i * stride + i]; }
    void need(const Index*, Index, int) override {}
    Index capacity() const override { return n; }
    const T* row(Index i) const override { return k + i * stride; }

   private:
    const T* k;
    Index n, stride;
};

// Rows computed from points; those used least recently make room for new ones.
template <class T>
class CachedRows final : public RowSource<T> {
   public:
    CachedRows(const Function& f, Points<T> points, std::size_t bytes)
        : f(f), points(std::move(points)), n(this->points.n), stride((n + 15) / 16 * 16), place(static_cast<std::size_t>(n), -1) {
        const auto rows = static_cast<Index>(bytes / (sizeof(T) * static_cast<std::size_t>(stride)));
        slots = std::clamp<Index>(rows, std::min(least, n), n);
        owner.assign(static_cast<std::size_t>(slots), -1), used.assign(static_cast<std::size_t>(slots), 0);
    }

    Index size() const override { return n; }
    T diagonal(Index i) const override { return value_with_itself(f, points.self[static_cast<std::size_t>(i)]); }
    Index capacity() const override { return slots; }
    const T* row(Index i) const override { return slot(place[static_cast<std::size_t>(i)]); }
    std::int64_t computed() const override { return misses; }

    void need(const Index* index, Index count, int threads) override {
        ++now;
        missing.clear();
        for (Index k = 0; k < count; ++k) {
            const Index at = place[static_cast<std::size_t>(index[k])];
            if (at < 0) missing.push_back(index[k]);
            else used[static_cast<std::size_t>(at)] = now;
        }
        if (missing.empty()) return;
        misses += static_cast<std::int64_t>(missing.size());
        targets.clear();
        free_slots(static_cast<Index>(missing.size()));
        for (std::size_t k = 0; k < missing.size(); ++k) {
            const Index at = chosen[k];
            if (owner[static_cast<std::size_t>(at)] >= 0) place[static_cast<std::size_t>(owner[static_cast<std::size_t>(at)])] = -1;
            owner[static_cast<std::size_t>(at)] = missing[k], used[static_cast<std::size_t>(at)] = now;
            place[static_cast<std::size_t>(missing[k])] = at;
            targets.push_back(slot(at));
        }
        rows_of_matrix(f, points, missing.data(), static_cast<Index>(missing.size()), points, targets.data(), threads);
    }

   private:
    static constexpr Index least = 64;         // rows
    static constexpr Index slots_in_block = 64;  // memory is taken block by block, as it is needed

    T* slot(Index at) const { return blocks[static_cast<std::size_t>(at / slots_in_block)].get() + at % slots_in_block * stride; }

    // Puts `count` slots into `chosen`: those never used first, then those used least recently.
    void free_slots(Index count) {
        chosen.clear();
        while (filled < slots && static_cast<Index>(chosen.size()) < count) {
            if (filled % slots_in_block == 0)
                blocks.emplace_back(static_cast<T*>(::operator new(sizeof(T) * static_cast<std::size_t>(std::min(slots_in_block, slots - filled) * stride), std::align_val_t{64})));
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

    struct Release {
        void operator()(T* p) const { ::operator delete(p, std::align_val_t{64}); }
    };
    Function f;
    Points<T> points;
    Index n, stride, slots = 0, filled = 0;
    std::vector<Index> place, owner, missing, chosen, order;
    std::vector<std::int64_t> used;
    std::vector<T*> targets;
    std::vector<std::unique_ptr<T, Release>> blocks;
    std::int64_t now = 0, misses = 0;
};

}  // namespace widemargin::kernels
