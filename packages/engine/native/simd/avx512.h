// A vector of 16 floats as one 512-bit register.
#pragma once
#include <immintrin.h>

#include "lanes.h"

namespace drmas {
namespace DRMAS_ISA {

struct F16 {
  __m512 v;
};
inline F16 zero() { return {_mm512_setzero_ps()}; }
inline F16 broadcast(float x) { return {_mm512_set1_ps(x)}; }
inline F16 load(const float* p) { return {_mm512_loadu_ps(p)}; }
/// 16 bfloat16 numbers, each the upper half of the bits of a float: the lower one is 0, so that no value changes.
inline F16 load(const Bfloat16* p) {
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}
inline void store(float* p, F16 a) { _mm512_storeu_ps(p, a.v); }

/// 16 whole numbers of 32 bits, or as many pairs of 16 bits or fours of 8 bits.
struct Whole16 {
  __m512i v;
};
inline Whole16 wholes(int32_t x) { return {_mm512_set1_epi32(x)}; }
inline Whole16 load(const int32_t* p) { return {_mm512_loadu_si512(p)}; }
inline Whole16 load(const int8_t* p) {
  return {_mm512_cvtepi8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
/// The lower or the upper halves of 16 bytes, from 0 to 15.
inline Whole16 loadHalves(const uint8_t* p, bool upper) {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return {_mm512_cvtepi8_epi32(_mm_and_si128(upper ? _mm_srli_epi16(bytes, 4) : bytes, _mm_set1_epi8(15)))};
}
inline void store(int32_t* p, Whole16 a) { _mm512_storeu_si512(p, a.v); }
inline F16 floats(Whole16 a) { return {_mm512_cvtepi32_ps(a.v)}; }
/// To the nearest, ties to even.
inline Whole16 rounded(F16 a) { return {_mm512_cvtps_epi32(a.v)}; }
inline Whole16 paired(Whole16 firsts, Whole16 seconds) {
  return {_mm512_mask_blend_epi16(0xaaaaaaaau, firsts.v, _mm512_slli_epi32(seconds.v, 16))};
}
/// sum + weights.first · factors.first + weights.second · factors.second of pairs, which all lanes share.
inline Whole16 addPairs(Whole16 sum, Whole16 weights, const int32_t* factors) {
  return {_mm512_add_epi32(sum.v, _mm512_madd_epi16(weights.v, _mm512_set1_epi32(*factors)))};
}
#define DRMAS_FOURS
/// The same of four numbers, by AVX512-VNNI, which the set's flags do not include: weights from 0 to 255.
inline __attribute__((always_inline)) Whole16 addFours(Whole16 sum, Whole16 weights, const int32_t* factors) {
  asm("vpdpbusd %2, %1, %0" : "+v"(sum.v) : "v"(weights.v), "v"(_mm512_set1_epi32(*factors)));
  return sum;
}
/// Bytes of four lines of 16, turned: lane i has byte i of each line.
inline Whole16 turnedFours(const uint8_t* p) {
  const __m512i lines = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  const __m512i bytes = _mm512_broadcast_i32x4(_mm_set_epi32(0x0f0b0703, 0x0e0a0602, 0x0d090501, 0x0c080400));
  return {_mm512_shuffle_epi8(_mm512_permutexvar_epi32(lines, _mm512_loadu_si512(p)), bytes)};
}
/// The form in which `addFours` takes weights with signs: kFoursAbove above their values.
constexpr int32_t kFoursAbove = 128;
inline Whole16 signedFours(Whole16 fours) { return {_mm512_xor_si512(fours.v, _mm512_set1_epi8(-128))}; }
/// The lower or the upper halves of bytes.
inline Whole16 halves(Whole16 fours, bool upper) {
  return {_mm512_and_si512(upper ? _mm512_srli_epi16(fours.v, 4) : fours.v, _mm512_set1_epi8(15))};
}
/// 16 numbers from -127 to 127 as bytes.
inline void storeBytes(int8_t* p, F16 a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(rounded(a).v));
}
inline __mmask16 maskOf(int n) { return static_cast<__mmask16>((1u << n) - 1u); }
/// Lanes >= n (0 < n < 16, for keepLanes 0 to 16) are `fill` and their memory is not touched.
inline F16 loadPartial(const float* p, int n, float fill = 0.f) {
  return {_mm512_mask_loadu_ps(_mm512_set1_ps(fill), maskOf(n), p)};
}
inline void storePartial(float* p, F16 a, int n) { _mm512_mask_storeu_ps(p, maskOf(n), a.v); }
inline F16 keepLanes(F16 a, int n, float fill) { return {_mm512_mask_mov_ps(_mm512_set1_ps(fill), maskOf(n), a.v)}; }
inline F16 fma(F16 a, F16 b, F16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline F16 operator+(F16 a, F16 b) { return {_mm512_add_ps(a.v, b.v)}; }
inline F16 operator-(F16 a, F16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline F16 operator*(F16 a, F16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline F16 operator/(F16 a, F16 b) { return {_mm512_div_ps(a.v, b.v)}; }
inline F16 max(F16 a, F16 b) { return {_mm512_max_ps(a.v, b.v)}; }
inline F16 min(F16 a, F16 b) { return {_mm512_min_ps(a.v, b.v)}; }
inline F16 sqrt(F16 a) { return {_mm512_sqrt_ps(a.v)}; }
inline F16 roundToEven(F16 a) {
  return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
/// a · 2^n for integral n in [-126, 127] and normal results.
inline F16 scaleByPowerOfTwo(F16 a, F16 n) {
  const __m512i shifted = _mm512_slli_epi32(_mm512_cvtps_epi32(n.v), 23);
  return {_mm512_castsi512_ps(_mm512_add_epi32(_mm512_castps_si512(a.v), shifted))};
}
/// Lanes 8..15, then 0..7.
inline F16 swapHalves(F16 a) { return {_mm512_shuffle_f32x4(a.v, a.v, 0x4e)}; }
/// 0 where x < limit, else a (also where x is not a number).
inline F16 zeroBelow(F16 a, F16 x, F16 limit) {
  return {_mm512_mask_mov_ps(a.v, _mm512_cmp_ps_mask(x.v, limit.v, _CMP_LT_OQ), _mm512_setzero_ps())};
}
inline __m256 lowEight(F16 a) { return _mm512_castps512_ps256(a.v); }
inline __m256 highEight(F16 a) { return _mm512_extractf32x8_ps(a.v, 1); }

/// Transposes 16 vectors of 16 lanes: rows become columns.
inline void transpose(F16* rows) {
  __m512 pairs[kLanes], fours[kLanes];
  for (int i = 0; i < kLanes; i += 2) {
    pairs[i] = _mm512_unpacklo_ps(rows[i].v, rows[i + 1].v);
    pairs[i + 1] = _mm512_unpackhi_ps(rows[i].v, rows[i + 1].v);
  }
  const auto wide = [](__m512 a) { return _mm512_castps_pd(a); };
  for (int i = 0; i < kLanes; i += 4)
    for (int half = 0; half < 2; half++) {
      const __m512d a = wide(pairs[i + half]), b = wide(pairs[i + half + 2]);
      fours[i + 2 * half] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, b));
      fours[i + 2 * half + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, b));
    }
  // fours[4 b + c] holds column 4 q + c of rows 4 b to 4 b + 3 in its quarter q.
  for (int c = 0; c < 4; c++) {
    const __m512 evenLow = _mm512_shuffle_f32x4(fours[c], fours[4 + c], 0x88);
    const __m512 evenHigh = _mm512_shuffle_f32x4(fours[8 + c], fours[12 + c], 0x88);
    const __m512 oddLow = _mm512_shuffle_f32x4(fours[c], fours[4 + c], 0xdd);
    const __m512 oddHigh = _mm512_shuffle_f32x4(fours[8 + c], fours[12 + c], 0xdd);
    rows[c].v = _mm512_shuffle_f32x4(evenLow, evenHigh, 0x88);
    rows[4 + c].v = _mm512_shuffle_f32x4(oddLow, oddHigh, 0x88);
    rows[8 + c].v = _mm512_shuffle_f32x4(evenLow, evenHigh, 0xdd);
    rows[12 + c].v = _mm512_shuffle_f32x4(oddLow, oddHigh, 0xdd);
  }
}

}  // namespace DRMAS_ISA
}  // namespace drmas
