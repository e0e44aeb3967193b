// What every binding file shares: arrays, X in one of its storages, checks of lengths, fresh arrays.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <variant>

#include "data/products.hpp"
#include "data/rows.hpp"
#include "losses.hpp"

namespace nb = nanobind;

namespace widemargin::bindings {

template <class T>
using Array = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::device::cpu>;
using Vector = Array<const double>;

// X in one of its storages, with the arrays it borrows kept alive.
struct Rows {
    using Storage = std::variant<Contiguous<float>, Contiguous<double>, Strided<float>, Strided<double>,
                                 Csr<float, std::int32_t>, Csr<float, std::int64_t>,
                                 Csr<double, std::int32_t>, Csr<double, std::int64_t>>;
    Storage storage;
    nb::tuple borrowed;

    template <class Visit>
    auto visit(Visit&& work) const {
        return std::visit(std::forward<Visit>(work), storage);
    }
    Index n() const {
        return visit([](const auto& rows) { return rows.n; });
    }
    Index d() const {
        return visit([](const auto& rows) { return rows.d; });
    }
    Index nonzeros() const {
        return visit([](const auto& rows) { return total_nonzeros(rows); });
    }
    bool uneven() const {
        return visit([](const auto& rows) {
            if constexpr (requires { rows.uneven; }) return rows.uneven;
            else return false;
        });
    }
};

inline void need(std::size_t size, Index wanted, const char* name) {
    if (static_cast<Index>(size) != wanted)
        throw std::invalid_argument(std::string(name) + " has the wrong length");
}

inline void need_rows(Array<const Index> draws, Index n) {
    for (std::size_t k = 0; k < draws.size(); ++k)
        if (draws.data()[k] < 0 || draws.data()[k] >= n)
            throw std::out_of_range("a row, or a block of them, that does not exist was drawn");
}

// Calls work(Loss{}) for the loss of that name.
template <class Losses = widemargin::Losses, class Work>
auto with_loss(const std::string& name, Work&& work) {
    return std::apply(
        [&](auto... losses) {
            std::optional<decltype(work(std::get<0>(Losses{})))> result;
            ((name == losses.name ? (result.emplace(work(losses)), 0) : 0), ...);
            if (!result) throw std::invalid_argument("no loss is called '" + name + "'");
            return *result;
        },
        Losses{});
}

template <class... Sizes>
auto fresh(double*& data, Sizes... sizes) {
    const std::size_t count = (std::size_t{1} * ... * static_cast<std::size_t>(sizes));
    data = new double[count ? count : 1];
    nb::capsule owner(data, [](void* p) noexcept { delete[] static_cast<double*>(p); });
    return nb::ndarray<nb::numpy, double>(data, {static_cast<std::size_t>(sizes)...}, owner);
}

void bind_dual_cd(nb::module_& m);
void bind_kernels(nb::module_& m);

}  // namespace widemargin::bindings
