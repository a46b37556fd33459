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
  bool isBfloat16(size_t i) {
    napi_typedarray_type type;
    return i < count_ && napi_get_typedarray_info(env_, values_[i], &type, nullptr, nullptr, nullptr, nullptr) == napi_ok &&
           type == napi_uint16_array;
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
  void* buffer(size_t i, napi_typedarray_type wanted, double least) {
    napi_typedarray_type type;
    size_t length = 0;
    void* data = nullptr;
    if (i >= count_ || napi_get_typedarray_info(env_, values_[i], &type, &length, &data, nullptr, nullptr) != napi_ok ||
        type != wanted)
      fail(wanted == napi_float32_array  ? "argument %zu: expected a Float32Array"
           : wanted == napi_uint16_array ? "argument %zu: expected a Uint16Array"
                                         : "argument %zu: expected an Int32Array",
           i);
    else if (static_cast<double>(length) < least)
      fail("argument %zu: the buffer is too short", i);
    return data;
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
