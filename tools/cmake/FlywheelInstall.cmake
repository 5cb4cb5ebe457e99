# Installs headers, library and package config. The headers keep their folders under one include directory, so
# that "runtime/base/queue.hpp" and <flywheel/task.cuh> name the same files here and for an outside consumer.
include(CMakePackageConfigHelpers)

set(flywheel_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Flywheel")

foreach(room IN ITEMS runtime device host)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/${room}" DESTINATION "${FLYWHEEL_INSTALL_INCLUDEDIR}"
          FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh" PATTERN "include" EXCLUDE)
  if(EXISTS "${PROJECT_SOURCE_DIR}/${room}/include")
    install(DIRECTORY "${PROJECT_SOURCE_DIR}/${room}/include/" DESTINATION "${FLYWHEEL_INSTALL_INCLUDEDIR}")
  endif()
endforeach()
install(DIRECTORY "${FLYWHEEL_GENERATED_DIR}/include/" DESTINATION "${FLYWHEEL_INSTALL_INCLUDEDIR}")

install(TARGETS flywheel_runtime flywheel_host EXPORT FlywheelTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT FlywheelTargets NAMESPACE Flywheel:: DESTINATION "${flywheel_cmake_dir}")

configure_package_config_file(tools/cmake/FlywheelConfig.cmake.in
  "${PROJECT_BINARY_DIR}/FlywheelConfig.cmake" INSTALL_DESTINATION "${flywheel_cmake_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/FlywheelConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/FlywheelConfig.cmake" "${PROJECT_BINARY_DIR}/FlywheelConfigVersion.cmake"
              "${PROJECT_SOURCE_DIR}/tools/cmake/FlywheelCuda20.cmake"
        DESTINATION "${flywheel_cmake_dir}")
