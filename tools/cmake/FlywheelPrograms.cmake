# How programs of this repository are built. A program is written once, as .cu; a host-only build compiles the
# same file as C++.

# Warnings for code written here; nvcc's host pass is not pedantic because the code nvcc generates is not.
# GCC 12 reports std::string's own copies under -Wrestrict (GCC bug 105651).
function(flywheel_set_warnings target)
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic>"
    "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-restrict>"
    "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>")
  if(NOT FLYWHEEL_FAST_COMPILE)  # a quarter of the time
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:-lineinfo>")
  endif()
endfunction()

# Where no GPU will run it, half the time of a program: PTX alone, which ptxas need not turn into code. That it can is shown by
# those of this list, and by test_device_compiled_parts.
set(FLYWHEEL_WHOLE_PROGRAMS 24_product flywheel_llama_core)
function(flywheel_set_architectures target)
  set(architectures "${FLYWHEEL_PROGRAM_ARCHITECTURES}")
  if(FLYWHEEL_FAST_COMPILE AND NOT target IN_LIST FLYWHEEL_WHOLE_PROGRAMS)
    string(REPLACE "-real" "-virtual" architectures "${architectures}")
  endif()
  if(FLYWHEEL_WITH_CUDA AND architectures)
    set_target_properties(${target} PROPERTIES CUDA_ARCHITECTURES "${architectures}")
  endif()
endfunction()

# Where no GPU will run it, device code is compiled in bundles as well: nvcc reads what .cu files include three times, and
# instantiates for each the kernels that they have in common. CMake 3.25 makes bundles of C++ alone.
set(FLYWHEEL_BUNDLE_CUDA OFF)
if(FLYWHEEL_WITH_CUDA AND FLYWHEEL_FAST_COMPILE AND CMAKE_UNITY_BUILD)
  set(FLYWHEEL_BUNDLE_CUDA ON)
endif()

# flywheel_bundle_cuda(target): compiles the target's .cu files together.
function(flywheel_bundle_cuda target)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cu$")
  list(LENGTH sources count)
  # Of the whole programs' files one takes a minute alone.
  if(NOT FLYWHEEL_BUNDLE_CUDA OR count LESS 2 OR target IN_LIST FLYWHEEL_WHOLE_PROGRAMS)
    return()
  endif()
  set(text "")
  foreach(source IN LISTS sources)
    get_filename_component(path "${source}" ABSOLUTE)
    string(APPEND text "#include \"${path}\"\n")
  endforeach()
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/${target}_bundle.cu" CONTENT "${text}" @ONLY)
  set_source_files_properties(${sources} PROPERTIES HEADER_FILE_ONLY ON)
  target_sources(${target} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/${target}_bundle.cu")
endfunction()

# flywheel_bundle_main(program source): the same for a numbered app. Its main() is a function of flywheel_numbered, and `source`
# names a file that calls it from now on. 01_hello's has no return statement, which none but main() may lack.
function(flywheel_bundle_main program source)
  if(NOT FLYWHEEL_BUNDLE_CUDA OR NOT program MATCHES "^[0-9]+_" OR program STREQUAL "01_hello"
     OR program IN_LIST FLYWHEEL_WHOLE_PROGRAMS)
    return()
  endif()
  set(bundle "${CMAKE_BINARY_DIR}/generated/numbered")
  file(CONFIGURE OUTPUT "${bundle}/${program}.cu" @ONLY
       CONTENT "#define main main_of_${program}\n#include \"${${source}}\"\n#undef main\n")
  file(CONFIGURE OUTPUT "${bundle}/${program}.cpp" @ONLY
       CONTENT "int main_of_${program}();\nint main() { return main_of_${program}(); }\n")
  if(NOT TARGET flywheel_numbered)
    add_library(flywheel_numbered STATIC)
    flywheel_set_up_code(flywheel_numbered)
  endif()
  target_sources(flywheel_numbered PRIVATE "${bundle}/${program}.cu")
  set(${source} "${bundle}/${program}.cpp" PARENT_SCOPE)
endfunction()

# Makes a host-only build compile these .cu files as C++.
function(flywheel_cuda_sources_as_cxx)
  set(sources ${ARGN})
  list(FILTER sources INCLUDE REGEX "\\.cu$")
  if(sources AND NOT FLYWHEEL_WITH_CUDA)
    set_source_files_properties(${sources} PROPERTIES LANGUAGE CXX COMPILE_OPTIONS "-Wno-unknown-pragmas")
  endif()
endfunction()

# What programs and the libraries they are made of have in common.
function(flywheel_set_up_code target)
  target_link_libraries(${target} PUBLIC flywheel_host)
  set_target_properties(${target} PROPERTIES CUDA_SEPARABLE_COMPILATION OFF)
  flywheel_set_warnings(${target})
  flywheel_set_architectures(${target})
  flywheel_bundle_cuda(${target})
  if(FLYWHEEL_STATIC)
    target_compile_options(${target} PRIVATE
      "$<$<COMPILE_LANGUAGE:CXX>:-ffunction-sections;-fdata-sections>"
      "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-ffunction-sections,-fdata-sections>")
  endif()
endfunction()

# flywheel_add_program(name source...): an executable that links the library.
function(flywheel_add_program name)
  flywheel_cuda_sources_as_cxx(${ARGN})
  add_executable(${name} ${ARGN})
  flywheel_set_up_code(${name})
  if(FLYWHEEL_STATIC)
    target_link_options(${name} PRIVATE -static-libstdc++ -static-libgcc -Wl,--gc-sections)
  endif()
endfunction()

# flywheel_add_measuring_program(name): the program of this folder, which measures beside its peers. All sources but main.cpp
# make flywheel_<name>_core, which tests link too. The peers, cuda_*.cu, need CUDA; peers_none.cpp stands in for them.
function(flywheel_add_measuring_program name)
  find_package(CLI11 REQUIRED)
  file(GLOB sources CONFIGURE_DEPENDS *.cpp *.cu)
  list(FILTER sources EXCLUDE REGEX "/main\\.cpp$")
  if(FLYWHEEL_WITH_CUDA)
    list(FILTER sources EXCLUDE REGEX "/peers_none\\.cpp$")
  else()
    list(FILTER sources EXCLUDE REGEX "/cuda_[a-z]+\\.cu$")
  endif()
  flywheel_cuda_sources_as_cxx(${sources})
  add_library(flywheel_${name}_core STATIC ${sources})
  flywheel_set_up_code(flywheel_${name}_core)
  target_link_libraries(flywheel_${name}_core PUBLIC flywheel_measure CLI11::CLI11)
  flywheel_add_program(${name} main.cpp)
  target_link_libraries(${name} PRIVATE flywheel_${name}_core)
endfunction()

# flywheel_add_program_folder(folder): the program of a folder. Its entry is main.cu or main.cpp, or the only source
# at the folder's top. All other sources, those of sub-folders too, make the library flywheel_<name>_core, so that
# tests can link them; <name> is the folder without a leading NN_.
function(flywheel_add_program_folder folder)
  get_filename_component(program "${folder}" NAME)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${folder}/*.cu" "${folder}/*.cpp")
  file(GLOB top CONFIGURE_DEPENDS "${folder}/*.cu" "${folder}/*.cpp")
  set(main ${top})
  list(FILTER main INCLUDE REGEX "/main\\.(cu|cpp)$")
  list(LENGTH top top_count)
  if(NOT main AND top_count EQUAL 1)
    set(main ${top})
  endif()
  if(main)
    list(REMOVE_ITEM sources ${main})
    flywheel_bundle_main(${program} main)
    flywheel_add_program(${program} ${main})
    set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/${program}")
  endif()
  if(sources)
    string(REGEX REPLACE "^[0-9]+_" "" name "${program}")
    flywheel_cuda_sources_as_cxx(${sources})
    add_library(flywheel_${name}_core STATIC ${sources})
    flywheel_set_up_code(flywheel_${name}_core)
    if(main)
      target_link_libraries(${program} PRIVATE flywheel_${name}_core)
    endif()
  endif()
  if(main MATCHES "/generated/numbered/")
    target_link_libraries(${program} PRIVATE flywheel_numbered)
  endif()
endfunction()

# flywheel_add_program_folders(): every sub-folder of the current one that holds sources becomes a program of the
# same name (build/apps/llama/llama), unless it brings its own CMakeLists.txt.
function(flywheel_add_program_folders)
  file(GLOB entries LIST_DIRECTORIES true CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*")
  foreach(entry IN LISTS entries)
    if(EXISTS "${entry}/CMakeLists.txt")
      add_subdirectory("${entry}")
    elseif(IS_DIRECTORY "${entry}")
      flywheel_add_program_folder("${entry}")
    endif()
  endforeach()
endfunction()
