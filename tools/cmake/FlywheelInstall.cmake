# Installs headers, library and package config. The headers keep their folders, so that they find one another by relative
# paths; only the folders of <flywheel/...> are on a consumer's include path.
include(CMakePackageConfigHelpers)

set(flywheel_cmake_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Flywheel")

foreach(room IN ITEMS runtime device host)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/${room}" DESTINATION "${FLYWHEEL_INSTALL_INCLUDEDIR}" COMPONENT flywheel_headers
          FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh")
endforeach()
install(DIRECTORY "${FLYWHEEL_GENERATED_DIR}/include/" DESTINATION "${FLYWHEEL_INSTALL_INCLUDEDIR}/host/include"
        COMPONENT flywheel_headers)

install(TARGETS flywheel_runtime flywheel_host EXPORT FlywheelTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(EXPORT FlywheelTargets NAMESPACE Flywheel:: DESTINATION "${flywheel_cmake_dir}")

configure_package_config_file(tools/cmake/FlywheelConfig.cmake.in
  "${PROJECT_BINARY_DIR}/FlywheelConfig.cmake" INSTALL_DESTINATION "${flywheel_cmake_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/FlywheelConfigVersion.cmake"
                                 COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/FlywheelConfig.cmake" "${PROJECT_BINARY_DIR}/FlywheelConfigVersion.cmake"
              "${PROJECT_SOURCE_DIR}/tools/cmake/FlywheelCuda20.cmake"
        DESTINATION "${flywheel_cmake_dir}")
