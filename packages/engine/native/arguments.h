// Reading the arguments of a call from JavaScript: kinds, lengths and indices are checked before a kernel touches
// memory.
#pragma once
#include <node_api.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <type_traits>

#include "generated/table.h"

namespace drmas {

/// The kernels of one `create`: their instruction set and their threads, until `dispose`.
struct Instance {
  KernelTable table;
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

/// The largest integer up to which JavaScript's numbers hold all integers.
constexpr double kMostSize = 9007199254740991.0;
constexpr double kMostInt = 2147483647.0;

/// Where kernels count with 32 bits (Windows), this many elements are the most of a buffer.
constexpr double kMostElements = sizeof(long) < 8 ? kMostInt : kMostSize;

/// Floats of a row of queries, keys and values, without overflow.
inline double qkvWidth(const Heads& h) { return (double(h.heads) + 2. * h.kvHeads) * h.headDim; }

/// The arguments of one call. Each is read by its place `i` and called `name` in messages. The first problem is kept
/// and thrown as a JavaScript error by `method`; after it, sizes are 0 and buffers must not be touched.
class Arguments {
 public:
  Arguments(napi_env env, napi_callback_info info) : env_(env) {
    void* data = nullptr;
    if (napi_get_cb_info(env, info, &count_, values_, nullptr, &data) != napi_ok)
      fail("call", "its arguments cannot be read");
    instance_ = static_cast<Instance*>(data);
    if (instance_ && !instance_->pool) fail("call", "the kernels were disposed of");
  }

  Instance& instance() { return *instance_; }
  const KernelTable& table() const { return instance_->table; }
  Pool& pool() const { return *instance_->pool; }
  bool ok() const { return problem_[0] == 0; }
  const char* problem() const { return problem_; }

  double number(size_t i, const char* name) {
    double value = 0;
    if (i >= count_ || napi_get_value_double(env_, values_[i], &value) != napi_ok) fail(name, "expected a number");
    return value;
  }
  /// A whole number from 0 to kMostSize; 0 after a problem.
  double size(size_t i, const char* name) {
    const double value = number(i, name);
    if (!(value >= 0 && value <= kMostElements && value == std::floor(value))) fail(name, "expected a size");
    if (value > largestSize_) {
      largestSize_ = value;
      largestSizeName_ = name;
    }
    return ok() ? value : 0;
  }
  /// Once all is read: whether the kernel may run. A size beyond every buffer goes with another size of 0, which
  /// empties the buffers; a kernel would then run that many empty rounds, and products of such sizes overflow.
  bool fit() {
    if (largestSize_ > std::max(kMostBeyondBuffers, largestBuffer_)) fail(largestSizeName_, "too large");
    return ok();
  }
  void atMost(const char* name, double value, double most) {
    if (!(value <= most)) fail(name, "too large");
  }
  bool flag(size_t i, const char* name) {
    bool value = false;
    if (i >= count_ || napi_get_value_bool(env_, values_[i], &value) != napi_ok) fail(name, "expected true or false");
    return value;
  }
  float* floats(size_t i, const char* name, double least) {
    return static_cast<float*>(checked(viewOf(i), name, napi_float32_array, least));
  }
  Bfloat16* bfloat16(size_t i, const char* name, double least) {
    return static_cast<Bfloat16*>(checked(viewOf(i), name, napi_uint16_array, least));
  }
  int32_t* integers(size_t i, const char* name, double least) {
    return static_cast<int32_t*>(checked(viewOf(i), name, napi_int32_array, least));
  }
  /// A matrix in float32 or in bfloat16; of the kind of `like` if that is given.
  Weights weights(size_t i, const char* name, double least, const Weights* like = nullptr) {
    const View view = viewOf(i);
    const bool isBfloat16 = like ? like->isBfloat16 : view.type == napi_uint16_array;
    return {checked(view, name, isBfloat16 ? napi_uint16_array : napi_float32_array, least), isBfloat16};
  }

  /// All of the first `count` integers must lie in [0, limit).
  const int32_t* indices(size_t i, const char* name, double count, double limit = kMostInt) {
    const int32_t* values = integers(i, name, count);
    for (long k = 0; ok() && k < count; k++)
      if (values[k] < 0 || values[k] >= limit) fail(name, "an index is out of range");
    return values;
  }
  /// One more than the largest of the first `count` indices.
  double indexed(const int32_t* indices, double count) const {
    double most = 0;
    for (long k = 0; ok() && k < count; k++) most = std::max(most, indices[k] + 1.);
    return most;
  }
  /// count + 1 offsets, the first at least 0, which never fall.
  const int32_t* offsets(size_t i, const char* name, double count) {
    const int32_t* values = integers(i, name, count + 1);
    for (long k = 0; ok() && k <= count; k++)
      if (values[k] < (k > 0 ? values[k - 1] : 0)) fail(name, "offsets must not fall");
    return values;
  }
  /// The last of count + 1 offsets.
  double last(const int32_t* offsets, double count) const { return ok() ? offsets[long(count)] : 0; }

  /// Three numbers from place `i` on.
  Heads heads(size_t i, const char* name) {
    const double heads = size(i, name), kvHeads = size(i + 1, name), headDim = size(i + 2, name);
    if (ok() && (heads < 1 || kvHeads < 1 || headDim < 1 || std::fmod(heads, kvHeads) != 0))
      fail(name, "heads must be a multiple of kvHeads, all at least 1");
    if (!((heads + 2 * kvHeads) * headDim <= kMostInt)) fail(name, "too large");
    const double window = size(i + 3, name);
    if (!(window <= kMostInt)) fail(name, "the window is too large");
    return ok() ? Heads{int(heads), int(kvHeads), int(headDim), int(window)} : Heads{0, 0, 0, 0};
  }
  /// Seven numbers from place `i` on.
  AdamW adamw(size_t i, const char* name) {
    double fields[7];
    for (size_t k = 0; k < 7; k++) fields[k] = number(i + k, name);
    return {fields[0], fields[1], fields[2], fields[3], fields[4], fields[5], fields[6]};
  }

 private:
  struct View {
    napi_typedarray_type type;
    size_t length;
    void* data;
  };

  View viewOf(size_t i) {
    View view{napi_int8_array, 0, nullptr};  // a type that no kernel takes, for what is no typed array
    if (i < count_) napi_get_typedarray_info(env_, values_[i], &view.type, &view.length, &view.data, nullptr, nullptr);
    return view;
  }
  void* checked(const View& view, const char* name, napi_typedarray_type wanted, double least) {
    if (view.type != wanted)
      fail(name, wanted == napi_float32_array  ? "expected a Float32Array"
                 : wanted == napi_uint16_array ? "expected a Uint16Array"
                                               : "expected an Int32Array");
    else if (static_cast<double>(view.length) < least)
      fail(name, "the buffer is too short");
    atMost(name, static_cast<double>(view.length), kMostElements);
    largestBuffer_ = std::max(largestBuffer_, static_cast<double>(view.length));
    return view.data;
  }
  void fail(const char* name, const char* problem) {
    if (ok()) std::snprintf(problem_, sizeof problem_, "%s: %s", name, problem);
  }

  static constexpr size_t kMost = 16;
  static constexpr double kMostBeyondBuffers = 16777216.0;

  napi_env env_;
  size_t count_ = kMost;
  napi_value values_[kMost];
  Instance* instance_ = nullptr;
  double largestSize_ = 0, largestBuffer_ = 0;
  const char* largestSizeName_ = "";
  char problem_[128] = {0};
};

/// A method of the object that `create` returns.
struct Method {
  const char* name;
  napi_callback callback;
};

/// Wraps body(arguments) as a callback; a double becomes the JavaScript result.
template <auto body>
napi_value method(napi_env env, napi_callback_info info) {
  Arguments a(env, info);
  napi_value value = nullptr;
  if constexpr (std::is_void_v<decltype(body(a))>) {
    if (a.ok()) body(a);
  } else {
    const double result = a.ok() ? body(a) : 0;
    napi_create_double(env, result, &value);
  }
  if (!a.ok()) {
    napi_throw_range_error(env, "ERR_DRMAS_KERNELS", a.problem());
    return nullptr;
  }
  return value;
}

}  // namespace drmas
