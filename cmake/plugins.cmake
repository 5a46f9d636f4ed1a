# Plugins, which are loaded on request and keep the libraries free of what they need: MPI, once for each MPI library,
# and the backend "cuda".
file(RELATIVE_PATH ATT_PLUGINS_FROM_BIN ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR}/attscope-plugins)
set_property(SOURCE src/base/core/plugin.c APPEND PROPERTY COMPILE_DEFINITIONS
             ATT_PLUGINS_FROM_BIN="${ATT_PLUGINS_FROM_BIN}")
set(ATT_PLUGINS "")

# att_mpi_plugin(name package title): <name>.so, if pkg-config knows the package. title: name of the MPI library.
function(att_mpi_plugin name package title)
  pkg_check_modules(ATT_${name} QUIET IMPORTED_TARGET ${package})
  if(NOT ATT_${name}_FOUND)
    message(STATUS "No plugin for ${name}: pkg-config does not know ${package}.")
    return()
  endif()
  add_library(plugin_${name} MODULE ${PROJECT_SOURCE_DIR}/src/base/comm/mpi/plugin.c)
  set_target_properties(plugin_${name} PROPERTIES PREFIX "" OUTPUT_NAME ${name}
                        LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/attscope-plugins)
  target_include_directories(plugin_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  # MPI's headers are not ours to warn about.
  target_include_directories(plugin_${name} SYSTEM PRIVATE ${ATT_${name}_INCLUDE_DIRS})
  target_link_libraries(plugin_${name} PRIVATE att_warnings PkgConfig::ATT_${name})
  install(TARGETS plugin_${name} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/attscope-plugins COMPONENT ${name})
  set(ATT_PLUGINS ${ATT_PLUGINS} ${name} PARENT_SCOPE)
  set(ATT_${name}_TITLE ${title} PARENT_SCOPE)
endfunction()

att_mpi_plugin(openmpi ompi-c "Open MPI")
att_mpi_plugin(mpich mpich MPICH)

if(ATT_CUDA)
  include(cmake/cuda.cmake)
endif()
