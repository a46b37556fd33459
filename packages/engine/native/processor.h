// The abilities of this processor and its operating system. The compilers' own test, __builtin_cpu_supports, needs a
// part of the compiler's runtime that not every linker brings into a shared library.
#pragma once

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <cstdint>
#include <cstring>

namespace drmas {

enum class Maker { Other, Intel, Amd };

struct Processor {
  Maker maker = Maker::Other;
  bool avx2 = false;
  bool avx512 = false;
  bool avx512Bfloat16 = false;
  bool avx512Vnni = false;
  bool amxBfloat16 = false;  // once the system permits it: permitTiles()
};

inline Processor thisProcessor() {
  Processor found;
  uint32_t a, b, c, d;
  if (__get_cpuid(0, &a, &b, &c, &d)) {
    char name[12];
    const uint32_t parts[] = {b, d, c};
    std::memcpy(name, parts, sizeof name);
    const auto is = [&](const char* maker) { return std::memcmp(name, maker, sizeof name) == 0; };
    found.maker = is("GenuineIntel") ? Maker::Intel : is("AuthenticAMD") ? Maker::Amd : Maker::Other;
  }
  const uint32_t kFma = 1u << 12, kStatesByXsave = 1u << 27;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & kFma) || !(c & kStatesByXsave)) return found;
  // Which registers the operating system saves when it changes between programs.
  uint32_t states, high;
  asm volatile("xgetbv" : "=a"(states), "=d"(high) : "c"(0));
  const uint32_t kVectors = 0x6, kWideVectors = 0xe6;
  if ((states & kVectors) != kVectors || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return found;
  const uint32_t kAvx2 = 1u << 5;
  const uint32_t kAvx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;  // F, DQ, BW, VL
  found.avx2 = b & kAvx2;
  const bool moreLeaves = a >= 1;
  const uint32_t kTiles = 0x60000, kAmx = 1u << 22 | 1u << 24;  // BF16, TILE
  found.amxBfloat16 = (states & kTiles) == kTiles && (d & kAmx) == kAmx;
  found.avx512 = (states & kWideVectors) == kWideVectors && (b & kAvx512) == kAvx512;
  found.avx512Vnni = found.avx512 && c & 1u << 11;
  if (!found.avx512 || !moreLeaves || !__get_cpuid_count(7, 1, &a, &b, &c, &d)) return found;
  found.avx512Bfloat16 = a & 1u << 5;
  return found;
}

/// Asks the system that this process may use AMX's tiles, which take 8 KiB of each thread's saved state: Linux grants
/// it to all threads at once; other systems need no request. False if there is no permission.
inline bool permitTiles() {
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

/// Whether this process may multiply pairs of bfloat16 with AVX512-BF16, and in AMX's tiles. Numbers are rounded for
/// tiles by AVX512-BF16.
inline bool hasPairs() { return thisProcessor().avx512Bfloat16; }
inline bool hasTiles() { return thisProcessor().avx512Bfloat16 && thisProcessor().amxBfloat16 && permitTiles(); }

/// Intel's cores multiply pairs at half the speed of floats: without tiles they widen, unless the caller wants pairs.
inline bool prefersPairs() { return hasPairs() && thisProcessor().maker != Maker::Intel; }

}  // namespace drmas
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace drmas {

/// Whether this processor multiplies and adds four numbers of 8 bits at a time, by AVX512-VNNI or by ARM's SDOT.
inline bool hasFours() {
#if defined(__x86_64__)
  return thisProcessor().avx512Vnni;
#elif defined(__ARM_FEATURE_DOTPROD)
  return true;
#elif defined(__aarch64__) && defined(__linux__)
  constexpr unsigned long kDotProducts = 1ul << 20;  // HWCAP_ASIMDDP
  return getauxval(AT_HWCAP) & kDotProducts;
#else
  return false;
#endif
}

}  // namespace drmas
