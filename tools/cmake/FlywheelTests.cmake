# How tests/CMakeLists.txt turns a file into a test.

# A test finds data below its working directory, the repository, and programs below the environment variable
# FLYWHEEL_BUILD_DIR. tools/run_gpu_tests.sh gives staged tests the same two.
set(flywheel_test_environment "FLYWHEEL_BUILD_DIR=${PROJECT_BINARY_DIR}")
set(flywheel_test_launcher "")
if(FLYWHEEL_SANITIZE STREQUAL "thread")
  list(APPEND flywheel_test_environment
       "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1:suppressions=${PROJECT_SOURCE_DIR}/tests/support/tsan.supp")
  # Kernels with 32 random address bits put mappings where GCC 12's ThreadSanitizer cannot have them.
  execute_process(COMMAND setarch -R true RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
  if(failed EQUAL 0)
    set(flywheel_test_launcher setarch -R)
  endif()
endif()

# Links a test of an app with the app's code: test_measure_stats.cpp with flywheel_measure, test_llama_bpe.cpp with
# flywheel_llama_core.
function(flywheel_link_app_core name stem)
  string(REPLACE "_" ";" words "${stem}")
  while(words)
    list(JOIN words "_" app)
    foreach(library IN ITEMS flywheel_${app}_core flywheel_${app})
      if(TARGET ${library})
        target_link_libraries(${name} PRIVATE ${library})
        return()
      endif()
    endforeach()
    list(POP_BACK words)
  endwhile()
endfunction()

# What a test and its precompiled header have in common. A test runs for seconds and is compiled for as long: -O1 takes a third
# less. Emulated kernels run for longer.
function(flywheel_set_up_test target)
  target_link_libraries(${target} PRIVATE flywheel_test_support)
  if(NOT FLYWHEEL_SANITIZE)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-O1>")
  endif()
endfunction()

# What a test that emulates the GPU's kernel and its precompiled header have in common, see tests/CMakeLists.txt.
function(flywheel_set_up_emulated target)
  target_include_directories(${target} BEFORE PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}/support/emulated")
  target_compile_options(${target} PRIVATE -fno-strict-aliasing -Wno-unknown-pragmas
                         $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized;-fno-ivopts>)
endfunction()

# flywheel_add_precompiled(name header...): a target whose precompiled header tests take with REUSE_FROM.
function(flywheel_add_precompiled name)
  add_library(${name} OBJECT support/precompiled.cpp)
  flywheel_set_up_code(${name})
  target_precompile_headers(${name} PRIVATE ${ARGN})
  if(FLYWHEEL_CCACHE AND CMAKE_CXX_COMPILER_LAUNCHER STREQUAL FLYWHEEL_CCACHE)
    # g++ keeps a hash of each header with #pragma once. ccache would take a precompiled header whose text is the same
    # but for comments and spaces, and then headers would be parsed again; by the headers listed it never does.
    set_target_properties(${name} PROPERTIES CXX_COMPILER_LAUNCHER
                          "${CMAKE_COMMAND};-E;env;CCACHE_DEPEND=1;CCACHE_NAMESPACE=precompiled;${FLYWHEEL_CCACHE}")
  endif()
endfunction()

# flywheel_bundle(out room name source): the program that the test is a part of, or nothing if it is a program of its own. In a
# build of everything the plain tests of the rooms runtime and host are a program each, and so are those of each app: eight
# files are compiled together, and so is what they include. Tests that emulate the GPU's kernel are programs of their own: what
# all kernels have in common takes most of the time, and six files instantiate it once. ctest starts the program anew for each
# file, see flywheel_test_command(). A name in an anonymous namespace must not stand in two of the files compiled together, nor
# in flywheel::testing of what one of them includes.
function(flywheel_bundle out room name source)
  set(${out} "" PARENT_SCOPE)
  if(room STREQUAL "device" AND CMAKE_UNITY_BUILD AND FLYWHEEL_FAST_COMPILE AND NOT name IN_LIST FLYWHEEL_DEVICE_ALONE)
    set(${out} "tests_device" PARENT_SCOPE)
    if(name IN_LIST FLYWHEEL_DEVICE_SMALL)
      set(${out} "tests_device_small" PARENT_SCOPE)
    endif()
    return()
  endif()
  if(CMAKE_UNITY_BUILD AND name IN_LIST FLYWHEEL_EMULATED_TESTS AND NOT name IN_LIST FLYWHEEL_EMULATED_ALONE
     AND NOT (FLYWHEEL_SANITIZE AND name IN_LIST FLYWHEEL_TSAN_LONG))
    set(${out} "tests_${room}_emulated" PARENT_SCOPE)
    if(name MATCHES "^test_apps_llama_")  # its code is compiled with an option of its own
      set(${out} "tests_apps_llama_emulated" PARENT_SCOPE)
    endif()
    return()
  endif()
  # Without a GPU, or under ThreadSanitizer, test_host_engine has no case.
  if(NOT CMAKE_UNITY_BUILD OR room STREQUAL "device" OR name MATCHES "_gpu$" OR name IN_LIST FLYWHEEL_EMULATED_TESTS
     OR name IN_LIST FLYWHEEL_TSAN_EXCEPT OR name STREQUAL "test_host_engine")
    return()
  endif()
  if(room STREQUAL "apps")
    string(REGEX REPLACE "^test_apps_([a-z]+).*$" "\\1" app "${name}")
    set(${out} "tests_apps_${app}" PARENT_SCOPE)
  else()
    set(${out} "tests_${room}" PARENT_SCOPE)
  endif()
endfunction()

# flywheel_test_command(out program stem): how ctest runs the cases of one file. A bundle has those of others as well, which a tag
# of the file's name tells apart; hidden cases are what others start, and no case at all is a failure.
function(flywheel_test_command out program stem)
  set(command ${flywheel_test_launcher} "$<TARGET_FILE:${program}>")
  if(program MATCHES "^tests_")
    list(APPEND command -\# "[\#test_${stem}]~[.]" -w NoTests)
  endif()
  set(${out} "${command}" PARENT_SCOPE)
endfunction()

# flywheel_add_test(room source): see tests/CMakeLists.txt. In a host-only build a test that needs a GPU is left out.
function(flywheel_add_test room source)
  get_filename_component(stem "${source}" NAME_WE)
  string(REGEX REPLACE "^test_" "" stem "${stem}")
  set(name "test_${room}_${stem}")
  set(needs_gpu OFF)
  if(room STREQUAL "device" OR stem MATCHES "_gpu$")
    set(needs_gpu ON)
  endif()
  if(needs_gpu AND NOT FLYWHEEL_WITH_CUDA)
    return()
  endif()

  flywheel_bundle(program "${room}" "${name}" "${source}")
  if(program AND TARGET ${program})
    target_sources(${program} PRIVATE "${source}")
  else()
    if(NOT program)
      set(program "${name}")
    endif()
    flywheel_add_program(${program} "${source}")
    if(name IN_LIST FLYWHEEL_EMULATED_TESTS)
      target_link_libraries(${program} PRIVATE flywheel_test_support)
    else()
      flywheel_set_up_test(${program})
      if(TARGET flywheel_test_pch AND source MATCHES "\\.cpp$")
        target_precompile_headers(${program} REUSE_FROM flywheel_test_pch)
      endif()
    endif()
  endif()
  if(room STREQUAL "apps")
    flywheel_link_app_core(${program} "${stem}")
  endif()
  flywheel_test_command(command "${program}" "${stem}")
  add_test(NAME ${name} COMMAND ${command} WORKING_DIRECTORY "${PROJECT_SOURCE_DIR}")
  set(timeout ${FLYWHEEL_TEST_TIMEOUT})
  if(DEFINED FLYWHEEL_TEST_TIMEOUT_${name})
    set(timeout ${FLYWHEEL_TEST_TIMEOUT_${name}})
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} SKIP_RETURN_CODE 77 LABELS "${room}"
                       ENVIRONMENT "${flywheel_test_environment};FLYWHEEL_TEST_SECONDS=${timeout}")
  if(name IN_LIST FLYWHEEL_LONG_TESTS)
    set_property(TEST ${name} PROPERTY COST 60)
  endif()
  if(needs_gpu)
    target_link_libraries(${program} PRIVATE flywheel_gpu_gate CUDA::cudart_static)
    if(FLYWHEEL_FAST_COMPILE)  # no GPU will run it
      target_compile_options(${program} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-O0>" "$<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-O0>")
    endif()
    set_property(TEST ${name} APPEND PROPERTY LABELS gpu)
    set_property(TEST ${name} PROPERTY RESOURCE_LOCK gpu)
    add_dependencies(gpu_tests ${program})
  elseif(name IN_LIST FLYWHEEL_TSAN_LONG)
    set_property(TEST ${name} APPEND PROPERTY LABELS tsan_long)
    if(FLYWHEEL_SANITIZE STREQUAL "thread")
      set_property(TEST ${name} PROPERTY TIMEOUT 1800)
    endif()
    add_dependencies(tsan_long_tests ${program})
  elseif(room IN_LIST FLYWHEEL_TSAN_ROOMS AND NOT name IN_LIST FLYWHEEL_TSAN_EXCEPT)
    set_property(TEST ${name} APPEND PROPERTY LABELS tsan)
    add_dependencies(tsan_tests ${program})
  endif()
endfunction()

# flywheel_add_app_runs(): each numbered app checks itself and is a ctest app_<folder>. It ends with 0 when what it shows
# is right, and with 77, "skipped", when it needs a GPU and there is none.
function(flywheel_add_app_runs)
  file(GLOB mains CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/apps/[0-9][0-9]_*/main.cu")
  foreach(main IN LISTS mains)
    get_filename_component(folder "${main}" DIRECTORY)
    get_filename_component(app "${folder}" NAME)
    add_test(NAME app_${app} COMMAND ${flywheel_test_launcher} "$<TARGET_FILE:${app}>")
    set_tests_properties(app_${app} PROPERTIES TIMEOUT 60 SKIP_RETURN_CODE 77 LABELS apps
                         ENVIRONMENT "${flywheel_test_environment}")
    if(FLYWHEEL_WITH_CUDA)
      set_property(TEST app_${app} PROPERTY RESOURCE_LOCK gpu)
    endif()
  endforeach()
  # The shortest one has no line to spare for a check of its own. Of a test that looks at words ctest forgets the exit status,
  # so this is another.
  add_test(NAME app_01_hello_says COMMAND ${flywheel_test_launcher} "$<TARGET_FILE:01_hello>")
  set_tests_properties(app_01_hello_says PROPERTIES PASS_REGULAR_EXPRESSION "d = 7\n" TIMEOUT 60 LABELS apps
                       ENVIRONMENT "${flywheel_test_environment}")
endfunction()

# flywheel_add_compile_fail_header(): in a build of everything, what all these files include first is parsed once. g++ takes what it
# finds in the folder in front of the others in place of the header. Sets flywheel_compile_fail_first to that folder.
function(flywheel_add_compile_fail_header)
  if(NOT CMAKE_UNITY_BUILD OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    return()
  endif()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/compile_fail")
  set(parsed "${folder}/flywheel/flywheel.hpp.gch")
  set(header "${PROJECT_SOURCE_DIR}/host/include/flywheel/flywheel.hpp")
  file(MAKE_DIRECTORY "${folder}/flywheel")
  flywheel_compile_fail_flags(flags)
  add_custom_command(OUTPUT "${parsed}"
    COMMAND "${CMAKE_CXX_COMPILER}" -std=c++20 -x c++-header ${flags} -MD -MF "${parsed}.d" -MT "${parsed}" "${header}" -o "${parsed}"
    DEPENDS "${header}" DEPFILE "${parsed}.d" VERBATIM)
  add_custom_target(compile_fail_header ALL DEPENDS "${parsed}")
  set(flywheel_compile_fail_first "-I${folder}" PARENT_SCOPE)
endfunction()

# flywheel_compile_fail_flags(out): of C++.
function(flywheel_compile_fail_flags out)
  set(includes ${FLYWHEEL_BUILD_INCLUDES} ${FLYWHEEL_CUDA_HOST_INCLUDES})
  list(TRANSFORM includes PREPEND "-I")
  set(${out} "-DFLYWHEEL_WITH_CUDA=$<BOOL:${FLYWHEEL_WITH_CUDA}>" ${includes} PARENT_SCOPE)
endfunction()

# flywheel_add_compile_fail_test(source): the file must not compile, and the compiler must say the sentence that
# the file's first line expects. Headers are found as flywheel_runtime finds them.
function(flywheel_add_compile_fail_test source)
  get_filename_component(stem "${source}" NAME)
  string(MAKE_C_IDENTIFIER "${stem}" stem)
  flywheel_compile_fail_flags(flags)
  add_test(NAME compile_fail_${stem}
    COMMAND Python3::Interpreter "${PROJECT_SOURCE_DIR}/tools/checks/compile_fail.py" "${source}" --
            "${CMAKE_CXX_COMPILER}" -std=c++20 -fsyntax-only -x c++ ${flywheel_compile_fail_first} ${flags} "${source}")
  set_tests_properties(compile_fail_${stem} PROPERTIES TIMEOUT 120 LABELS compile_fail)
endfunction()
