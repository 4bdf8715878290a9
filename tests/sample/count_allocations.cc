#include "sample/count_allocations.h"

#include <cstdlib>
#include <new>

namespace {
size_t g_allocations = 0;
}

void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++g_allocations;
  return std::malloc(size);
}
void* operator new(size_t size) {
  if (void* memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

size_t sluice::sample::Allocations() { return g_allocations; }
