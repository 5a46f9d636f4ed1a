# Compiles class names of known data sets, src/core/classes/*.txt, into the library (src/core/names.h). One file is one
# data set; one line is one class; an ID such as n01440764 before the name is its WordNet synset. Run as a script
# (cmake -P), this file writes the C source; included, it adds that step to att_core.
cmake_minimum_required(VERSION 3.22)

if(CMAKE_SCRIPT_MODE_FILE)
  # -DFOLDER=folder -DOUT=file
  file(GLOB lists ${FOLDER}/*.txt)
  set(c "#include \"core/names.h\"\n")
  set(table "")
  foreach(path ${lists})
    get_filename_component(name ${path} NAME_WE)
    string(MAKE_C_IDENTIFIER ${name} id)
    file(READ ${path} lines)
    string(REGEX MATCHALL "\n" ends "${lines}")
    list(LENGTH ends count)
    set(synsets NULL)
    if(lines MATCHES "^n[0-9]+ ")
      set(synsets ${id}_synsets)
      string(REGEX REPLACE "(n[0-9]+) [^\n]*\n" "    \"\\1\",\n" texts "${lines}")
      string(APPEND c "static const char *const ${synsets}[] = {\n${texts}};\n")
      string(REGEX REPLACE "n[0-9]+ ([^\n]*\n)" "\\1" lines "${lines}")
    endif()
    string(REGEX REPLACE "([^\n]*)\n" "    \"\\1\",\n" texts "${lines}")
    string(APPEND c "static const char *const ${id}_labels[] = {\n${texts}};\n")
    string(APPEND table "    {\"${name}\", ${count}, ${id}_labels, ${synsets}},\n")
  endforeach()
  list(LENGTH lists count)
  string(APPEND c "const att_known_classes att_known_classes_all[] = {\n${table}};\n"
         "const int att_known_classes_number = ${count};\n")
  file(WRITE ${OUT} "${c}")
  return()
endif()

set(folder ${PROJECT_SOURCE_DIR}/src/core/classes)
set(made ${PROJECT_BINARY_DIR}/known_classes.c)
file(GLOB ATT_CLASS_LISTS CONFIGURE_DEPENDS ${folder}/*.txt)
add_custom_command(
  OUTPUT ${made}
  COMMAND ${CMAKE_COMMAND} -DFOLDER=${folder} -DOUT=${made} -P ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${ATT_CLASS_LISTS} ${CMAKE_CURRENT_LIST_FILE}
  VERBATIM)
target_sources(att_core PRIVATE ${made})
