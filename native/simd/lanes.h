// What the vectors of all instruction sets share.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

#include "../types.h"

namespace drmas {
namespace DRMAS_ISA {

constexpr int kLanes = 16;

}  // namespace DRMAS_ISA
}  // namespace drmas
