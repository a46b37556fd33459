// A program that prints what this processor can run, as JSON: instruction sets and instructions on operands in
// bfloat16, the fastest first, and the one for bfloat16 that is faster than widening ("widened": none). The build asks
// it which set of kernels to compile.
#include "processor.h"

#include <cstdio>

int main() {
#if defined(__x86_64__)
  using namespace drmas;
  const Processor processor = thisProcessor();
  const bool tiles = processor.avx512 && hasTiles();
  const bool pairs = processor.avx512 && hasPairs();
  std::printf("{\"isas\": [%s%s\"portable\"], \"products\": [%s%s\"widened\"], \"fastest\": \"%s\"}\n",
              processor.avx512 ? "\"avx512\", " : "", processor.avx2 ? "\"avx2\", " : "", tiles ? "\"amx\", " : "",
              pairs ? "\"avx512-bf16\", " : "", tiles ? "amx" : pairs && prefersPairs() ? "avx512-bf16" : "widened");
#else
  std::puts("{\"isas\": [\"portable\"], \"products\": [\"widened\"], \"fastest\": \"widened\"}");
#endif
}
