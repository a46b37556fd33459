// Eight sums in double precision: one register of AVX-512, two of AVX2, an array that the compiler divides elsewhere.
#pragma once
#include "simd.h"

namespace drmas {
namespace DRMAS_ISA {

#if defined(__AVX512F__)
struct Doubles8 {
  __m512d v;
};
/// sums += x², of eight numbers, whose squares are exact.
inline void addSquares(Doubles8& sums, const float* x) {
  const __m512d numbers = _mm512_cvtps_pd(_mm256_loadu_ps(x));
  sums.v = _mm512_add_pd(sums.v, _mm512_mul_pd(numbers, numbers));
}
constexpr int kSumsTogether = 4;  // as many keep the adders busy
#elif defined(__AVX2__)
struct Doubles8 {
  __m256d a, b;
};
inline void addSquares(Doubles8& sums, const float* x) {
  const __m256d a = _mm256_cvtps_pd(_mm_loadu_ps(x)), b = _mm256_cvtps_pd(_mm_loadu_ps(x + 4));
  sums.a = _mm256_add_pd(sums.a, _mm256_mul_pd(a, a));
  sums.b = _mm256_add_pd(sums.b, _mm256_mul_pd(b, b));
}
constexpr int kSumsTogether = 4;
#else
struct Doubles8 {
  double lanes[8];
};
inline void addSquares(Doubles8& sums, const float* x) {
  for (int j = 0; j < 8; j++) sums.lanes[j] += static_cast<double>(x[j]) * x[j];
}
constexpr int kSumsTogether = 1;
#endif

}  // namespace DRMAS_ISA
}  // namespace drmas
