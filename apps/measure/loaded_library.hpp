// What peers need of libraries that are found when the program runs: nothing is linked, and where one is missing its rows are
// left out. A header alone.
#pragma once

#include <dlfcn.h>

#include <initializer_list>
#include <stdexcept>
#include <string>

namespace measure {

/// The first of these names that can be loaded, for the life of the program; null if none can.
inline void* load_library(std::initializer_list<const char*> names) {
  void* library = nullptr;
  for (const char* name : names)
    if (!library) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  return library;
}

/// Sets a pointer to the function of that name. Throws std::runtime_error if the library lacks it.
template <class F>
void find_function(void* library, const char* name, F& function) {
  void* const found = dlsym(library, name);
  if (!found) throw std::runtime_error(std::string("a library has no ") + name + ": install a newer one");
  function = reinterpret_cast<F>(found);
}

/// Throws std::runtime_error unless a call of cuBLAS or cuSPARSE, both of which say 0 for success, went well.
inline void check_library(int status, const char* call) {
  if (status != 0)
    throw std::runtime_error(
        std::string(call) + " failed with status " + std::to_string(status) +
        ": look it up at cublasStatus_t or cusparseStatus_t; a driver older than the library is one cause");
}

}  // namespace measure
