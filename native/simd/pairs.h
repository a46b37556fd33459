// A vector of 16 pairs of bfloat16 numbers, and AVX512-BF16's multiply-add of two of them to a vector of floats.
#pragma once
#include <immintrin.h>

#include "simd.h"

namespace drmas {
namespace DRMAS_ISA {

struct Pairs16 {
  __m512i v;
};
inline Pairs16 load(const Pair* p) { return {_mm512_loadu_si512(p)}; }
inline Pairs16 loadUpTo(const Pair* p, int n) {
  return n >= kLanes ? load(p) : Pairs16{_mm512_maskz_loadu_epi32(maskOf(n), p)};
}
inline void store(Pair* p, Pairs16 a) { _mm512_storeu_si512(p, a.v); }
inline Pairs16 broadcast(Pair a) { return {_mm512_set1_epi32(static_cast<int>(a.bits))}; }
/// c + a.second · b.second, and to that sum a.first · b.first; subnormal numbers count as 0 in all of it.
inline F16 fma(Pairs16 a, Pairs16 b, F16 c) {
  return {_mm512_dpbf16_ps(c.v, reinterpret_cast<__m512bh>(a.v), reinterpret_cast<__m512bh>(b.v))};
}

}  // namespace DRMAS_ISA
}  // namespace drmas
