# att_warnings: for everything written in C here. att_compile_options: for the library's own files, which see its inner headers.

# One rounding per operation as written, whatever the compiler: clang contracts a * b + c by default and gcc does not,
# and a reference kernel must give the same bits from both. The tier files (targets.cmake) ask for contraction again:
# fused multiply-add is what they exist for, and their results are compared within a tolerance. Set for the directory,
# not in an interface, because an interface's options come after a target's own and would win over those.
add_compile_options(-ffp-contract=off)

add_library(att_warnings INTERFACE)
# -fno-math-errno changes no result: nothing here reads errno after a mathematical function.
target_compile_options(att_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes
                       -Wmissing-prototypes -fno-math-errno -fopenmp-simd)
if(ATT_WERROR)
  target_compile_options(att_warnings INTERFACE -Werror)
endif()
if(CMAKE_C_COMPILER_ID MATCHES "Clang")
  # A loop marked `omp simd` that stays scalar is no fault, and without optimisation (sanitizers) all of them do.
  target_compile_options(att_warnings INTERFACE -Wno-pass-failed)
endif()
target_compile_definitions(att_warnings INTERFACE _POSIX_C_SOURCE=200809L _DEFAULT_SOURCE)

add_library(att_compile_options INTERFACE)
target_include_directories(att_compile_options INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(att_compile_options INTERFACE att_warnings Threads::Threads m)

# What reads from outside is instrumented for fuzzing in the build that has the sanitizers: tests and fuzz targets share
# it. att_fuzzed(target...): these are.
function(att_fuzzed)
  foreach(target ${ARGN})
    if(ATT_FUZZ)
      target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
    endif()
  endforeach()
endfunction()

# Kernels under sanitizers are all accesses. Checks of pointers that end in a report of the address sanitizer anyway are
# left out of them. In a tier file's functions of more than 1000 accesses the address sanitizer calls its checks: inline,
# clang 14 takes 85 s for one file of one tier. In smaller functions, such as the matrix product of attention, checks are
# inline: called ones for each vector of 64 bytes took three quarters of the time of a network's test.
set(ATT_KERNEL_SANITIZE "")
set(ATT_TIER_SANITIZE "")
if(ATT_SANITIZE MATCHES "address" AND ATT_SANITIZE MATCHES "undefined")
  set(ATT_KERNEL_SANITIZE -fno-sanitize=pointer-overflow,null,alignment,object-size)
endif()
if(ATT_SANITIZE MATCHES "address" AND CMAKE_C_COMPILER_ID MATCHES "Clang")
  set(ATT_TIER_SANITIZE "SHELL:-mllvm -asan-instrumentation-with-call-threshold=1000")
endif()

if(ATT_SANITIZE)
  add_compile_options(-fsanitize=${ATT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${ATT_SANITIZE})
endif()
