# <flywheel/version.hpp> holds the version and changes with it. The commit changes far more often, so it lives in
# one generated source file of the library and a new commit recompiles only that.
set(FLYWHEEL_GENERATED_DIR "${PROJECT_BINARY_DIR}/generated")
set(FLYWHEEL_COMMIT_SOURCE "${FLYWHEEL_GENERATED_DIR}/commit.cpp")
set(FLYWHEEL_INSTALL_INCLUDEDIR
    "${CMAKE_INSTALL_INCLUDEDIR}/flywheel-${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}")

configure_file(tools/cmake/version.hpp.in "${FLYWHEEL_GENERATED_DIR}/include/flywheel/version.hpp" @ONLY)

add_custom_target(flywheel_commit
  COMMAND "${CMAKE_COMMAND}" -D "SOURCE_DIR=${PROJECT_SOURCE_DIR}" -D "OUTPUT=${FLYWHEEL_COMMIT_SOURCE}"
          -P "${PROJECT_SOURCE_DIR}/tools/cmake/write_commit.cmake"
  BYPRODUCTS "${FLYWHEEL_COMMIT_SOURCE}"
  COMMENT "Recording the commit" VERBATIM)
