// One logical vector of 16 floats on every instruction set: a 512-bit register, two 256-bit ones, four 128-bit ones in
// WebAssembly, or four of the compiler's vectors for any other target (a header each beside this one). Since lanes
// and their order are the same everywhere and multiply-add is fused on AVX-512, AVX2 and ARM, those give the same
// bits (`npm run verify -- arm`). WebAssembly has no fused multiply-add that all engines offer: it rounds the product
// too.
#pragma once
#if defined(__AVX512F__)
#include "avx512.h"
#elif defined(__AVX2__) && defined(__FMA__)
#include "avx2.h"
#elif defined(__wasm_simd128__)
#include "wasm128.h"
#else
#include "quads.h"
#endif

namespace drmas {
namespace DRMAS_ISA {

/// Loads the first n of 16 bfloat16 numbers; the other lanes are 0.
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

/// Each two neighbours in reverse order.
inline F16 swapNeighbours(F16 x) {
#if defined(__AVX512F__)
  return {_mm512_permute_ps(x.v, 0xb1)};
#elif defined(__AVX2__) && defined(__FMA__)
  return {_mm256_permute_ps(x.a, 0xb1), _mm256_permute_ps(x.b, 0xb1)};
#else
  alignas(64) float from[kLanes], to[kLanes];
  store(from, x);
  for (int i = 0; i < kLanes; i++) to[i] = from[i ^ 1];
  return load(to);
#endif
}

#if !defined(__AVX2__)
/// Transposes 16 vectors of 16 lanes: rows become columns.
inline void transpose(F16* rows) {
  alignas(64) float from[kLanes][kLanes], to[kLanes][kLanes];
  for (int i = 0; i < kLanes; i++) store(from[i], rows[i]);
  for (int i = 0; i < kLanes; i++)
    for (int j = 0; j < kLanes; j++) to[i][j] = from[j][i];
  for (int i = 0; i < kLanes; i++) rows[i] = load(to[i]);
}
constexpr bool kTransposesInRegisters = false;
#else
constexpr bool kTransposesInRegisters = true;
#endif

/// Loads and stores the first n lanes, or all of them where n >= 16.
inline F16 loadUpTo(const float* p, int n) { return n >= kLanes ? load(p) : loadPartial(p, n); }
inline void storeUpTo(float* p, F16 x, int n) {
  if (n >= kLanes)
    store(p, x);
  else
    storePartial(p, x, n);
}

/// The first n of 16 numbers, all of them where n >= 16; the other lanes are 0.
template <class Element>
inline F16 loadOrZero(const Element* p, long n) {
  return n >= kLanes ? load(p) : n > 0 ? loadPartial(p, static_cast<int>(n)) : zero();
}

/// lines[i] becomes column i of the first 16 rows of a matrix that still has `rows` x `columns` numbers; 0 beyond.
template <class Element>
inline void loadColumns(F16* lines, const Element* from, long width, long rows, long columns) {
  for (int r = 0; r < kLanes; r++) lines[r] = r < rows ? loadOrZero(from + r * width, columns) : zero();
  transpose(lines);
}

/// Folds the lanes by one fixed tree, i with i + 8, then + 4, + 2, + 1, so that the result has the same bits
/// everywhere.
#if defined(__AVX2__) && defined(__FMA__)
template <class Fold>
inline float foldEight(__m256 x, const Fold& fold) {
  __m128 four = fold(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
  four = fold(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(fold(four, _mm_shuffle_ps(four, four, 1)));
}
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
  // max and min give their second operand if one of the two is not a number.
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
