#include "simulate/memory.hpp"

namespace flywheel::simulate::memory {

void begin_run() {}
void thread_begins(std::uint32_t, std::uint32_t) {}
void thread_joined(std::uint32_t) {}
void acquire(const void*) {}
void release(const void*) {}
void forget(const void*, std::size_t) {}
void plain(const void*, std::size_t, bool, const void*) {}
std::uint64_t load(const void*, std::size_t, std::uint64_t newest, int, const void*) { return newest; }
void store(const void*, std::size_t, std::uint64_t, std::uint64_t, int, const void*) {}
void update(const void*, std::size_t, std::uint64_t, std::uint64_t, int, const void*) {}
void fence(int) {}

}  // namespace flywheel::simulate::memory
