# Decides whether this build speaks CUDA, and enables the language when it does.
# Sets FLYWHEEL_WITH_CUDA, FLYWHEEL_CUDA_HOST_INCLUDES and FLYWHEEL_STATIC_DEFAULT.
set(FLYWHEEL_WITH_CUDA OFF)
set(FLYWHEEL_STATIC_DEFAULT OFF)

if(NOT FLYWHEEL_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "FLYWHEEL_CUDA is '${FLYWHEEL_CUDA}'. Set it to AUTO, ON or OFF.")
endif()

if(NOT FLYWHEEL_CUDA STREQUAL "OFF")
  set(nvcc_names nvcc)
  if(NOT "$ENV{CUDACXX}" STREQUAL "")
    list(PREPEND nvcc_names "$ENV{CUDACXX}")  # a path or a name of the compiler itself
  endif()
  find_program(FLYWHEEL_NVCC NAMES ${nvcc_names} NAMES_PER_DIR
    HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda PATH_SUFFIXES bin
    DOC "The CUDA compiler")
  mark_as_advanced(FLYWHEEL_NVCC)
  set(nvcc_version "")
  if(FLYWHEEL_NVCC)
    execute_process(COMMAND "${FLYWHEEL_NVCC}" --version OUTPUT_VARIABLE nvcc_banner ERROR_QUIET)
    string(REGEX MATCH "release ([0-9]+\\.[0-9]+)" nvcc_version "${nvcc_banner}")
    set(nvcc_version "${CMAKE_MATCH_1}")
  endif()
  if(nvcc_version VERSION_GREATER_EQUAL 12.8)  # PTX ISA 8.6: see device/platform.cuh
    set(FLYWHEEL_WITH_CUDA ON)
  elseif(FLYWHEEL_CUDA STREQUAL "ON")
    message(FATAL_ERROR "FLYWHEEL_CUDA=ON needs nvcc 12.8 or newer; found '${FLYWHEEL_NVCC}' "
      "(version '${nvcc_version}'). Install the CUDA Toolkit, set CUDACXX to its nvcc, or use FLYWHEEL_CUDA=OFF.")
  endif()
endif()

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
  find_package(CUDAToolkit REQUIRED)
  flywheel_cuda_host_includes(FLYWHEEL_CUDA_HOST_INCLUDES)
  if(NOT FLYWHEEL_SANITIZE)
    set(FLYWHEEL_STATIC_DEFAULT ON)
  endif()
  message(STATUS "Flywheel: CUDA ${CMAKE_CUDA_COMPILER_VERSION} for ${FLYWHEEL_CUDA_ARCHITECTURES}")
else()
  message(STATUS "Flywheel: host-only build, tasks run on CPU workers")
endif()
