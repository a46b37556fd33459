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

/// 32 neighbours as 16 pairs, and 16 pairs that hold the numbers of two vectors in the same lane; rounded to
/// the nearest, ties to even, subnormal numbers to 0. Pairs are moved as floats, whose bits stay as they are.
inline F16 roundedNeighbours(F16 low, F16 high) {
  return {_mm512_castsi512_ps(reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high.v, low.v)))};
}
inline F16 roundedPairs(F16 firsts, F16 seconds) {
  const __m512i lanes = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21,
                                         5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
  const __m512i halves = _mm512_castps_si512(roundedNeighbours(firsts, seconds).v);
  return {_mm512_castsi512_ps(_mm512_permutexvar_epi16(lanes, halves))};
}

}  // namespace DRMAS_ISA
}  // namespace drmas
