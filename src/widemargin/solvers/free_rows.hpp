// All αᵢ between their bounds moved at once, towards where the gradients of all of them vanish: where rows depend on each
// other, one coordinate at a time crawls. Among few rows, whose products are known, this costs no more than some visits of each.
//
//   min over δ of ½δᵀQδ + gᵀδ,  Qᵢⱼ = yᵢyⱼ(xᵢ·xⱼ + 1/ρ), with what the conjugate adds on its diagonal,
//
// by conjugate gradients; then to where the box cuts that off, if it is better than to stop at the first wall (Bertsekas
// 1982); and again with those that are left, a few times, as long as there was a wall.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "../data/products_of_rows.hpp"

namespace widemargin {

template <class Loss>
class FreeRows {
   public:
    // `pass` has the numbers of the rows, and scores for weights.
    template <class Pass>
    FreeRows(const ProductsOfRows& rows, const Pass& pass) : rows(rows) {
        for (Index i = 0; i < rows.n; ++i)
            if (is_free(pass, i)) free.push_back(i);
    }

    // Moves them, their scores and s; returns how many visits would have taken as long.
    template <class Pass>
    Index settle(Pass& pass) {
        constexpr Index most_walls = 5, products_in_visit = 8;  // which waits for the one before, as products do not
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
    const ProductsOfRows& rows;
    std::vector<Index> free;
    std::vector<double> q, gradient, delta, residual, direction, image;
    Index products = 0;

    template <class Pass>
    static bool is_free(const Pass& pass, Index i) {
        return pass.alpha[i] > Loss::lower() && pass.alpha[i] < Loss::upper(pass.c[i]);
    }
    Index size() const { return static_cast<Index>(free.size()); }
    double inner(const std::vector<double>& a, const std::vector<double>& b) const {
        return sum_of_products(a.data(), b.data(), size());
    }
    // Q is symmetric: a sum of its rows, four at a time, has fewer sums to wait for than a product with each of them.
    void multiply(const std::vector<double>& v, std::vector<double>& to) const {
        const std::size_t count = free.size();
        std::size_t k = 0;
        std::fill_n(to.begin(), count, 0.0);
        for (const double* row = q.data(); k + 4 <= count; k += 4, row += 4 * count) {
            const double v0 = v[k], v1 = v[k + 1], v2 = v[k + 2], v3 = v[k + 3];
#pragma omp simd
            for (std::size_t j = 0; j < count; ++j)
                to[j] += (v0 * row[j] + v1 * row[count + j]) + (v2 * row[2 * count + j] + v3 * row[3 * count + j]);
        }
        for (; k < count; ++k) {
            const double last = v[k];
#pragma omp simd
            for (std::size_t j = 0; j < count; ++j) to[j] += last * q[k * count + j];
        }
    }

    template <class Pass>
    void look(const Pass& pass) {
        for (auto* numbers : {&gradient, &delta, &residual, &direction, &image}) numbers->assign(free.size(), 0.0);
        q.resize(free.size() * free.size());
        for (std::size_t k = 0; k < free.size(); ++k) {
            const Index i = free[k];
            const double y = pass.y[i], m = y * (pass.w[i] + pass.b + pass.s * pass.inverse_rho);
            gradient[k] = Loss::gradient(pass.alpha[i], m, pass.c[i]);
            const double* const row = rows.row(i);
            for (std::size_t other = 0; other < free.size(); ++other)
                q[k * free.size() + other] = y * pass.y[free[other]] * (row[free[other]] + pass.inverse_rho);
            q[k * free.size() + k] += Loss::bend_of_row(pass.c[i]);
        }
    }

    // Qδ = −g, roughly: which of them will come to a wall is not known yet.
    void solve() {
        constexpr double precise = 1e-3, flat = 1e-12;
        constexpr int most = 15;
        for (std::size_t k = 0; k < free.size(); ++k) residual[k] = direction[k] = -gradient[k];
        double square = inner(residual, residual), steepest = 0;
        for (std::size_t k = 0; k < free.size(); ++k) steepest = std::max(steepest, q[k * free.size() + k]);
        const double enough = precise * square;
        for (int k = 0; k < most && square > enough; ++k) {
            multiply(direction, image), products += size();
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
        auto &cut = residual, &short_of = direction;
        double share = 1;
        cut = delta;
        for (std::size_t k = 0; k < free.size(); ++k) {
            const double alpha = pass.alpha[free[k]], next = alpha + delta[k], upper = Loss::upper(pass.c[free[k]]);
            if (next > Loss::lower() && next < upper) continue;
            cut[k] = (next < upper ? Loss::lower() : upper) - alpha;
            share = std::min(share, cut[k] / delta[k]);
        }
        if (share == 1) return true;
        for (std::size_t k = 0; k < free.size(); ++k) short_of[k] = share * delta[k];
        delta = gain(cut) > gain(short_of) ? cut : short_of;
        return false;
    }

    double gain(const std::vector<double>& step) {
        multiply(step, image);
        return -inner(gradient, step) - inner(step, image) / 2;
    }
};

}  // namespace widemargin
