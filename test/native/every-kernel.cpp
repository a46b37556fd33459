// Every kernel of one instruction set, once for each of several odd sizes, on inputs that depend on nothing. Writes
// what they computed, one line a buffer: its name and its floats as hexadecimal bits. `npm run verify -- arm` compares
// what an emulated ARM processor writes with what this one does; `npm run verify -- sanitizers` runs it with several
// threads under the thread sanitizer. Which kernels there are, and on what each runs, is generated: every-kernel.h.
//
// usage: every-kernel THREADS   (compiled with -DDRMAS_ISA=<set> beside kernels.cpp, products.cpp and blocks.cpp
//                               of native/, for the same set, and emulated-tiles.cpp)
#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "../../packages/engine/native/generated/table.h"
#include "../../packages/engine/native/processor.h"
#include "../../packages/engine/native/set.h"

namespace drmas {
KernelTable DRMAS_OF_SET(table)();
bool bfloat16_amx_emulated(KernelTable&);
}

using namespace drmas;

namespace {

using Floats = std::vector<float>;
using Integers = std::vector<int32_t>;
using Coarse = std::vector<Bfloat16>;

struct Sizes {
  long rows, inputs, outputs, width, feedForward, vocabSize, capacity, sequences, length;
  Heads heads;
};

constexpr AdamW kSettings{1e-3, 0.9, 0.999, 1e-8, 0.01, 3, 0.7};

// ---- what examples are made of: the functions that the manifest's expressions call ---------------------------------

uint64_t state = 1;

/// The next 31 bits of a linear congruential generator (Knuth's MMIX).
uint64_t draw() {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state >> 33;
}

/// Uniform in [-1, 1).
float noise() { return static_cast<float>(draw() >> 7) / 8388608.f - 1.f; }

/// Uniform in [0, limit).
long below(long limit) { return static_cast<long>(draw() % static_cast<uint64_t>(limit)); }

long quotient(long a, long b) { return a / b; }

/// One more than the largest index.
long indexed(const Integers& indices) { return 1 + *std::max_element(indices.begin(), indices.end()); }

/// Rounded towards zero.
Bfloat16 upperHalf(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, 4);
  return static_cast<Bfloat16>(bits >> 16);
}

template <class Buffer, class Contents>
Buffer filled(long length, const Contents& contents) {
  Buffer values(static_cast<size_t>(length));
  for (long r = 0; r < length; r++) values[static_cast<size_t>(r)] = contents(r);
  return values;
}

/// Offsets of sequences that are about equally long.
Integers evenOffsets(long sequences, long rows) {
  return filled<Integers>(sequences + 1, [&](long s) { return int32_t(s * rows / sequences); });
}

Floats packedMatrix(const KernelTable& k, Pool& pool, long inputs, long outputs) {
  Floats packed(k.packedSize(inputs, outputs));
  const Floats weight = filled<Floats>(inputs * outputs, [](long) { return noise(); });
  k.pack(pool, packed.data(), weight.data(), inputs, outputs, false);
  return packed;
}

Coarse packedMatrixBfloat16(const KernelTable& k, Pool& pool, long inputs, long outputs) {
  Coarse packed(k.packedSize(inputs, outputs));
  const Coarse weight = filled<Coarse>(inputs * outputs, [](long) { return upperHalf(noise()); });
  k.packBfloat16(pool, packed.data(), weight.data(), inputs, outputs, false);
  return packed;
}

Coarse bfloat16PackedMatrix(const KernelTable& k, Pool& pool, long inputs, long outputs) {
  Coarse packed(k.bfloat16PackedSize(inputs, outputs));
  const Floats weight = filled<Floats>(inputs * outputs, [](long) { return noise(); });
  k.bfloat16Pack(pool, packed.data(), weight.data(), inputs, outputs, false);
  return packed;
}

// ---- what they computed --------------------------------------------------------------------------------------------

/// What stands before the names of buffers: which products they are of.
const char* products = "";

template <class Element>
void keep(const Sizes& s, const char* name, const std::vector<Element>& values) {
  std::printf("%s%ldx%ld/%s", products, s.rows, s.width, name);
  for (const Element& value : values) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    std::printf(" %08" PRIx32, bits);
  }
  std::printf("\n");
}

#include "every-kernel.h"

}  // namespace

int main(int count, char** words) {
  const int threads = count > 1 ? std::atoi(words[1]) : 1;
  const KernelTable kernels = DRMAS_OF_SET(table)();
  Pool pool(threads, Cores::Any, false), ofAmd(threads, Cores::Amd, hasFours());
  KernelTable tiles = kernels;
  bfloat16_amx_emulated(tiles);
  for (const Sizes& sizes : {Sizes{5, 1, 3, 1, 3, 2, 3, 2, 5, {1, 1, 2}},
                             Sizes{67, 31, 45, 31, 45, 139, 40, 3, 2077, {4, 2, 6}},
                             Sizes{130, 64, 172, 64, 172, 77, 96, 2, 40000, {6, 3, 16, 50}},
                             Sizes{33, 97, 20, 97, 20, 300, 17, 1, 3201, {3, 1, 34, 5}}}) {
    products = "";
    runAll(kernels, pool, sizes);
    products = "tiles/";
    runBfloat16Pack(tiles, pool, sizes);
    runBfloat16PackBfloat16(tiles, pool, sizes);
    runBfloat16Linear(tiles, pool, sizes);
    runBfloat16LinearWeightGradient(tiles, pool, sizes);
    products = "amd/";
    runLinear(kernels, ofAmd, sizes);
    runLinearBfloat16(kernels, ofAmd, sizes);
    runLinearWeightGradient(kernels, ofAmd, sizes);
    runBfloat16Linear(kernels, ofAmd, sizes);
    runInt8BlockLinear(kernels, ofAmd, sizes);
    runBfloat16LinearWeightGradient(kernels, ofAmd, sizes);
  }
}
