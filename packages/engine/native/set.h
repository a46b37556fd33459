// The names of one instruction set's parts, by -DDRMAS_ISA=<name>.
#pragma once

#define DRMAS_STRING_(x) #x
#define DRMAS_STRING(x) DRMAS_STRING_(x)
#define DRMAS_JOIN_(a, b) a##b
#define DRMAS_JOIN(a, b) DRMAS_JOIN_(a, b)
/// The function `part` of this set, which all sets have.
#define DRMAS_OF_SET(part) DRMAS_JOIN(part##_, DRMAS_ISA)
