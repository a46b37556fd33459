// A vector of 16 floats as four of the compiler's vector type, which becomes the target's own: SSE2, NEON.
#pragma once
#if defined(__aarch64__)
#include <arm_neon.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "lanes.h"

namespace drmas {
namespace DRMAS_ISA {

typedef float Quad __attribute__((vector_size(16)));
typedef int32_t QuadWhole __attribute__((vector_size(16)));
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
inline void store(float* p, F16 x) { std::memcpy(p, &x, sizeof x); }

/// 16 whole numbers of 32 bits, or as many pairs of 16 bits.
struct Whole16 {
  QuadWhole a, b, c, d;
};
inline Whole16 wholes(int32_t x) {
  const QuadWhole q = {x, x, x, x};
  return {q, q, q, q};
}
inline Whole16 load(const int32_t* p) {
  Whole16 x;
  std::memcpy(&x, p, sizeof x);
  return x;
}
inline QuadWhole loadQuad(const int8_t* p) {
  QuadBytes x;
  std::memcpy(&x, p, sizeof x);
  return __builtin_convertvector(x, QuadWhole);
}
inline Whole16 load(const int8_t* p) { return {loadQuad(p), loadQuad(p + 4), loadQuad(p + 8), loadQuad(p + 12)}; }
/// The lower or the upper halves of 16 bytes, from 0 to 15.
inline Whole16 loadHalves(const uint8_t* p, bool upper) {
  int8_t halves[kLanes];
  for (int i = 0; i < kLanes; i++) halves[i] = static_cast<int8_t>(upper ? p[i] >> 4 : p[i] & 15);
  return load(halves);
}
inline void store(int32_t* p, Whole16 x) { std::memcpy(p, &x, sizeof x); }
inline F16 floats(Whole16 x) {
  const auto quarter = [](QuadWhole q) { return __builtin_convertvector(q, Quad); };
  return {quarter(x.a), quarter(x.b), quarter(x.c), quarter(x.d)};
}
/// Four pairs. ARM has the firsts before the seconds, others the two of each lane side by side.
inline QuadWhole pairedQuads(QuadWhole firsts, QuadWhole seconds) {
#if defined(__aarch64__)
  return (QuadWhole)vcombine_s16(vmovn_s32((int32x4_t)firsts), vmovn_s32((int32x4_t)seconds));
#else
  return (firsts & 0xffff) | (seconds << 16);
#endif
}
inline Whole16 paired(Whole16 firsts, Whole16 seconds) {
  return {pairedQuads(firsts.a, seconds.a), pairedQuads(firsts.b, seconds.b), pairedQuads(firsts.c, seconds.c),
          pairedQuads(firsts.d, seconds.d)};
}
inline QuadWhole addQuadPairs(QuadWhole sum, QuadWhole weights, const int32_t* factors) {
#if defined(__aarch64__)
  const int16x8_t w = (int16x8_t)weights;
  const int16x4_t f = vreinterpret_s16_s32(vdup_n_s32(*factors));
  return (QuadWhole)vmlal_high_lane_s16(vmlal_lane_s16((int32x4_t)sum, vget_low_s16(w), f, 0), w, f, 1);
#else
  const QuadWhole both = {*factors, *factors, *factors, *factors};
#if defined(__SSE2__)
  return sum + (QuadWhole)_mm_madd_epi16((__m128i)weights, (__m128i)both);
#else
  return sum + (weights << 16 >> 16) * (both << 16 >> 16) + (weights >> 16) * (both >> 16);
#endif
#endif
}
/// sum + weights.first · factors.first + weights.second · factors.second of pairs, which all lanes share.
inline Whole16 addPairs(Whole16 sum, Whole16 weights, const int32_t* factors) {
  return {addQuadPairs(sum.a, weights.a, factors), addQuadPairs(sum.b, weights.b, factors),
          addQuadPairs(sum.c, weights.c, factors), addQuadPairs(sum.d, weights.d, factors)};
}
#if defined(__aarch64__) && (defined(__ARM_FEATURE_DOTPROD) || defined(__linux__))
#define DRMAS_FOURS
/// The same of four numbers of 8 bits, by SDOT, which the set's flags need not include.
inline __attribute__((always_inline)) QuadWhole addQuadFours(QuadWhole sum, QuadWhole weights, QuadWhole factors) {
#if defined(__ARM_FEATURE_DOTPROD)
  return (QuadWhole)vdotq_s32((int32x4_t)sum, (int8x16_t)weights, (int8x16_t)factors);
#else
  asm(".arch armv8.2-a+dotprod\n\tsdot %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(weights), "w"(factors));
  return sum;
#endif
}
inline Whole16 addFours(Whole16 sum, Whole16 weights, const int32_t* factors) {
  const QuadWhole all = {*factors, *factors, *factors, *factors};
  return {addQuadFours(sum.a, weights.a, all), addQuadFours(sum.b, weights.b, all), addQuadFours(sum.c, weights.c, all),
          addQuadFours(sum.d, weights.d, all)};
}
/// Bytes of four lines of 16, turned: lane i has byte i of each line.
inline Whole16 turnedFours(const uint8_t* p) {
  const uint8x16x4_t lines = {vld1q_u8(p), vld1q_u8(p + 16), vld1q_u8(p + 32), vld1q_u8(p + 48)};
  int32_t turned[kLanes];
  vst4q_u8(reinterpret_cast<uint8_t*>(turned), lines);
  return load(turned);
}
/// The form in which `addFours` takes weights with signs: as they are.
constexpr int32_t kFoursAbove = 0;
inline Whole16 signedFours(Whole16 fours) { return fours; }
inline QuadWhole halvesOfQuad(QuadWhole fours, bool upper) {
  const uint8x16_t bytes = (uint8x16_t)fours;
  return (QuadWhole)(upper ? vshrq_n_u8(bytes, 4) : vandq_u8(bytes, vdupq_n_u8(15)));
}
/// The lower or the upper halves of bytes.
inline Whole16 halves(Whole16 fours, bool upper) {
  return {halvesOfQuad(fours.a, upper), halvesOfQuad(fours.b, upper), halvesOfQuad(fours.c, upper),
          halvesOfQuad(fours.d, upper)};
}
#endif
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
