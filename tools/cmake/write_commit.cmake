# cmake -D SOURCE_DIR=... -D OUTPUT=... -P write_commit.cmake
# Writes commit.cpp, and only touches it when the commit or the state of the working tree changed.
set(FLYWHEEL_COMMIT "unknown")
execute_process(COMMAND git -c safe.directory=* -C "${SOURCE_DIR}" rev-parse --short=12 HEAD
                OUTPUT_VARIABLE head OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed ERROR_QUIET)
if(failed EQUAL 0)
  set(FLYWHEEL_COMMIT "${head}")
  execute_process(COMMAND git -c safe.directory=* -C "${SOURCE_DIR}" status --porcelain --untracked-files=no
                  OUTPUT_VARIABLE changes ERROR_QUIET)
  if(changes)
    string(APPEND FLYWHEEL_COMMIT "-dirty")
  endif()
endif()
configure_file("${CMAKE_CURRENT_LIST_DIR}/commit.cpp.in" "${OUTPUT}" @ONLY)
