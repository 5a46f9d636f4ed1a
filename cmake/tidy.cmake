# `cmake --build <folder> --target tidy` runs clang-tidy on the C files of src/, lab/, cli/ and examples/.
find_program(ATT_CLANG_TIDY clang-tidy)
if(ATT_CLANG_TIDY)
  add_custom_target(tidy COMMAND ${PROJECT_SOURCE_DIR}/tools/tidy ${ATT_CLANG_TIDY} ${PROJECT_BINARY_DIR}
                    USES_TERMINAL VERBATIM)
endif()
