// One logical vector of 16 floats on every instruction set: a 512-bit register, two 256-bit ones, four 128-bit ones in
// WebAssembly, or four of the compiler's own for any other target. Since lanes and their order are the same everywhere and
// multiply-add is fused on AVX-512, AVX2 and ARM, those give the same bits (`npm run test:arm`). WebAssembly has no fused
// multiply-add that all engines offer: it rounds the product too.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#include "table.h"

#if defined(__AVX512F__) || (defined(__AVX2__) && defined(__FMA__))
#include <immintrin.h>
#elif defined(__wasm_simd128__)
#include <wasm_simd128.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace drmas {
namespace DRMAS_ISA {

constexpr int kLanes = 16;

#if defined(__AVX512F__)

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

#elif defined(__AVX2__) && defined(__FMA__)

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

#elif defined(__wasm_simd128__)

struct F16 {
  v128_t a, b, c, d;
};
inline F16 broadcast(float x) {
  const v128_t v = wasm_f32x4_splat(x);
  return {v, v, v, v};
}
inline F16 zero() { return broadcast(0.f); }
inline F16 load(const float* p) {
  return {wasm_v128_load(p), wasm_v128_load(p + 4), wasm_v128_load(p + 8), wasm_v128_load(p + 12)};
}
inline F16 load(const Bfloat16* p) {
  const auto quarter = [](const Bfloat16* q) { return wasm_i32x4_shl(wasm_u32x4_load16x4(q), 16); };
  return {quarter(p), quarter(p + 4), quarter(p + 8), quarter(p + 12)};
}
inline void store(float* p, F16 x) {
  wasm_v128_store(p, x.a);
  wasm_v128_store(p + 4, x.b);
  wasm_v128_store(p + 8, x.c);
  wasm_v128_store(p + 12, x.d);
}
inline v128_t loadQuarter(const float* p, int n, float fill) {
  if (n >= 4) return wasm_v128_load(p);
  return wasm_f32x4_make(n > 0 ? p[0] : fill, n > 1 ? p[1] : fill, n > 2 ? p[2] : fill, fill);
}
inline void storeQuarter(float* p, v128_t x, int n) {
  if (n >= 4) return wasm_v128_store(p, x);
  if (n > 0) wasm_v128_store32_lane(p, x, 0);
  if (n > 1) wasm_v128_store32_lane(p + 1, x, 1);
  if (n > 2) wasm_v128_store32_lane(p + 2, x, 2);
}
inline F16 loadPartial(const float* p, int n, float fill = 0.f) {
  return {loadQuarter(p, n, fill), loadQuarter(p + 4, n - 4, fill), loadQuarter(p + 8, n - 8, fill),
          loadQuarter(p + 12, n - 12, fill)};
}
inline void storePartial(float* p, F16 x, int n) {
  storeQuarter(p, x.a, n);
  storeQuarter(p + 4, x.b, n - 4);
  storeQuarter(p + 8, x.c, n - 8);
  storeQuarter(p + 12, x.d, n - 12);
}
inline v128_t keepQuarter(v128_t x, int n, v128_t fill) {
  return wasm_v128_bitselect(x, fill, wasm_i32x4_gt(wasm_i32x4_splat(n), wasm_i32x4_const(0, 1, 2, 3)));
}
inline F16 keepLanes(F16 x, int n, float fill) {
  const v128_t f = wasm_f32x4_splat(fill);
  return {keepQuarter(x.a, n, f), keepQuarter(x.b, n - 4, f), keepQuarter(x.c, n - 8, f), keepQuarter(x.d, n - 12, f)};
}
inline F16 operator+(F16 x, F16 y) {
  return {wasm_f32x4_add(x.a, y.a), wasm_f32x4_add(x.b, y.b), wasm_f32x4_add(x.c, y.c), wasm_f32x4_add(x.d, y.d)};
}
inline F16 operator-(F16 x, F16 y) {
  return {wasm_f32x4_sub(x.a, y.a), wasm_f32x4_sub(x.b, y.b), wasm_f32x4_sub(x.c, y.c), wasm_f32x4_sub(x.d, y.d)};
}
inline F16 operator*(F16 x, F16 y) {
  return {wasm_f32x4_mul(x.a, y.a), wasm_f32x4_mul(x.b, y.b), wasm_f32x4_mul(x.c, y.c), wasm_f32x4_mul(x.d, y.d)};
}
inline F16 operator/(F16 x, F16 y) {
  return {wasm_f32x4_div(x.a, y.a), wasm_f32x4_div(x.b, y.b), wasm_f32x4_div(x.c, y.c), wasm_f32x4_div(x.d, y.d)};
}
inline F16 fma(F16 x, F16 y, F16 z) { return x * y + z; }
// Pseudo-maximum and -minimum, operands swapped: like those of x86, they give y where one is not a number.
inline F16 max(F16 x, F16 y) {
  return {wasm_f32x4_pmax(y.a, x.a), wasm_f32x4_pmax(y.b, x.b), wasm_f32x4_pmax(y.c, x.c), wasm_f32x4_pmax(y.d, x.d)};
}
inline F16 min(F16 x, F16 y) {
  return {wasm_f32x4_pmin(y.a, x.a), wasm_f32x4_pmin(y.b, x.b), wasm_f32x4_pmin(y.c, x.c), wasm_f32x4_pmin(y.d, x.d)};
}
inline F16 sqrt(F16 x) {
  return {wasm_f32x4_sqrt(x.a), wasm_f32x4_sqrt(x.b), wasm_f32x4_sqrt(x.c), wasm_f32x4_sqrt(x.d)};
}
inline F16 roundToEven(F16 x) {
  return {wasm_f32x4_nearest(x.a), wasm_f32x4_nearest(x.b), wasm_f32x4_nearest(x.c), wasm_f32x4_nearest(x.d)};
}
/// 1.5 · 2^23 + n holds n in its lowest bits, and the rest of its bits leave by the shift.
inline v128_t scaleQuarter(v128_t x, v128_t n) {
  return wasm_i32x4_add(x, wasm_i32x4_shl(wasm_f32x4_add(n, wasm_f32x4_const_splat(12582912.f)), 23));
}
inline F16 scaleByPowerOfTwo(F16 x, F16 n) {
  return {scaleQuarter(x.a, n.a), scaleQuarter(x.b, n.b), scaleQuarter(x.c, n.c), scaleQuarter(x.d, n.d)};
}
inline F16 zeroBelow(F16 y, F16 x, F16 limit) {
  return {wasm_v128_andnot(y.a, wasm_f32x4_lt(x.a, limit.a)), wasm_v128_andnot(y.b, wasm_f32x4_lt(x.b, limit.b)),
          wasm_v128_andnot(y.c, wasm_f32x4_lt(x.c, limit.c)), wasm_v128_andnot(y.d, wasm_f32x4_lt(x.d, limit.d))};
}
inline F16 swapHalves(F16 x) { return {x.c, x.d, x.a, x.b}; }
inline void lanes(F16 x, float* out) { store(out, x); }

#else

// Vectors of the compiler's own, which it turns into those of the target: SSE2, NEON.
typedef float Quad __attribute__((vector_size(16)));
typedef uint32_t QuadBits __attribute__((vector_size(16)));
typedef Bfloat16 QuadBfloat16 __attribute__((vector_size(8)));

struct F16 {
  Quad a, b, c, d;
};
inline F16 broadcast(float x) {
  const Quad q = {x, x, x, x};
  return {q, q, q, q};
}
inline F16 zero() { return broadcast(0.f); }
inline F16 load(const float* p) {
  F16 x;
  std::memcpy(&x, p, sizeof x);
  return x;
}
inline Quad loadQuad(const Bfloat16* p) {
  QuadBfloat16 x;
  std::memcpy(&x, p, sizeof x);
  return (Quad)(__builtin_convertvector(x, QuadBits) << 16);
}
inline F16 load(const Bfloat16* p) { return {loadQuad(p), loadQuad(p + 4), loadQuad(p + 8), loadQuad(p + 12)}; }
inline void store(float* p, F16 x) { std::memcpy(p, &x, sizeof x); }
inline F16 operator+(F16 x, F16 y) { return {x.a + y.a, x.b + y.b, x.c + y.c, x.d + y.d}; }
inline F16 operator-(F16 x, F16 y) { return {x.a - y.a, x.b - y.b, x.c - y.c, x.d - y.d}; }
inline F16 operator*(F16 x, F16 y) { return {x.a * y.a, x.b * y.b, x.c * y.c, x.d * y.d}; }
inline F16 operator/(F16 x, F16 y) { return {x.a / y.a, x.b / y.b, x.c / y.c, x.d / y.d}; }
#if defined(__aarch64__)
inline F16 fma(F16 x, F16 y, F16 z) {
  return {vfmaq_f32(z.a, x.a, y.a), vfmaq_f32(z.b, x.b, y.b), vfmaq_f32(z.c, x.c, y.c), vfmaq_f32(z.d, x.d, y.d)};
}
#else
inline F16 fma(F16 x, F16 y, F16 z) { return x * y + z; }
#endif
// Like those of x86, they give y where one is not a number.
inline F16 max(F16 x, F16 y) {
  return {x.a > y.a ? x.a : y.a, x.b > y.b ? x.b : y.b, x.c > y.c ? x.c : y.c, x.d > y.d ? x.d : y.d};
}
inline F16 min(F16 x, F16 y) {
  return {x.a < y.a ? x.a : y.a, x.b < y.b ? x.b : y.b, x.c < y.c ? x.c : y.c, x.d < y.d ? x.d : y.d};
}
inline F16 sqrt(F16 x) {
  alignas(64) float t[kLanes];
  store(t, x);
  for (float& lane : t) lane = std::sqrt(lane);
  return load(t);
}
// Adding and taking away 1.5 · 2^23 rounds to the nearest integer, ties to even, for |x| < 2^22.
inline F16 roundToEven(F16 x) { return (x + broadcast(12582912.f)) - broadcast(12582912.f); }
/// 1.5 · 2^23 + n holds n in its lowest bits, and the rest of its bits leave by the shift; not a number stays so.
inline Quad scaleQuad(Quad x, Quad n) { return (Quad)((QuadBits)x + ((QuadBits)n << 23)); }
inline F16 scaleByPowerOfTwo(F16 x, F16 n) {
  const F16 held = n + broadcast(12582912.f);
  return {scaleQuad(x.a, held.a), scaleQuad(x.b, held.b), scaleQuad(x.c, held.c), scaleQuad(x.d, held.d)};
}
inline F16 swapHalves(F16 x) { return {x.c, x.d, x.a, x.b}; }
inline F16 zeroBelow(F16 y, F16 x, F16 limit) {
  const Quad none = {0.f, 0.f, 0.f, 0.f};
  return {x.a < limit.a ? none : y.a, x.b < limit.b ? none : y.b, x.c < limit.c ? none : y.c,
          x.d < limit.d ? none : y.d};
}

#endif

inline F16 loadPartial(const Bfloat16* p, int n) {
  Bfloat16 t[kLanes] = {0};
  for (int i = 0; i < n; i++) t[i] = p[i];
  return load(t);
}

#if !defined(__AVX512F__) && !defined(__wasm_simd128__)
// By way of memory, where a set has no masks.
inline F16 loadPartial(const float* p, int n, float fill = 0.f) {
  alignas(64) float t[kLanes];
  for (int i = 0; i < kLanes; i++) t[i] = i < n ? p[i] : fill;
  return load(t);
}
inline void storePartial(float* p, F16 x, int n) {
  alignas(64) float t[kLanes];
  store(t, x);
  for (int i = 0; i < n; i++) p[i] = t[i];
}
inline F16 keepLanes(F16 x, int n, float fill) {
  alignas(64) float t[kLanes];
  store(t, x);
  for (int i = n; i < kLanes; i++) t[i] = fill;
  return load(t);
}
#endif

#if defined(__AVX512F__)
/// Rows become columns.
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
#else
inline void transpose(F16* rows) {
  alignas(64) float from[kLanes][kLanes], to[kLanes][kLanes];
  for (int i = 0; i < kLanes; i++) store(from[i], rows[i]);
  for (int i = 0; i < kLanes; i++)
    for (int j = 0; j < kLanes; j++) to[i][j] = from[j][i];
  for (int i = 0; i < kLanes; i++) rows[i] = load(to[i]);
}
#endif

/// The first n lanes, or all where n >= 16.
inline F16 loadUpTo(const float* p, int n) { return n >= kLanes ? load(p) : loadPartial(p, n); }
inline void storeUpTo(float* p, F16 x, int n) {
  if (n >= kLanes)
    store(p, x);
  else
    storePartial(p, x, n);
}

/// Folds the lanes by one fixed tree, i with i + 8, then + 4, + 2, + 1, so that the result has the same bits everywhere.
#if defined(__AVX2__) && defined(__FMA__)
template <class Fold>
inline float foldEight(__m256 x, const Fold& fold) {
  __m128 four = fold(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  four = fold(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(fold(four, _mm_shuffle_ps(four, four, 1)));
}
#if defined(__AVX512F__)
inline __m256 lowEight(F16 a) { return _mm512_castps512_ps256(a.v); }
inline __m256 highEight(F16 a) { return _mm512_extractf32x8_ps(a.v, 1); }
#else
inline __m256 lowEight(F16 a) { return a.a; }
inline __m256 highEight(F16 a) { return a.b; }
#endif
inline float sumLanes(F16 a) {
  return foldEight(_mm256_add_ps(lowEight(a), highEight(a)), [](__m128 x, __m128 y) { return _mm_add_ps(x, y); });
}
inline float maxLane(F16 a) {
  return foldEight(_mm256_max_ps(lowEight(a), highEight(a)), [](__m128 x, __m128 y) { return _mm_max_ps(x, y); });
}
#else
template <class Fold>
inline float foldLanes(F16 a, const Fold& fold) {
  float t[kLanes];
  store(t, a);
  for (int half = 8; half >= 1; half /= 2)
    for (int i = 0; i < half; i++) t[i] = fold(t[i], t[i + half]);
  return t[0];
}
inline float sumLanes(F16 a) {
  return foldLanes(a, [](float x, float y) { return x + y; });
}
inline float maxLane(F16 a) {
  return foldLanes(a, [](float x, float y) { return x > y ? x : y; });
}
#endif

/// e^x to about 1 ulp, 0 below -87 (where it would leave the normal numbers), e^88 above 88, NaN for NaN.
/// Cody-Waite reduction x = n ln 2 + r with |r| <= ln(2)/2, then the degree-6 minimax polynomial of Cephes' expf.
inline F16 exp(F16 exponent) {
  const F16 lowest = broadcast(-87.f);
  // max and min give their second operand where one is not a number.
  const F16 x = min(broadcast(88.f), max(lowest, exponent));
  const F16 n = roundToEven(x * broadcast(1.44269504088896341f));
  F16 r = fma(n, broadcast(-0.693359375f), x);
  r = fma(n, broadcast(2.12194440e-4f), r);
  F16 p = broadcast(1.9875691500e-4f);
  p = fma(p, r, broadcast(1.3981999507e-3f));
  p = fma(p, r, broadcast(8.3334519073e-3f));
  p = fma(p, r, broadcast(4.1665795894e-2f));
  p = fma(p, r, broadcast(1.6666665459e-1f));
  p = fma(p, r, broadcast(5.0000001201e-1f));
  p = fma(p, r * r, r) + broadcast(1.f);
  return zeroBelow(scaleByPowerOfTwo(p, n), exponent, lowest);
}

/// Calls full(i) for whole vectors of a row of n floats and partial(i, rest) for what remains.
template <class Full, class Partial>
inline void forVectors(long n, const Full& full, const Partial& partial) {
  long i = 0;
  for (; i + kLanes <= n; i += kLanes) full(i);
  if (i < n) partial(i, static_cast<int>(n - i));
}

}  // namespace DRMAS_ISA
}  // namespace drmas
