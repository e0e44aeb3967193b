// LARGE MATRICES: memory in huge pages, which is not written to before it is used.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <new>

#include "../data/rows.hpp"

namespace widemargin::kernels {

inline constexpr std::size_t kHugePage = std::size_t{2} << 20;

struct ReleaseAligned {
    std::align_val_t alignment{64};
    void operator()(void* p) const { ::operator delete(p, alignment); }
};
template <class T>
using Memory = std::unique_ptr<T, ReleaseAligned>;

// Memory, in huge pages where it fills some and the system has them: touching small ones for the first time takes longer
// than computing what they hold.
template <class T>
Memory<T> huge_memory(Index numbers) {
    std::size_t bytes = sizeof(T) * static_cast<std::size_t>(numbers);
    const ReleaseAligned release{std::align_val_t{bytes >= kHugePage ? kHugePage : 64}};
    if (bytes >= kHugePage) bytes = (bytes + kHugePage - 1) / kHugePage * kHugePage;
    Memory<T> block(static_cast<T*>(::operator new(bytes, release.alignment)), release);
#ifdef MADV_HUGEPAGE
    if (bytes >= kHugePage) madvise(block.get(), bytes, MADV_HUGEPAGE);
#endif
    return block;
}

// A large matrix of `rows`, whose rows of `width` numbers begin `stride` numbers apart: whole vectors, an odd number of
// them, so that elements of one column lie in different sets of the caches. What follows the width is 0.
template <class T>
class Table {
   public:
    static Index stride_of(Index width) {
        constexpr Index lanes = static_cast<Index>(64 / sizeof(T));
        return ((width + lanes - 1) / lanes | 1) * lanes;
    }
    Index width = 0, stride = 0;

    Table() = default;
    Table(Index rows, Index width) { resize(rows, width); }
    // Keeps the memory if it is enough, but nothing that is in it.
    void resize(Index rows, Index columns) {
        width = columns, stride = stride_of(width);
        if (rows * stride > room) room = rows * stride, numbers = huge_memory<T>(room);
        for (Index i = 0; i < rows; ++i) std::fill(row(i) + width, row(i) + stride, T(0));
    }
    T* row(Index i) { return numbers.get() + i * stride; }
    const T* row(Index i) const { return numbers.get() + i * stride; }

   private:
    Memory<T> numbers;
    Index room = 0;
};

}  // namespace widemargin::kernels
