// What this folder shares with the program `bench`: its rows of results, its percentiles and its limits. The one place
// where the two programs meet.
#pragma once

#include "apps/bench/limits.hpp"
#include "apps/bench/results.hpp"
#include "apps/bench/stats.hpp"
