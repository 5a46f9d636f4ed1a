# The built-in names of classes: src/core/classes/*.txt, one file for each data set, become arrays of texts in the build
# folder (src/core/names.h). A line is a class; what stands before a name like n01440764 is its synset. As a script
# (cmake -P) this file makes them; included, it adds the step to att_core.
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
