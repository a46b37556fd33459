// One logical vector of 16 floats on every instruction set: a 512-bit register, two 256-bit ones, or plain C++ that the
// compiler vectorises as far as the target allows. Since lanes and their order are the same everywhere and multiply-add is
// fused on AVX-512, AVX2 and ARM, those give the same bits.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__AVX512F__) || (defined(__AVX2__) && defined(__FMA__))
#include <immintrin.h>
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
inline void store(float* p, F16 a) { _mm512_storeu_ps(p, a.v); }
inline __mmask16 maskOf(int n) { return static_cast<__mmask16>((1u << n) - 1u); }
/// Lanes >= n (0 < n < 16) are `fill` and their memory is not touched.
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
/// 0 where x < limit, else a (also where x is not a number).
inline F16 zeroBelow(F16 a, F16 x, F16 limit) {
  return {_mm512_mask_mov_ps(a.v, _mm512_cmp_ps_mask(x.v, limit.v, _CMP_LT_OQ), _mm512_setzero_ps())};
}
inline void lanes(F16 a, float* out) { _mm512_storeu_ps(out, a.v); }

#elif defined(__AVX2__) && defined(__FMA__)

struct F16 {
  __m256 a, b;
};
inline F16 zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
inline F16 broadcast(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline F16 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline void store(float* p, F16 x) {
  _mm256_storeu_ps(p, x.a);
  _mm256_storeu_ps(p + 8, x.b);
}
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
inline F16 zeroBelow(F16 y, F16 x, F16 limit) {
  return {_mm256_andnot_ps(_mm256_cmp_ps(x.a, limit.a, _CMP_LT_OQ), y.a),
          _mm256_andnot_ps(_mm256_cmp_ps(x.b, limit.b, _CMP_LT_OQ), y.b)};
}
inline void lanes(F16 x, float* out) { store(out, x); }

#else

struct F16 {
  float v[kLanes];
};
#define DRMAS_LANES(expression)                       \
  F16 r;                                              \
  for (int i = 0; i < kLanes; i++) r.v[i] = expression; \
  return r
inline F16 zero() { DRMAS_LANES(0.f); }
inline F16 broadcast(float x) { DRMAS_LANES(x); }
inline F16 load(const float* p) { DRMAS_LANES(p[i]); }
inline void store(float* p, F16 a) {
  for (int i = 0; i < kLanes; i++) p[i] = a.v[i];
}
inline F16 loadPartial(const float* p, int n, float fill = 0.f) { DRMAS_LANES(i < n ? p[i] : fill); }
inline void storePartial(float* p, F16 a, int n) {
  for (int i = 0; i < n; i++) p[i] = a.v[i];
}
inline F16 keepLanes(F16 a, int n, float fill) { DRMAS_LANES(i < n ? a.v[i] : fill); }
#if defined(__aarch64__)
inline F16 fma(F16 a, F16 b, F16 c) { DRMAS_LANES(__builtin_fmaf(a.v[i], b.v[i], c.v[i])); }
#else
inline F16 fma(F16 a, F16 b, F16 c) { DRMAS_LANES(a.v[i] * b.v[i] + c.v[i]); }
#endif
inline F16 operator+(F16 a, F16 b) { DRMAS_LANES(a.v[i] + b.v[i]); }
inline F16 operator-(F16 a, F16 b) { DRMAS_LANES(a.v[i] - b.v[i]); }
inline F16 operator*(F16 a, F16 b) { DRMAS_LANES(a.v[i] * b.v[i]); }
inline F16 operator/(F16 a, F16 b) { DRMAS_LANES(a.v[i] / b.v[i]); }
inline F16 max(F16 a, F16 b) { DRMAS_LANES(a.v[i] > b.v[i] ? a.v[i] : b.v[i]); }
inline F16 min(F16 a, F16 b) { DRMAS_LANES(a.v[i] < b.v[i] ? a.v[i] : b.v[i]); }
inline F16 sqrt(F16 a) { DRMAS_LANES(std::sqrt(a.v[i])); }
// Adding and taking away 1.5 · 2^23 rounds to the nearest integer, ties to even, for |a| < 2^22.
inline F16 roundToEven(F16 a) { DRMAS_LANES((a.v[i] + 12582912.f) - 12582912.f); }
inline float scaleLane(float a, float n) {
  int32_t bits;
  std::memcpy(&bits, &a, 4);
  bits += static_cast<int32_t>(n) * (1 << 23);
  std::memcpy(&a, &bits, 4);
  return a;
}
inline F16 scaleByPowerOfTwo(F16 a, F16 n) { DRMAS_LANES(scaleLane(a.v[i], n.v[i])); }
inline F16 zeroBelow(F16 a, F16 x, F16 limit) { DRMAS_LANES(x.v[i] < limit.v[i] ? 0.f : a.v[i]); }
inline void lanes(F16 a, float* out) { store(out, a); }
#undef DRMAS_LANES

#endif

/// The first n lanes, or all where n >= 16.
inline F16 loadUpTo(const float* p, int n) { return n >= kLanes ? load(p) : loadPartial(p, n); }
inline void storeUpTo(float* p, F16 x, int n) {
  if (n >= kLanes)
    store(p, x);
  else
    storePartial(p, x, n);
}

/// Sum of the lanes, always by the same tree: i + (i + 8), then 4, 2, 1.
inline float sumLanes(F16 a) {
  float t[kLanes];
  lanes(a, t);
  for (int half = 8; half >= 1; half /= 2)
    for (int i = 0; i < half; i++) t[i] += t[i + half];
  return t[0];
}

inline float maxLane(F16 a) {
  float t[kLanes];
  lanes(a, t);
  float m = t[0];
  for (int i = 1; i < kLanes; i++) m = t[i] > m ? t[i] : m;
  return m;
}

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
