// Reading the arguments of a call from JavaScript: kinds, lengths and indices are checked before a kernel touches memory.
#pragma once
#include <node_api.h>

#include <cstdio>

#include "table.h"

namespace drmas {

struct Instance {
  const KernelTable* table;
  Pool* pool;
  ~Instance() { delete pool; }
};

/// A matrix of one of two kinds.
struct Weights {
  void* data;
  bool isBfloat16;
  float* floats() const { return static_cast<float*>(data); }
  Bfloat16* bfloat16() const { return static_cast<Bfloat16*>(data); }
};

/// The arguments of one call. The first problem found is kept and thrown as a JavaScript error by the caller.
class Arguments {
 public:
  static constexpr size_t kMost = 13;

  Arguments(napi_env env, napi_callback_info info) : env_(env) {
    count_ = kMost;
    void* data = nullptr;
    if (napi_get_cb_info(env, info, &count_, values_, nullptr, &data) != napi_ok) fail("cannot read the arguments");
    instance_ = static_cast<Instance*>(data);
    if (instance_ && !instance_->pool) fail("the kernels were disposed of");
  }

  Instance& instance() { return *instance_; }
  bool ok() const { return problem_[0] == 0; }
  const char* problem() const { return problem_; }

  double number(size_t i) {
    double value = 0;
    if (i >= count_ || napi_get_value_double(env_, values_[i], &value) != napi_ok) fail("argument %zu: expected a number", i);
    return value;
  }
  long size(size_t i) {
    const double value = number(i);
    if (!(value >= 0 && value <= 9007199254740991.0)) fail("argument %zu: expected a size", i);
    return ok() ? static_cast<long>(value) : 0;
  }
  bool flag(size_t i) {
    bool value = false;
    if (i >= count_ || napi_get_value_bool(env_, values_[i], &value) != napi_ok)
      fail("argument %zu: expected true or false", i);
    return value;
  }
  float* floats(size_t i, double least) { return static_cast<float*>(buffer(i, napi_float32_array, least)); }
  Bfloat16* bfloat16(size_t i, double least) { return static_cast<Bfloat16*>(buffer(i, napi_uint16_array, least)); }
  /// In float32 or in bfloat16.
  Weights weights(size_t i, double least) {
    const View view = viewOf(i);
    const bool isBfloat16 = view.type == napi_uint16_array;
    return {checked(i, view, isBfloat16 ? napi_uint16_array : napi_float32_array, least), isBfloat16};
  }
  int32_t* integers(size_t i, double least) { return static_cast<int32_t*>(buffer(i, napi_int32_array, least)); }

  /// All of the first `count` integers must lie in [0, limit).
  const int32_t* indices(size_t i, long count, double limit = 2147483647.0) {
    const int32_t* values = integers(i, static_cast<double>(count));
    for (long k = 0; ok() && k < count; k++)
      if (values[k] < 0 || values[k] >= limit) fail("argument %zu: an index is out of range", i);
    return values;
  }
  /// sequences + 1 offsets that start at 0 or later and never fall; the last one is returned.
  long rowsOf(const int32_t* starts, long sequences, size_t i) {
    if (!ok()) return 0;
    for (long s = 0; s < sequences; s++)
      if (starts[s + 1] < starts[s] || starts[s] < 0) fail("argument %zu: offsets must not fall", i);
    return starts[sequences];
  }
  Heads heads(size_t first) {
    const Heads h{static_cast<int>(size(first)), static_cast<int>(size(first + 1)), static_cast<int>(size(first + 2))};
    if (ok() && (h.heads < 1 || h.kvHeads < 1 || h.headDim < 1 || h.heads % h.kvHeads != 0))
      fail("argument %zu: heads must be a multiple of kvHeads, all at least 1", first);
    return h;
  }

 private:
  struct View {
    napi_typedarray_type type;
    size_t length;
    void* data;
  };

  View viewOf(size_t i) {
    View view{napi_int8_array, 0, nullptr};  // a type that nobody wants, for what is no typed array
    if (i < count_) napi_get_typedarray_info(env_, values_[i], &view.type, &view.length, &view.data, nullptr, nullptr);
    return view;
  }
  void* buffer(size_t i, napi_typedarray_type wanted, double least) { return checked(i, viewOf(i), wanted, least); }
  void* checked(size_t i, const View& view, napi_typedarray_type wanted, double least) {
    if (view.type != wanted)
      fail(wanted == napi_float32_array  ? "argument %zu: expected a Float32Array"
           : wanted == napi_uint16_array ? "argument %zu: expected a Uint16Array"
                                         : "argument %zu: expected an Int32Array",
           i);
    else if (static_cast<double>(view.length) < least)
      fail("argument %zu: the buffer is too short", i);
    return view.data;
  }
  void fail(const char* format, size_t i = 0) {
    if (ok()) std::snprintf(problem_, sizeof problem_, format, i);
  }

  napi_env env_;
  size_t count_ = 0;
  napi_value values_[kMost];
  Instance* instance_ = nullptr;
  char problem_[96] = {0};
};

}  // namespace drmas
