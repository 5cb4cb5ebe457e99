// The source that a target of CMake's needs. Its precompiled header is what the tests take: see ../CMakeLists.txt.
