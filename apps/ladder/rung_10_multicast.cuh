// Rung 10: rung 9, where one tensor copy writes each half of B to both blocks. Nobody hands anything on.
#pragma once

#include "apps/ladder/rung_09_pair.cuh"

namespace ladder {

inline Launch prepare_multicast(const Problem& p) { return prepare_pairs<true>(p); }

}  // namespace ladder
