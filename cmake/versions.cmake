# Versions of the libraries' symbols, as linker scripts in the build folder. Public functions are of the interface's
# version; those that libattscope exports for libattscope-lab alone, marked ATT_FOR_LAB in the headers of src/
# (core/export.h), are of the exact version, so that the loader refuses two libraries of different versions. As a script
# (cmake -P) this file makes libattscope's; included, it adds the step and sets ATT_VERSIONS and ATT_LAB_VERSIONS.
cmake_minimum_required(VERSION 3.22)

if(CMAKE_SCRIPT_MODE_FILE)
  # -DSRC=folder -DINTERFACE=version -DVERSION=version -DOUT=file
  file(GLOB_RECURSE headers ${SRC}/*.h)
  set(names "")
  foreach(header ${headers})
    file(READ ${header} text)
    string(REGEX MATCHALL "ATT_FOR_LAB [^;(]*\\(" declarations "${text}")
    foreach(declaration ${declarations})
      string(REGEX MATCH "att_[a-z0-9_]+\\($" name "${declaration}")
      string(REPLACE "(" ";" name "${name}")
      list(APPEND names ${name})
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
