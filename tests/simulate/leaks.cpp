#include "simulate/leaks.hpp"

#include <link.h>
#include <malloc.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <new>

#include "simulate/memory.hpp"
#include "simulate/scheduler.hpp"

extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
void __libc_free(void* memory);
}

namespace flywheel::simulate::leaks {

int OurOwn::depth = 0;

namespace {

/// Blocks of the program, in a table of its own: it takes no memory from the heap.
constexpr std::size_t kBits = 14, kMost = std::size_t{1} << kBits;
struct Block {
  std::uintptr_t at;  // 0: free; 1: was taken
  std::uintptr_t where;
  bool found;
};
Block blocks[kMost];
std::size_t live = 0, used = 0;
std::uintptr_t lowest = 0, highest = 0;  // all blocks lie between these

/// Neighbours lie side by side, no two closer than this: a run touches few pages of the table.
std::size_t place_of(std::uintptr_t at) { return (at >> 5) % kMost; }

Block* find(std::uintptr_t at) {
  for (std::size_t i = place_of(at);; i = (i + 1) % kMost) {
    if (blocks[i].at == at) return &blocks[i];
    if (!blocks[i].at) return nullptr;
  }
}

void* taken(void* memory, const void* where) {
  if (!memory || OurOwn::depth || !scheduler.on()) return memory;
  const auto at = reinterpret_cast<std::uintptr_t>(memory);
  if (used == kMost / 2) return memory;  // what comes then is not looked after
  std::size_t i = place_of(at);
  while (blocks[i].at > 1) i = (i + 1) % kMost;
  used += blocks[i].at == 0;
  blocks[i] = {at, scheduler.offset_of(where), false};
  ++live;
  if (!lowest || at < lowest) lowest = at;
  if (at > highest) highest = at;
  return memory;
}

void given_back(void* memory) {
  if (!live || !memory) return;
  Block* const block = find(reinterpret_cast<std::uintptr_t>(memory));
  if (!block) return;
  block->at = 1;
  --live;
}

/// Blocks that something in [begin, end) points to, and those that these point to.
void follow(std::uintptr_t begin, std::uintptr_t end) {
  for (std::uintptr_t at = (begin + 7) & ~std::uintptr_t{7}; at + 8 <= end; at += 8) {
    std::uintptr_t word = 0;
    std::memcpy(&word, reinterpret_cast<const void*>(at), sizeof(word));
    if (word < lowest || word > highest) continue;
    Block* const block = find(word);
    if (!block || block->found) continue;
    block->found = true;
    follow(block->at, block->at + malloc_usable_size(reinterpret_cast<void*>(block->at)));
  }
}

/// The static objects of the program and of its libraries, this table not among them.
int follow_statics(dl_phdr_info* info, std::size_t, void*) {
  const auto table = reinterpret_cast<std::uintptr_t>(blocks);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || !(header.p_flags & PF_W)) continue;
    const std::uintptr_t begin = info->dlpi_addr + header.p_vaddr, end = begin + header.p_memsz;
    const bool ours = table >= begin && table < end;
    follow(begin, ours ? table : end);
    if (ours) follow(table + sizeof(blocks), end);
  }
  return 0;
}

}  // namespace

void begin_run() {
  if (used) std::memset(blocks, 0, sizeof(blocks));
  live = used = 0;
  lowest = highest = 0;
}

void check() {
  if (!live) return;
  dl_iterate_phdr(follow_statics, nullptr);
  std::size_t lost = 0;
  const Block* one = nullptr;
  for (const Block& block : blocks)
    if (block.at > 1 && !block.found) ++lost, one = &block;
  if (!lost) return;
  char text[120];
  std::snprintf(text, sizeof(text), "%zu blocks of memory are lost, one of them taken at +0x%llx", lost,
                static_cast<unsigned long long>(one->where));
  finding(text);
}

}  // namespace flywheel::simulate::leaks

namespace leaks = flywheel::simulate::leaks;
#define FLYWHEEL_CALLER __builtin_return_address(0)

extern "C" {

void* malloc(std::size_t bytes) { return leaks::taken(__libc_malloc(bytes), FLYWHEEL_CALLER); }
void* calloc(std::size_t count, std::size_t bytes) { return leaks::taken(__libc_calloc(count, bytes), FLYWHEEL_CALLER); }
void* realloc(void* memory, std::size_t bytes) {
  if (memory) leaks::given_back(memory);
  if (memory && flywheel::simulate::scheduler.on()) flywheel::simulate::memory::forget(memory, malloc_usable_size(memory));
  return leaks::taken(__libc_realloc(memory, bytes), FLYWHEEL_CALLER);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  return leaks::taken(__libc_memalign(alignment, bytes), FLYWHEEL_CALLER);
}

}  // extern "C"

/// As the library's own, but the place that is told of a lost block is the program's.
void* operator new(std::size_t bytes) {
  void* const memory = leaks::taken(__libc_malloc(bytes), FLYWHEEL_CALLER);
  if (!memory) throw std::bad_alloc();
  return memory;
}

extern "C" {

/// Memory that is given back is forgotten: what its next owner does races with nothing.
void free(void* memory) noexcept {
  leaks::given_back(memory);
  if (memory && flywheel::simulate::scheduler.on()) flywheel::simulate::memory::forget(memory, malloc_usable_size(memory));
  __libc_free(memory);
}

}  // extern "C"
