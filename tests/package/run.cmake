# Installs the build to a folder of its own, builds a program outside of the project on it, and runs that. The program's own
# folder is on its include path and has a file of the name of each header of ours: none may be found in place of ours. Then the
# same program with the sources as a part of its project, for CPU workers. The test is run with -D BUILD, SOURCE, WORK, CUDA (bool),
# NVCC and NVCC_FLAGS.
function(run)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result OUTPUT_VARIABLE output ERROR_VARIABLE output)
  message("${output}")
  if(NOT result EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "failed (${result}): ${command}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# Builds the project in a folder on its own include path, and runs it.
function(build_and_run name project)
  run("${CMAKE_COMMAND}" -G Ninja -S "${project}" -B "${WORK}/${name}" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INCLUDE_CURRENT_DIR=ON ${ARGN})
  run("${CMAKE_COMMAND}" --build "${WORK}/${name}" --target my_program)
  set(ENV{FLYWHEEL_TARGET} cpu)
  run("${WORK}/${name}/my_program")
  if(NOT output MATCHES "d = 7")
    message(FATAL_ERROR "the program did not say d = 7")
  endif()
endfunction()

# Puts the program into a project, beside files of its own that are called as ours are.
function(make_project project)
  configure_file("${SOURCE}/apps/01_hello/main.cu" "${project}/main.cu" COPYONLY)
  file(GLOB_RECURSE headers RELATIVE "${SOURCE}" "${SOURCE}/runtime/*.hpp" "${SOURCE}/host/*.hpp" "${SOURCE}/device/*.cuh")
  list(FILTER headers EXCLUDE REGEX "/include/")
  foreach(header IN LISTS headers)
    get_filename_component(name "${header}" NAME)
    file(WRITE "${project}/${header}" "#error \"this is ${header} of the program\"\n")
    file(WRITE "${project}/${name}" "#error \"this is ${name} of the program\"\n")
  endforeach()
endfunction()

file(REMOVE_RECURSE "${WORK}")
run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${WORK}/installed")
set(project "${WORK}/project")
make_project("${project}")
if(CUDA)
  # The CMakeLists.txt that README gives, as written: it names no architecture.
  file(READ "${SOURCE}/README.md" readme)
  if(NOT readme MATCHES "```cmake\n([^`]*)```")
    message(FATAL_ERROR "README.md has no block of CMake any more: what should a program's CMakeLists.txt say?")
  endif()
  file(WRITE "${project}/CMakeLists.txt" "${CMAKE_MATCH_1}")
  set(compiler "-DCMAKE_CUDA_COMPILER=${NVCC}")
  set(ENV{NVCC_APPEND_FLAGS} "${NVCC_FLAGS}")
else()
  configure_file("${SOURCE}/tests/package/CMakeLists.txt" "${project}/CMakeLists.txt" COPYONLY)
  set(compiler)
endif()
build_and_run(build "${project}" "-DCMAKE_PREFIX_PATH=${WORK}/installed" ${compiler})

set(parent "${WORK}/parent")
make_project("${parent}")
configure_file("${SOURCE}/tests/package/parent.cmake" "${parent}/CMakeLists.txt" COPYONLY)
# Hardly optimised: it runs for a moment, and the whole library is compiled.
build_and_run(part "${parent}" "-DFLYWHEEL_SOURCE=${SOURCE}" -DFLYWHEEL_CUDA=OFF -DCMAKE_UNITY_BUILD=ON
              "-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG")
