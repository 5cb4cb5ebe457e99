// A seam: the files of device/ include ptx.cuh by this name, so that tests can put their own in its place.
#pragma once

#include "../../../ptx.cuh"
