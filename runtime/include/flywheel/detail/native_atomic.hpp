// A seam: the files of runtime/ include native_atomic.hpp by this name, so that tests can put their own in its place.
#pragma once

#include "../../../base/native_atomic.hpp"
