// THREADS: a fixed number of pieces of work, shared out over any number of threads.
//
// What is computed depends on the pieces alone, so every sum comes out the same bits however many threads there are.
#pragma once

#include <thread>
#include <vector>

namespace widemargin {

// Runs work(thread) for thread = 0 … threads−1 at once, the caller's thread among them.
template <class Work>
void run_threads(int threads, Work work) {
    if (threads == 1) return work(0);
    std::vector<std::thread> team;
    team.reserve(static_cast<std::size_t>(threads));
    for (int t = 0; t < threads; ++t) team.emplace_back(work, t);
    for (auto& member : team) member.join();
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
