#pragma once

// The one way to Catch2, whichever major version the system has. With both, tests write Approx without a namespace.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
