// All αᵢ between their bounds moved at once, towards where the gradients of all of them vanish: where rows depend on each
// other, one coordinate at a time crawls. Among few rows this costs no more than some visits of each.
//
//   min over δ of ½δᵀQδ + gᵀδ,  Qᵢⱼ = yᵢyⱼ(xᵢ·xⱼ + 1/ρ), with what the conjugate adds on its diagonal,
//
// by conjugate gradients; then as far that way as it gets better, where the box cuts off what is outside of it, or to the
// first wall (Bertsekas 1982); and again with those that are left, a few times, as long as there was a wall.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include "../data/products.hpp"
#include "../data/products_of_rows.hpp"

namespace widemargin {

template <class Loss, class Rows>
class FreeRows {
   public:
    // `pass` has the numbers of the rows in play and their weights.
    template <class Pass>
    FreeRows(const Rows& rows, const Pass& pass) : rows(rows), sum(static_cast<std::size_t>(rows.d)) {
        for (Index k = 0; k < pass.actives; ++k)
            if (is_free(pass, pass.active[k])) free.push_back(pass.active[k]);
    }

    // Moves them, the weights and s; returns how many visits would have taken as long.
    template <class Pass>
    Index settle(Pass& pass) {
        constexpr Index most_walls = 5;
        products = 0;
        for (Index walls = 0; walls < most_walls && !free.empty(); ++walls) {
            look(pass);
            solve();
            const bool within = stop_at_walls(pass);
            if (!std::isfinite(inner(delta, delta))) break;
            for (std::size_t k = 0; k < free.size(); ++k) {
                const Index i = free[k];
                const double next = std::clamp(pass.alpha[i] + delta[k], Loss::lower(), Loss::upper(pass.c[i]));
                const double change = (next - pass.alpha[i]) * pass.y[i];
                pass.alpha[i] = next, pass.s += change;
                rows.add(i, change, pass.w);
            }
            products += 2 * size();
            if (within) break;
            std::erase_if(free, [&](Index i) { return !is_free(pass, i); });
        }
        return products / products_in_visit;
    }

   private:
    static constexpr bool by_products = std::is_same_v<Rows, ProductsOfRows>;
    // A visit waits for the one before, as products do not.
    static constexpr Index products_in_visit = by_products ? 8 : 2;

    const Rows& rows;
    std::vector<Index> free;
    std::vector<double> sum;  // of rows, with as many columns
    std::vector<double> sign, bend, gradient, delta, residual, direction, image, trial;
    double inverse_rho = 0, steepest = 0;
    Index products = 0;

    template <class Pass>
    static bool is_free(const Pass& pass, Index i) {
        return pass.alpha[i] > Loss::lower() && pass.alpha[i] < Loss::upper(pass.c[i]);
    }
    Index size() const { return static_cast<Index>(free.size()); }
    double inner(const std::vector<double>& a, const std::vector<double>& b) const {
        return sum_of_products(a.data(), b.data(), size());
    }

    // to = Qv.
    void multiply(const std::vector<double>& v, std::vector<double>& to) {
        double balance = 0;
        for (std::size_t k = 0; k < free.size(); ++k) to[k] = sign[k] * v[k], balance += to[k];
        if constexpr (by_products) add_rows(rows, free, to, sum.data());
        else for (std::size_t k = 0; k < free.size(); ++k) rows.add(free[k], to[k], sum.data());
        for (std::size_t k = 0; k < free.size(); ++k)
            to[k] = sign[k] * (rows.dot(free[k], sum.data()) + balance * inverse_rho) + bend[k] * v[k];
        forget_sum();
        products += size();
    }

    void forget_sum() {
        if constexpr (!by_products)
            if (rows.d > total_nonzeros(rows)) {
                for (const Index i : free) rows.each(i, [&](Index j, double) { sum[static_cast<std::size_t>(j)] = 0; });
                return;
            }
        std::fill(sum.begin(), sum.end(), 0.0);
    }

    template <class Pass>
    void look(const Pass& pass) {
        for (auto* numbers : {&sign, &bend, &gradient, &delta, &residual, &direction, &image, &trial}) numbers->assign(free.size(), 0.0);
        inverse_rho = pass.inverse_rho, steepest = 0;
        for (std::size_t k = 0; k < free.size(); ++k) {
            const Index i = free[k];
            sign[k] = pass.y[i], bend[k] = Loss::bend_of_row(pass.c[i]);
            const double m = sign[k] * (rows.dot(i, pass.w) + pass.b + pass.s * inverse_rho);
            gradient[k] = Loss::gradient(pass.alpha[i], m, pass.c[i]);
            steepest = std::max(steepest, pass.norms[i] + inverse_rho + bend[k]);
        }
    }

    // Qδ = −g, roughly: which of them will come to a wall is not known yet.
    void solve() {
        constexpr double precise = 1e-3, flat = 1e-12;
        constexpr int most = by_products ? 15 : 40;  // very few rows are back soon, others took a long time to come here
        for (std::size_t k = 0; k < free.size(); ++k) residual[k] = direction[k] = -gradient[k];
        double square = inner(residual, residual);
        const double enough = precise * square;
        for (int k = 0; k < most && square > enough; ++k) {
            multiply(direction, image);
            const double curvature = inner(direction, image);
            if (!(curvature > flat * steepest * inner(direction, direction))) break;
            const double t = square / curvature;
            for (std::size_t j = 0; j < free.size(); ++j) delta[j] += t * direction[j], residual[j] -= t * image[j];
            const double last = std::exchange(square, inner(residual, residual));
            for (std::size_t j = 0; j < free.size(); ++j) direction[j] = residual[j] + square / last * direction[j];
        }
    }

    // Makes δ a step that stays in the box; whether it was one.
    template <class Pass>
    bool stop_at_walls(const Pass& pass) {
        constexpr int halvings = 4;  // a shorter one hardly pays its product
        auto& whole = residual;
        whole = delta;
        const double first_wall = cut_off(pass, whole, 1.0, delta);
        if (first_wall == 1) return true;
        double best = gain(delta);
        const auto try_it = [&] {
            const double now = gain(trial);
            const bool better = now > best;
            if (better) best = now, std::swap(delta, trial);
            return better;
        };
        for (int k = 1; k <= halvings; ++k) {
            cut_off(pass, whole, std::ldexp(1.0, -k), trial);
            if (!try_it()) break;
        }
        for (std::size_t k = 0; k < free.size(); ++k) trial[k] = first_wall * whole[k];
        try_it();
        return false;
    }

    // `step` = what of t·δ is in the box; the share of t·δ up to the first wall.
    template <class Pass>
    double cut_off(const Pass& pass, const std::vector<double>& whole, double t, std::vector<double>& step) const {
        double share = 1;
        for (std::size_t k = 0; k < free.size(); ++k) {
            const double alpha = pass.alpha[free[k]], wanted = t * whole[k], upper = Loss::upper(pass.c[free[k]]);
            step[k] = wanted;
            if (alpha + wanted > Loss::lower() && alpha + wanted < upper) continue;
            step[k] = (wanted > 0 ? upper : Loss::lower()) - alpha;
            share = std::min(share, step[k] / wanted);
        }
        return share;
    }

    double gain(const std::vector<double>& step) {
        multiply(step, image);
        return -inner(gradient, step) - inner(step, image) / 2;
    }
};

}  // namespace widemargin
