// A seam: the files of device/ include group.cuh by this name, so that tests can put their own in its place.
#pragma once

#include "../../../group.cuh"
