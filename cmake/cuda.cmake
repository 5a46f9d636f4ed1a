# The backend "cuda": the plugin cuda.so (src/engine/backend/plugin.h), linked with its own copy of the folders that kernels
# use. Machine code for compute capability 8.0 and 9.0, and PTX for later ones.
enable_language(CXX)
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
endif()
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)

file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/engine/kernels/cuda/*.cu)
add_library(plugin_cuda MODULE ${files})
set_target_properties(plugin_cuda PROPERTIES PREFIX "" OUTPUT_NAME cuda
                      CUDA_VISIBILITY_PRESET hidden LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/attscope-plugins)
target_include_directories(plugin_cuda PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_compile_options(plugin_cuda PRIVATE -std=c++20 --expt-relaxed-constexpr --extended-lambda -Xcompiler=-Wall,-Wextra,-Wno-deprecated-enum-enum-conversion)
if(ATT_WERROR)
  target_compile_options(plugin_cuda PRIVATE -Werror=all-warnings)
endif()
# The folders' code is in the plugin, but only the descriptor is exported. They are named as files, because nvcc does not
# know the C compiler's options, which their targets pass on.
set(folders att_ops att_passes att_backend att_graph att_core)
add_dependencies(plugin_cuda ${folders})
foreach(folder ${folders})
  target_link_libraries(plugin_cuda PRIVATE $<TARGET_FILE:${folder}>)
endforeach()
target_link_libraries(plugin_cuda PRIVATE Threads::Threads ${CMAKE_DL_LIBS} m CUDA::cublasLt)
target_link_options(plugin_cuda PRIVATE -Wl,--exclude-libs,ALL -Wl,--no-undefined)
install(TARGETS plugin_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/attscope-plugins COMPONENT cuda)
