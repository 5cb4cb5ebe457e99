// A seam: the files of device/ include platform.cuh by this name, so that tests can put their own in its place.
#pragma once

#include "../../../platform.cuh"
