# A project of which Flywheel is a part, without CUDA.
cmake_minimum_required(VERSION 3.25)
project(Parent LANGUAGES CXX)
set_source_files_properties(main.cu PROPERTIES LANGUAGE CXX)
add_subdirectory("${FLYWHEEL_SOURCE}" flywheel)
add_executable(my_program main.cu)
target_link_libraries(my_program PRIVATE Flywheel::flywheel)
