# C++20 in .cu files, for this build and for consumers of the installed package.

# CMake before 3.25.2 does not know that nvcc 12 and later speak C++20; this teaches it.
if(CMAKE_VERSION VERSION_LESS 3.25.2 AND CMAKE_CUDA_COMPILER_ID STREQUAL "NVIDIA"
   AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.0)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
  if(NOT "cuda_std_20" IN_LIST CMAKE_CUDA_COMPILE_FEATURES)
    list(APPEND CMAKE_CUDA_COMPILE_FEATURES cuda_std_20)
  endif()
endif()

# Folders where the host compiler finds the CUDA headers and CCCL (<cuda/atomic>), which lies beside them.
function(flywheel_cuda_host_includes result)
  set(folders "")
  foreach(folder IN LISTS CUDAToolkit_INCLUDE_DIRS)
    if(EXISTS "${folder}/cccl/cuda/atomic")
      list(APPEND folders "${folder}/cccl")
    endif()
    list(APPEND folders "${folder}")
  endforeach()
  list(REMOVE_DUPLICATES folders)
  set(${result} "${folders}" PARENT_SCOPE)
endfunction()
