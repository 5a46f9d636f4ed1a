# Two interface targets: att_warnings is for all C files; att_compile_options is for the files of the libraries, which
# include private headers.

# a * b + c is not contracted to a fused multiply-add, so that a reference kernel gives the same bits with every
# compiler: clang contracts by default, gcc with -std=c17 does not. The tier files (targets.cmake) enable contraction
# again; their results are compared within a tolerance. The option is set for the directory, because options of an
# interface target come after a target's own options and would override them.
add_compile_options(-ffp-contract=off)

add_library(att_warnings INTERFACE)
# -fno-math-errno changes no result: no code reads errno after a mathematical function.
target_compile_options(att_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes
                       -Wmissing-prototypes -fno-math-errno -fopenmp-simd)
if(ATT_WERROR)
  target_compile_options(att_warnings INTERFACE -Werror)
endif()
if(CMAKE_C_COMPILER_ID MATCHES "Clang")
  # Do not warn about `omp simd` loops that were not vectorised: without optimisation (sanitizers), none is.
  target_compile_options(att_warnings INTERFACE -Wno-pass-failed)
endif()
target_compile_definitions(att_warnings INTERFACE _POSIX_C_SOURCE=200809L _DEFAULT_SOURCE)

add_library(att_compile_options INTERFACE)
target_include_directories(att_compile_options INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src
                           ${PROJECT_SOURCE_DIR})
target_link_libraries(att_compile_options INTERFACE att_warnings Threads::Threads m)

# att_fuzzed(target...): instruments targets that parse data from outside for libFuzzer, if ATT_FUZZ is on. Tests and
# fuzz targets share this build.
function(att_fuzzed)
  foreach(target ${ARGN})
    if(ATT_FUZZ)
      target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
    endif()
  endforeach()
endfunction()

# Sanitizer options of kernels, which consist of memory accesses. ATT_KERNEL_SANITIZE: omits pointer checks whose errors
# the address sanitizer reports as well. ATT_TIER_SANITIZE: in tier files, functions with more than 200 accesses call
# the address sanitizer's checks instead of inlining them, because clang 14 takes 85 s to compile one such file with
# inline checks (16 s with a limit of 1000 accesses, 6 s with 200). Smaller functions, such as attention's matrix product,
# keep inline checks: calls for each vector of 64 bytes took three quarters of a network test's time.
set(ATT_KERNEL_SANITIZE "")
set(ATT_TIER_SANITIZE "")
if(ATT_SANITIZE MATCHES "address" AND ATT_SANITIZE MATCHES "undefined")
  set(ATT_KERNEL_SANITIZE -fno-sanitize=pointer-overflow,null,alignment,object-size)
endif()
if(ATT_SANITIZE MATCHES "address" AND CMAKE_C_COMPILER_ID MATCHES "Clang")
  set(ATT_TIER_SANITIZE "SHELL:-mllvm -asan-instrumentation-with-call-threshold=200")
endif()

if(ATT_SANITIZE)
  add_compile_options(-fsanitize=${ATT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${ATT_SANITIZE})
endif()
