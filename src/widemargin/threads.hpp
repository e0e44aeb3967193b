// THREADS: a fixed number of pieces of work, shared out over any number of threads.
//
// What is computed depends on the pieces alone, so every sum comes out the same bits however many threads there are.
#pragma once

#include <latch>
#include <thread>
#include <vector>

namespace widemargin {

// Runs work(thread) for thread = 0 … threads−1 at once. No work begins before all threads are there: should the system
// refuse one, the others would wait for it at the first barrier. The work itself must not throw.
template <class Work>
void run_threads(int threads, Work work) {
    if (threads == 1) return work(0);
    std::vector<std::thread> team;
    team.reserve(static_cast<std::size_t>(threads));
    std::latch all_here(1);
    bool go = false;
    const auto finish = [&] {
        all_here.count_down();
        for (auto& member : team) member.join();
    };
    try {
        for (int t = 0; t < threads; ++t)
            team.emplace_back([&, t] {
                all_here.wait();
                if (go) work(t);
            });
    } catch (...) {
        finish();
        throw;
    }
    go = true;
    finish();
}

// Runs work(piece) once for every piece.
template <class Work>
void run_pieces(int pieces, int threads, Work work) {
    threads = threads < pieces ? threads : pieces;
    if (threads <= 1) {
        for (int piece = 0; piece < pieces; ++piece) work(piece);
        return;
    }
    run_threads(threads, [&](int t) {
        for (int piece = t; piece < pieces; piece += threads) work(piece);
    });
}

}  // namespace widemargin
