// A vector of 16 floats as four of the compiler's vector type, which becomes the target's own: SSE2, NEON.
#pragma once
#if defined(__aarch64__)
#include <arm_neon.h>
#endif

#include "lanes.h"

namespace drmas {
namespace DRMAS_ISA {

typedef float Quad __attribute__((vector_size(16)));
typedef uint32_t QuadBits __attribute__((vector_size(16)));
typedef Bfloat16 QuadBfloat16 __attribute__((vector_size(8)));
typedef int8_t QuadBytes __attribute__((vector_size(4)));

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
inline Quad loadQuad(const int8_t* p) {
  QuadBytes x;
  std::memcpy(&x, p, sizeof x);
  return __builtin_convertvector(x, Quad);
}
inline F16 load(const int8_t* p) { return {loadQuad(p), loadQuad(p + 4), loadQuad(p + 8), loadQuad(p + 12)}; }
/// The lower or the upper halves of 16 bytes, from 0 to 15.
inline F16 loadHalves(const uint8_t* p, bool upper) {
  int8_t halves[kLanes];
  for (int i = 0; i < kLanes; i++) halves[i] = static_cast<int8_t>(upper ? p[i] >> 4 : p[i] & 15);
  return load(halves);
}
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
// As on x86, they give y if one of the two is not a number.
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

}  // namespace DRMAS_ISA
}  // namespace drmas
