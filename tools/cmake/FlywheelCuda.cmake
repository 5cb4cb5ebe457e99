# Decides whether this build speaks CUDA, and enables the language when it does.
# Sets FLYWHEEL_WITH_CUDA, FLYWHEEL_CUDA_HOST_INCLUDES, FLYWHEEL_NVCC_FAST and FLYWHEEL_STATIC_DEFAULT.
set(FLYWHEEL_WITH_CUDA OFF)
set(FLYWHEEL_STATIC_DEFAULT OFF)

if(NOT FLYWHEEL_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "FLYWHEEL_CUDA is '${FLYWHEEL_CUDA}'. Set it to AUTO, ON or OFF.")
endif()

set(FLYWHEEL_LEAST_NVCC 12.8)  # PTX ISA 8.6: see device/platform.cuh

# The version of a compiler, empty if it is no nvcc.
function(flywheel_nvcc_version nvcc result)
  execute_process(COMMAND "${nvcc}" --version RESULT_VARIABLE failed OUTPUT_VARIABLE banner ERROR_QUIET)
  string(REGEX MATCH "release ([0-9]+\\.[0-9]+)" found "${banner}")
  set(${result} "${CMAKE_MATCH_1}" PARENT_SCOPE)
endfunction()

# For find_program(): what is too old is passed over, so that a newer one behind it is found.
function(flywheel_is_new_nvcc result nvcc)
  flywheel_nvcc_version("${nvcc}" version)
  if(version VERSION_LESS FLYWHEEL_LEAST_NVCC)
    message(STATUS "Flywheel: ${nvcc} is version '${version}', and nvcc ${FLYWHEEL_LEAST_NVCC} or newer is needed")
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

if(NOT FLYWHEEL_CUDA STREQUAL "OFF")
  set(nvcc_names nvcc)
  if(NOT "$ENV{CUDACXX}" STREQUAL "")
    list(PREPEND nvcc_names "$ENV{CUDACXX}")  # a path or a name of the compiler itself
  endif()
  find_program(FLYWHEEL_NVCC NAMES ${nvcc_names} NAMES_PER_DIR
    HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin
    VALIDATOR flywheel_is_new_nvcc DOC "The CUDA compiler")
  mark_as_advanced(FLYWHEEL_NVCC)
  set(nvcc_version "")
  if(FLYWHEEL_NVCC)
    flywheel_nvcc_version("${FLYWHEEL_NVCC}" nvcc_version)
  endif()
  if(nvcc_version VERSION_GREATER_EQUAL FLYWHEEL_LEAST_NVCC)
    set(FLYWHEEL_WITH_CUDA ON)
  elseif(FLYWHEEL_CUDA STREQUAL "ON")
    message(FATAL_ERROR "FLYWHEEL_CUDA=ON needs nvcc ${FLYWHEEL_LEAST_NVCC} or newer; found '${FLYWHEEL_NVCC}' "
      "(version '${nvcc_version}'). Install the CUDA Toolkit, set CUDACXX to its nvcc, or use FLYWHEEL_CUDA=OFF.")
  endif()
endif()

if(FLYWHEEL_WITH_CUDA AND NOT FLYWHEEL_CUDA_ARCHITECTURES)
  message(FATAL_ERROR "FLYWHEEL_CUDA_ARCHITECTURES is empty. Name what to build for, for example 90a-real.")
endif()
foreach(architecture IN LISTS FLYWHEEL_CUDA_ARCHITECTURES)
  if(FLYWHEEL_WITH_CUDA AND architecture MATCHES "^[0-9]+" AND CMAKE_MATCH_0 LESS 80)
    message(FATAL_ERROR "FLYWHEEL_CUDA_ARCHITECTURES names ${architecture}. Compute capability 8.0 is the least: "
      "name 80 or more, or use FLYWHEEL_CUDA=OFF.")
  endif()
endforeach()

if(FLYWHEEL_WITH_CUDA)
  if(NOT DEFINED CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER "${FLYWHEEL_NVCC}")
  endif()
  set(CMAKE_CUDA_ARCHITECTURES "${FLYWHEEL_CUDA_ARCHITECTURES}")
  enable_language(CUDA)
  include(FlywheelCuda20)
  set(CMAKE_CUDA_STANDARD 20)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  set(CMAKE_CUDA_EXTENSIONS OFF)
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  if(FLYWHEEL_FAST_COMPILE AND CMAKE_CUDA_COMPILER_VERSION VERSION_GREATER_EQUAL 12.9)
    set(FLYWHEEL_NVCC_FAST --Ofast-compile=max)
    add_compile_options("$<$<COMPILE_LANGUAGE:CUDA>:${FLYWHEEL_NVCC_FAST};-Xcompiler=-O1>")
  endif()
  find_package(CUDAToolkit REQUIRED)
  # Ranges for a profiler. Toolkits that were installed in parts may lack its headers.
  find_path(FLYWHEEL_NVTX_DIR nvtx3/nvToolsExt.h PATHS ${CUDAToolkit_INCLUDE_DIRS} NO_DEFAULT_PATH)
  mark_as_advanced(FLYWHEEL_NVTX_DIR)
  flywheel_cuda_host_includes(FLYWHEEL_CUDA_HOST_INCLUDES)
  if(NOT FLYWHEEL_SANITIZE)
    set(FLYWHEEL_STATIC_DEFAULT ON)
  endif()
  message(STATUS "Flywheel: CUDA ${CMAKE_CUDA_COMPILER_VERSION} for ${FLYWHEEL_CUDA_ARCHITECTURES}")
else()
  message(STATUS "Flywheel: host-only build, tasks run on CPU workers")
endif()
