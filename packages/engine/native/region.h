// Memory of JavaScript's buffers: zeroed, aligned to cache lines, and on large pages if it is large and the system
// has them. A key/value cache is read in so many places at once that ordinary pages do not fit the processor's page
// table cache. Large regions are not touched before they are used.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(_WIN32)
#include <malloc.h>
#endif

namespace drmas {

class Region {
 public:
  /// Null when there is not so much memory.
  static Region* zeroed(size_t bytes) {
    auto* region = new (std::nothrow) Region;
    if (region && !region->take(bytes)) {
      delete region;
      return nullptr;
    }
    return region;
  }
  ~Region() {
#if defined(__linux__)
    if (mapped_ > 0) {
      munmap(base_, mapped_);
      return;
    }
#endif
#if defined(_WIN32)
    _aligned_free(base_);
#else
    std::free(base_);
#endif
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  void* start() const { return start_; }

 private:
  static constexpr size_t kLargePage = size_t{2} << 20;

  Region() = default;

  bool take(size_t bytes) {
#if defined(__linux__)
    if (bytes >= 2 * kLargePage) {
      const size_t whole = (bytes + kLargePage - 1) / kLargePage * kLargePage;
      base_ = mmap(nullptr, whole + kLargePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (base_ == MAP_FAILED) {
        base_ = nullptr;
        return false;
      }
      mapped_ = whole + kLargePage;
      const auto address = reinterpret_cast<uintptr_t>(base_);
      start_ = reinterpret_cast<void*>((address + kLargePage - 1) / kLargePage * kLargePage);
      madvise(start_, whole, MADV_HUGEPAGE);  // where there are none, small ones do
      return true;
    }
#endif
    // Not a byte more than asked for, so that the address sanitizer sees whoever goes beyond.
    const size_t size = bytes > 0 ? bytes : 1;
#if defined(_WIN32)
    base_ = _aligned_malloc(size, 64);
    if (!base_) return false;
#else
    if (posix_memalign(&base_, 64, size) != 0) {
      base_ = nullptr;
      return false;
    }
#endif
    std::memset(base_, 0, size);
    start_ = base_;
    return true;
  }

  void* base_ = nullptr;
  void* start_ = nullptr;
  size_t mapped_ = 0;
};

}  // namespace drmas
