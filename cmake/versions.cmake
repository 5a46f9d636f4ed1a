# Linker scripts with the versions of the libraries' symbols. Public functions have the version of the interface (0.2).
# What is marked ATT_FOR_LAB (src/base/core/export.h), which libattscope exports for libattscope-lab only, has the exact
# version (0.2.0), so that the loader refuses two libraries of different versions. Run as a script (cmake -P), this file
# writes libattscope's linker script; included, it adds that step and sets ATT_VERSIONS and ATT_LAB_VERSIONS.
cmake_minimum_required(VERSION 3.22)

if(CMAKE_SCRIPT_MODE_FILE)
  # -DSRC=folder -DINTERFACE=version -DVERSION=version -DOUT=file
  file(GLOB_RECURSE headers ${SRC}/*.h)
  set(names "")
  foreach(header ${headers})
    file(READ ${header} text)
    string(REGEX MATCHALL "ATT_FOR_LAB [^;(]*" declarations "${text}")
    foreach(declaration ${declarations})
      if(declaration MATCHES "(att_[a-z0-9_]+)(\\[[^]]*\\])?$")
        list(APPEND names ${CMAKE_MATCH_1})
      endif()
    endforeach()
  endforeach()
  list(SORT names)
  list(JOIN names ";\n    " names)
  file(WRITE ${OUT} "ATTSCOPE_${INTERFACE} {
  global:
    att_*;
  local:
    *;
};
ATTSCOPE_PRIVATE_${VERSION} {
  global:
    ${names};
};
")
  return()
endif()

set(ATT_VERSIONS ${PROJECT_BINARY_DIR}/attscope.map)
set(ATT_LAB_VERSIONS ${PROJECT_BINARY_DIR}/attscope-lab.map)
file(GLOB_RECURSE headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.h)
add_custom_command(
  OUTPUT ${ATT_VERSIONS}
  COMMAND ${CMAKE_COMMAND} -DSRC=${PROJECT_SOURCE_DIR}/src -DINTERFACE=${ATT_INTERFACE} -DVERSION=${PROJECT_VERSION}
          -DOUT=${ATT_VERSIONS} -P ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${headers} ${CMAKE_CURRENT_LIST_FILE}
  VERBATIM)
file(CONFIGURE OUTPUT ${ATT_LAB_VERSIONS} CONTENT "ATTSCOPE_LAB_@ATT_INTERFACE@ {
  global:
    att_*;
  local:
    *;
};
" @ONLY)
