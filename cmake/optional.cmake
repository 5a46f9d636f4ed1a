# att_optional(setting library MODULE m FLAG f PACKAGE p WITH file WITHOUT file LOST what)
# Uses an optional library that pkg-config knows as MODULE. The setting (ATT_HUB, ATT_SERVE or ATT_ODE) says whether: ON
# requires the library, OFF leaves it out, AUTO uses it if it is found. With the library the file WITH is compiled, else
# the file WITHOUT, whose functions say what is missing. Sets ATT_<library> to ON or OFF. If ON, appends to
# <setting>_LIBRARIES, and for the packages to <setting>_FLAGS and <setting>_PACKAGES. LOST: what a build without the
# library lacks, for a message.
function(att_optional setting library)
  cmake_parse_arguments(ARG "" "MODULE;FLAG;PACKAGE;WITH;WITHOUT;LOST" "" ${ARGN})
  set(found OFF)
  if(NOT ${setting} STREQUAL "OFF")
    pkg_check_modules(${library} QUIET IMPORTED_TARGET ${ARG_MODULE})
    if(${library}_FOUND)
      set(found ON)
    endif()
  endif()
  if(${setting} STREQUAL "ON" AND NOT found)
    message(FATAL_ERROR "${setting}=ON needs ${ARG_MODULE} (${ARG_PACKAGE}).")
  endif()

  if(found)
    list(APPEND ATT_LEFT_OUT ${ARG_WITHOUT})
    set(${setting}_LIBRARIES ${${setting}_LIBRARIES} PkgConfig::${library} PARENT_SCOPE)
    set(${setting}_FLAGS "${${setting}_FLAGS} ${ARG_FLAG}" PARENT_SCOPE)
    set(${setting}_PACKAGES "${${setting}_PACKAGES}, ${ARG_PACKAGE}" PARENT_SCOPE)
  else()
    message(STATUS "Left out: ${ARG_LOST} (${ARG_MODULE} was not found, or ${setting} is OFF).")
    list(APPEND ATT_LEFT_OUT ${ARG_WITH})
  endif()
  set(ATT_LEFT_OUT ${ATT_LEFT_OUT} PARENT_SCOPE)
  set(ATT_${library} ${found} PARENT_SCOPE)
endfunction()

# Downloads of pretrained weights. Without them, weights in the caches are still found.
att_optional(ATT_HUB CURL MODULE libcurl>=7.85 FLAG -lcurl PACKAGE libcurl4-openssl-dev WITH src/networks/hub/curl.c
             WITHOUT src/networks/hub/without_curl.c LOST "downloads of pretrained weights")
# The web server of `attscope serve`.
att_optional(ATT_SERVE MICROHTTPD MODULE libmicrohttpd>=0.9.71 FLAG -lmicrohttpd PACKAGE libmicrohttpd-dev
             WITH lab/serve/http.c WITHOUT lab/serve/without_microhttpd.c LOST "attscope serve")
# Systems from files for `attscope ode`.
att_optional(ATT_ODE MUPARSER MODULE muparser FLAG -lmuparser PACKAGE libmuparser-dev WITH lab/papers/ode/expression.c
             WITHOUT lab/papers/ode/without_muparser.c LOST "systems from files for attscope ode")
