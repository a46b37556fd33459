// A vector of 16 floats as two 256-bit registers.
#pragma once
#include <immintrin.h>

#include "lanes.h"

namespace drmas {
namespace DRMAS_ISA {

struct F16 {
  __m256 a, b;
};
inline F16 zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
inline F16 broadcast(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline F16 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline __m256 loadHalf(const Bfloat16* p) {
  const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return _mm256_castsi256_ps(_mm256_slli_epi32(wide, 16));
}
inline F16 load(const Bfloat16* p) { return {loadHalf(p), loadHalf(p + 8)}; }
inline void store(float* p, F16 x) {
  _mm256_storeu_ps(p, x.a);
  _mm256_storeu_ps(p + 8, x.b);
}

/// 16 whole numbers of 32 bits, or as many pairs of 16 bits.
struct Whole16 {
  __m256i a, b;
};
inline Whole16 wholes(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
inline Whole16 load(const int32_t* p) {
  const auto* from = reinterpret_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(from), _mm256_loadu_si256(from + 1)};
}
inline Whole16 widenedBytes(__m128i bytes) {
  return {_mm256_cvtepi8_epi32(bytes), _mm256_cvtepi8_epi32(_mm_unpackhi_epi64(bytes, bytes))};
}
inline Whole16 load(const int8_t* p) { return widenedBytes(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))); }
/// The lower or the upper halves of 16 bytes, from 0 to 15.
inline Whole16 loadHalves(const uint8_t* p, bool upper) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return widenedBytes(_mm_and_si128(upper ? _mm_srli_epi16(bytes, 4) : bytes, _mm_set1_epi8(15)));
}
inline void store(int32_t* p, Whole16 x) {
  auto* to = reinterpret_cast<__m256i*>(p);
  _mm256_storeu_si256(to, x.a);
  _mm256_storeu_si256(to + 1, x.b);
}
inline F16 floats(Whole16 x) { return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)}; }
inline Whole16 paired(Whole16 firsts, Whole16 seconds) {
  const auto half = [](__m256i x, __m256i y) { return _mm256_blend_epi16(x, _mm256_slli_epi32(y, 16), 0xaa); };
  return {half(firsts.a, seconds.a), half(firsts.b, seconds.b)};
}
/// sum + weights.first · factors.first + weights.second · factors.second of pairs, which all lanes share.
inline Whole16 addPairs(Whole16 sum, Whole16 weights, const int32_t* factors) {
  const __m256i both = _mm256_set1_epi32(*factors);
  return {_mm256_add_epi32(sum.a, _mm256_madd_epi16(weights.a, both)),
          _mm256_add_epi32(sum.b, _mm256_madd_epi16(weights.b, both))};
}

inline F16 fma(F16 x, F16 y, F16 z) { return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)}; }
inline F16 operator+(F16 x, F16 y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
inline F16 operator-(F16 x, F16 y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
inline F16 operator*(F16 x, F16 y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
inline F16 operator/(F16 x, F16 y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
inline F16 max(F16 x, F16 y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
inline F16 min(F16 x, F16 y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
inline F16 sqrt(F16 x) { return {_mm256_sqrt_ps(x.a), _mm256_sqrt_ps(x.b)}; }
inline F16 roundToEven(F16 x) {
  constexpr int mode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  return {_mm256_round_ps(x.a, mode), _mm256_round_ps(x.b, mode)};
}
inline __m256 scaleHalf(__m256 a, __m256 n) {
  const __m256i shifted = _mm256_slli_epi32(_mm256_cvtps_epi32(n), 23);
  return _mm256_castsi256_ps(_mm256_add_epi32(_mm256_castps_si256(a), shifted));
}
inline F16 scaleByPowerOfTwo(F16 x, F16 n) { return {scaleHalf(x.a, n.a), scaleHalf(x.b, n.b)}; }
inline F16 swapHalves(F16 x) { return {x.b, x.a}; }
inline F16 zeroBelow(F16 y, F16 x, F16 limit) {
  return {_mm256_andnot_ps(_mm256_cmp_ps(x.a, limit.a, _CMP_LT_OQ), y.a),
          _mm256_andnot_ps(_mm256_cmp_ps(x.b, limit.b, _CMP_LT_OQ), y.b)};
}
inline __m256 lowEight(F16 x) { return x.a; }
inline __m256 highEight(F16 x) { return x.b; }

/// Transposes 8 vectors of 8 lanes.
inline void transposeEight(__m256* rows) {
  __m256 pairs[8], fours[8];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
  }
  for (int i = 0; i < 8; i += 4)
    for (int half = 0; half < 2; half++) {
      fours[i + 2 * half] = _mm256_shuffle_ps(pairs[i + half], pairs[i + half + 2], 0x44);
      fours[i + 2 * half + 1] = _mm256_shuffle_ps(pairs[i + half], pairs[i + half + 2], 0xee);
    }
  for (int i = 0; i < 4; i++) {
    rows[i] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x20);
    rows[i + 4] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x31);
  }
}
/// Transposes 16 vectors of 16 lanes: rows become columns. Of its quarters the two off the diagonal change places.
inline void transpose(F16* rows) {
  __m256 quarters[2][2][8];
  for (int i = 0; i < kLanes; i++) quarters[i / 8][0][i % 8] = rows[i].a, quarters[i / 8][1][i % 8] = rows[i].b;
  for (auto& half : quarters)
    for (__m256* quarter : half) transposeEight(quarter);
  for (int i = 0; i < kLanes; i++) rows[i] = {quarters[0][i / 8][i % 8], quarters[1][i / 8][i % 8]};
}

}  // namespace DRMAS_ISA
}  // namespace drmas
