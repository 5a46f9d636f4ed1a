# Compiles timm's names and tags, src/networks/models/timm/*.txt, into the library as byte arrays (src/networks/models/timm.h). Run as a
# script (cmake -P), this file writes the C source; included, it adds that step to att_models.
cmake_minimum_required(VERSION 3.22)

if(CMAKE_SCRIPT_MODE_FILE)
  # -DTIMM=folder -DOUT=file
  include(${CMAKE_CURRENT_LIST_DIR}/bytes.cmake)
  set(c "#include \"networks/models/timm.h\"\n")
  foreach(list names tags)
    file(READ ${TIMM}/${list}.txt text)
    att_append_bytes(c att_timm_${list} "${text}")
  endforeach()
  file(WRITE ${OUT} "${c}")
  return()
endif()

set(timm ${PROJECT_SOURCE_DIR}/src/networks/models/timm)
add_custom_command(
  OUTPUT ${PROJECT_BINARY_DIR}/timm.c
  COMMAND ${CMAKE_COMMAND} -DTIMM=${timm} -DOUT=${PROJECT_BINARY_DIR}/timm.c -P ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${timm}/names.txt ${timm}/tags.txt ${CMAKE_CURRENT_LIST_FILE} ${PROJECT_SOURCE_DIR}/cmake/bytes.cmake
  VERBATIM)
target_sources(att_models PRIVATE ${PROJECT_BINARY_DIR}/timm.c)
