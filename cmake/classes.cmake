# Compiles class names of known data sets, src/base/core/classes/*.txt, into the library (src/base/core/names.h). One file is one
# data set; one line is one class; an ID such as n01440764 before the name is its WordNet synset. If the first line is
# "# subsets: a=NAME b=NAME", the classes of other data sets are subsets of this one: letters between synset and name say
# to which of them a class belongs, "-" to none. Run as a script (cmake -P), this file writes the C source; included, it
# adds that step to att_core.
cmake_minimum_required(VERSION 3.22)

if(CMAKE_SCRIPT_MODE_FILE)
  # -DFOLDER=folder -DOUT=file
  include(${CMAKE_CURRENT_LIST_DIR}/bytes.cmake)
  set(c "#include \"base/core/names.h\"\n")
  set(table "")
  set(count_of_lists 0)

  # Appends an array of numbers to the C source.
  macro(append_numbers name type numbers)
    list(JOIN ${numbers} ",\n" joined)
    string(APPEND c "static const ${type} ${name}[] = {\n${joined}};\n")
  endmacro()

  # Appends a row of att_known_classes_all. of: "NULL", or the array of the numbers that its classes have in the texts.
  macro(append_list name id count synsets of)
    string(APPEND table "    {\"${name}\", ${count}, ${synsets}, ${id}_texts, ${id}_places, ${of}},\n")
    math(EXPR count_of_lists "${count_of_lists} + 1")
  endmacro()

  file(GLOB lists ${FOLDER}/*.txt)
  foreach(path ${lists})
    get_filename_component(name ${path} NAME_WE)
    string(MAKE_C_IDENTIFIER ${name} id)
    file(STRINGS ${path} lines)
    set(subsets "")
    set(synsets false)
    if(lines MATCHES "^# subsets: ([^;]*)")
      string(REPLACE " " ";" subsets "${CMAKE_MATCH_1}")
      list(POP_FRONT lines)
    endif()
    foreach(subset ${subsets})
      string(SUBSTRING ${subset} 0 1 letter)
      set(numbers_${letter} "")
    endforeach()

    # The texts: each name, after its synset if it has one, with a newline after each, which becomes a NUL below.
    set(texts "")
    set(places "")
    set(place 0)
    set(number 0)
    foreach(line IN LISTS lines)
      if(line MATCHES "^(n[0-9]+) (.*)")
        set(synsets true)
        set(synset ${CMAKE_MATCH_1})
        set(text "${CMAKE_MATCH_2}")
        if(subsets)
          string(REGEX MATCH "^([^ ]+) (.*)" text "${text}")
          set(letters ${CMAKE_MATCH_1})
          set(text "${CMAKE_MATCH_2}")
          foreach(subset ${subsets})
            string(SUBSTRING ${subset} 0 1 letter)
            if(letters MATCHES ${letter})
              list(APPEND numbers_${letter} ${number})
            endif()
          endforeach()
        endif()
        set(line "${synset}\n${text}")
      endif()
      string(APPEND texts "${line}\n")
      string(LENGTH "${line}" length)
      list(APPEND places ${place})
      math(EXPR place "${place} + ${length} + 1")
      math(EXPR number "${number} + 1")
    endforeach()
    att_append_bytes(c ${id}_texts "${texts}")
    append_numbers(${id}_places uint32_t places)
    append_list(${name} ${id} ${number} ${synsets} NULL)
    foreach(subset ${subsets})
      string(SUBSTRING ${subset} 0 1 letter)
      string(SUBSTRING ${subset} 2 -1 name)
      list(LENGTH numbers_${letter} count)
      append_numbers(${id}_${letter} uint16_t numbers_${letter})
      append_list(${name} ${id} ${count} true ${id}_${letter})
    endforeach()
  endforeach()
  string(REPLACE "0x0a," "0x00," c "${c}")
  string(REGEX REPLACE "const size_t [^\n]*\n" "" c "${c}")
  string(REPLACE "const unsigned char" "static const unsigned char" c "${c}")
  string(APPEND c "const att_known_classes att_known_classes_all[] = {\n${table}};\n"
         "const int att_known_classes_number = ${count_of_lists};\n")
  file(WRITE ${OUT} "${c}")
  return()
endif()

set(folder ${PROJECT_SOURCE_DIR}/src/base/core/classes)
set(made ${PROJECT_BINARY_DIR}/known_classes.c)
file(GLOB ATT_CLASS_LISTS CONFIGURE_DEPENDS ${folder}/*.txt)
add_custom_command(
  OUTPUT ${made}
  COMMAND ${CMAKE_COMMAND} -DFOLDER=${folder} -DOUT=${made} -P ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${ATT_CLASS_LISTS} ${CMAKE_CURRENT_LIST_FILE} ${PROJECT_SOURCE_DIR}/cmake/bytes.cmake
  VERBATIM)
target_sources(att_core PRIVATE ${made})
