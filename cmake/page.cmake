# Compiles the pages, web/ and D3, into the library (lab/report/page.h). A page is an HTML file of web/ with its scripts;
# the report's page is written to files, the others are served by `attscope serve`. Run as a script (cmake -P), this file
# writes the C source; included, it adds that step to att_report.
cmake_minimum_required(VERSION 3.22)

# A page is one line: its name, its HTML file, its scripts in order. The script dagre is the library for layouts of
# graphs.
set(ATT_PAGE_report page.html fragment data theme parts export chart collapse depth paths chains surfaces experiments
    training rows tables views differences trajectories histograms development reference maps classes heads ode main)
set(ATT_PAGE_start serve.html fragment data theme parts export rows start)
set(ATT_PAGE_live serve.html fragment data theme parts export chart training development live)
set(ATT_PAGE_explore serve.html data theme parts export maps texts classes answers boxes engine relevance nearest explore)
set(ATT_PAGE_ablate serve.html data theme parts export engine ablate)
set(ATT_PAGE_means serve.html data theme parts export maps engine means)
set(ATT_PAGE_network serve.html dagre data theme parts export engine tensors network)
set(ATT_PAGE_lessons serve.html data theme parts export chart maps engine lessons)
set(ATT_PAGE_NAMES report start live explore ablate means network lessons)

if(CMAKE_SCRIPT_MODE_FILE)
  # -DWEB=folder -DD3=file -DDAGRE=file -DOUT=file
  include(${CMAKE_CURRENT_LIST_DIR}/bytes.cmake)
  file(READ ${WEB}/report.css css)
  file(READ ${WEB}/d3.notice.txt notice)
  file(READ ${D3} d3)
  set(c "#include \"lab/report/page.h\"\n\n")
  att_append_bytes(c att_page_middle "</script>\n<!-- ${notice}-->\n<script>\n${d3}</script>\n")
  foreach(name ${ATT_PAGE_NAMES})
    list(POP_FRONT ATT_PAGE_${name} html)
    file(READ ${WEB}/${html} page)
    set(scripts "")
    foreach(script ${ATT_PAGE_${name}})
      if(script STREQUAL dagre)
        file(READ ${WEB}/dagre.notice.txt notice)
        file(READ ${DAGRE} js)
        string(APPEND scripts "<!-- ${notice}-->\n<script>\n${js}</script>\n")
        continue()
      endif()
      file(READ ${WEB}/${script}.js js)
      string(APPEND scripts "<script>\n${js}</script>\n")
    endforeach()
    string(FIND "${page}" "<!-- data -->" place)
    string(SUBSTRING "${page}" 0 ${place} before)
    string(SUBSTRING "${page}" ${place} -1 after)
    string(REPLACE "<!-- style -->" "<style>\n${css}</style>" before "${before}")
    string(REPLACE "<!-- data -->\n" "" after "${after}")
    string(REPLACE "<!-- scripts -->" "${scripts}" after "${after}")
    string(APPEND before "<script type=\"application/json\" id=\"data\">")
    foreach(part before after)
      att_append_bytes(c att_page_${name}_${part} "${${part}}")
    endforeach()
    string(APPEND c "const att_page att_page_${name} = {att_page_${name}_before, att_page_${name}_after, "
           "sizeof(att_page_${name}_before), sizeof(att_page_${name}_after)};\n")
  endforeach()
  file(WRITE ${OUT} "${c}")
  return()
endif()

set(page ${PROJECT_BINARY_DIR}/page.c)
if(NOT ATT_REPORT)
  set(c "#include \"lab/report/page.h\"\nconst unsigned char att_page_middle[1];\nconst size_t att_page_middle_size = 0;\n")
  foreach(name ${ATT_PAGE_NAMES})
    string(APPEND c "const att_page att_page_${name} = {NULL, NULL, 0, 0};\n")
  endforeach()
  file(GENERATE OUTPUT ${page} CONTENT "${c}")
  target_sources(att_report PRIVATE ${page})
  return()
endif()

find_file(ATT_D3 d3.min.js PATHS /usr/share/nodejs/d3/dist /usr/share/javascript/d3 NO_DEFAULT_PATH)
if(NOT ATT_D3)
  message(FATAL_ERROR "attscope report needs D3 5 or later, and d3.min.js was not found. Install node-d3, set "
                      "-DATT_D3=<path of d3.min.js>, or build without the report: -DATT_REPORT=OFF.")
endif()
find_file(ATT_DAGRE dagre.min.js PATHS /usr/share/nodejs/dagre/dist /usr/share/javascript/dagre NO_DEFAULT_PATH)
if(NOT ATT_DAGRE)
  message(FATAL_ERROR "attscope serve needs dagre, and dagre.min.js was not found. Install node-dagre-layout, set "
                      "-DATT_DAGRE=<path of dagre.min.js>, or build without the pages: -DATT_REPORT=OFF.")
endif()
file(GLOB ATT_WEB_FILES CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/web/*)
add_custom_command(
  OUTPUT ${page}
  COMMAND ${CMAKE_COMMAND} -DWEB=${PROJECT_SOURCE_DIR}/web -DD3=${ATT_D3} -DDAGRE=${ATT_DAGRE} -DOUT=${page} -P ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${ATT_WEB_FILES} ${ATT_D3} ${ATT_DAGRE} ${CMAKE_CURRENT_LIST_FILE} ${PROJECT_SOURCE_DIR}/cmake/bytes.cmake
  VERBATIM)
target_sources(att_report PRIVATE ${page})
