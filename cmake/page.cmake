# Compiles the page of `attscope report`, web/ and D3, into the library as two byte arrays (src/report/page.h): the text
# before the data and the text after it. Run as a script (cmake -P), this file writes the C source; included, it adds
# that step to att_report.
cmake_minimum_required(VERSION 3.22)

if(CMAKE_SCRIPT_MODE_FILE)
  # -DWEB=folder -DD3=file -DOUT=file
  include(${CMAKE_CURRENT_LIST_DIR}/bytes.cmake)
  file(READ ${WEB}/page.html page)
  file(READ ${WEB}/report.css css)
  file(READ ${WEB}/d3.notice.txt notice)
  file(READ ${D3} d3)
  set(scripts "<!-- ${notice}-->\n<script>\n${d3}</script>\n")
  foreach(name data theme parts export chart collapse depth paths chains surfaces experiments training tables differences
          trajectories development reference maps heads ode main)
    file(READ ${WEB}/${name}.js js)
    string(APPEND scripts "<script>\n${js}</script>\n")
  endforeach()
  string(FIND "${page}" "<!-- data -->" place)
  string(SUBSTRING "${page}" 0 ${place} before)
  string(SUBSTRING "${page}" ${place} -1 after)
  string(REPLACE "<!-- style -->" "<style>\n${css}</style>" before "${before}")
  string(REPLACE "<!-- data -->" "" after "${after}")
  string(REPLACE "<!-- scripts -->" "${scripts}" after "${after}")
  string(PREPEND after "</script>\n")
  string(APPEND before "<script type=\"application/json\" id=\"data\">")

  set(c "#include \"report/page.h\"\n")
  foreach(part before after)
    att_append_bytes(c att_page_${part} "${${part}}")
  endforeach()
  file(WRITE ${OUT} "${c}")
  return()
endif()

set(page ${PROJECT_BINARY_DIR}/page.c)
if(NOT ATT_REPORT)
  file(GENERATE OUTPUT ${page} CONTENT "#include \"report/page.h\"
const unsigned char att_page_before[1], att_page_after[1];
const size_t att_page_before_size = 0, att_page_after_size = 0;
")
  target_sources(att_report PRIVATE ${page})
  return()
endif()

find_file(ATT_D3 d3.min.js PATHS /usr/share/nodejs/d3/dist /usr/share/javascript/d3 NO_DEFAULT_PATH)
if(NOT ATT_D3)
  message(FATAL_ERROR "attscope report needs D3 5 or later, and d3.min.js was not found. Install node-d3, set "
                      "-DATT_D3=<path of d3.min.js>, or build without the report: -DATT_REPORT=OFF.")
endif()
file(GLOB ATT_WEB_FILES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/web/*)
add_custom_command(
  OUTPUT ${page}
  COMMAND ${CMAKE_COMMAND} -DWEB=${PROJECT_SOURCE_DIR}/web -DD3=${ATT_D3} -DOUT=${page} -P ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${ATT_WEB_FILES} ${ATT_D3} ${CMAKE_CURRENT_LIST_FILE} ${PROJECT_SOURCE_DIR}/cmake/bytes.cmake
  VERBATIM)
target_sources(att_report PRIVATE ${page})
