// A vector of 16 floats as four 128-bit ones of WebAssembly.
#pragma once
#include <wasm_simd128.h>

#include "lanes.h"

namespace drmas {
namespace DRMAS_ISA {

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

/// 16 whole numbers of 32 bits, or as many pairs of 16 bits.
struct Whole16 {
  v128_t a, b, c, d;
};
inline Whole16 wholes(int32_t x) {
  const v128_t v = wasm_i32x4_splat(x);
  return {v, v, v, v};
}
inline Whole16 load(const int32_t* p) {
  return {wasm_v128_load(p), wasm_v128_load(p + 4), wasm_v128_load(p + 8), wasm_v128_load(p + 12)};
}
inline Whole16 widenedBytes(v128_t bytes) {
  const v128_t low = wasm_i16x8_extend_low_i8x16(bytes), high = wasm_i16x8_extend_high_i8x16(bytes);
  return {wasm_i32x4_extend_low_i16x8(low), wasm_i32x4_extend_high_i16x8(low), wasm_i32x4_extend_low_i16x8(high),
          wasm_i32x4_extend_high_i16x8(high)};
}
inline Whole16 load(const int8_t* p) { return widenedBytes(wasm_v128_load(p)); }
/// The lower or the upper halves of 16 bytes, from 0 to 15.
inline Whole16 loadHalves(const uint8_t* p, bool upper) {
  const v128_t bytes = wasm_v128_load(p);
  return widenedBytes(upper ? wasm_u8x16_shr(bytes, 4) : wasm_v128_and(bytes, wasm_i8x16_splat(15)));
}
inline void store(int32_t* p, Whole16 x) {
  wasm_v128_store(p, x.a);
  wasm_v128_store(p + 4, x.b);
  wasm_v128_store(p + 8, x.c);
  wasm_v128_store(p + 12, x.d);
}
inline F16 floats(Whole16 x) {
  return {wasm_f32x4_convert_i32x4(x.a), wasm_f32x4_convert_i32x4(x.b), wasm_f32x4_convert_i32x4(x.c),
          wasm_f32x4_convert_i32x4(x.d)};
}
inline Whole16 paired(Whole16 firsts, Whole16 seconds) {
  const v128_t lower = wasm_i32x4_splat(0xffff);
  const auto quarter = [&](v128_t x, v128_t y) { return wasm_v128_bitselect(x, wasm_i32x4_shl(y, 16), lower); };
  return {quarter(firsts.a, seconds.a), quarter(firsts.b, seconds.b), quarter(firsts.c, seconds.c),
          quarter(firsts.d, seconds.d)};
}
/// sum + weights.first · factors.first + weights.second · factors.second of pairs, which all lanes share.
inline Whole16 addPairs(Whole16 sum, Whole16 weights, const int32_t* factors) {
  const v128_t both = wasm_v128_load32_splat(factors);
  const auto quarter = [&](v128_t s, v128_t w) { return wasm_i32x4_add(s, wasm_i32x4_dot_i16x8(w, both)); };
  return {quarter(sum.a, weights.a), quarter(sum.b, weights.b), quarter(sum.c, weights.c), quarter(sum.d, weights.d)};
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
// Pseudo-maximum and -minimum, operands swapped: as on x86, they give y if one of the two is not a number.
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

}  // namespace DRMAS_ISA
}  // namespace drmas
