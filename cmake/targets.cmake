# Functions that make static libraries from the folders of src/ and lab/, and from these the two shared and static
# libraries.
include(${CMAKE_CURRENT_LIST_DIR}/folder_name.cmake)

# Processor tiers (base/core/processor.h), and the compiler flags of each. Only x86-64 has more than the baseline, which
# then serves processors made before 2013: -O2 compiles it in two thirds of the time.
set(ATT_TIERS baseline)
set(ATT_TIER_FLAGS_baseline "")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  list(APPEND ATT_TIERS avx2 avx512 avx512_bf16)
  set(ATT_TIER_FLAGS_baseline -O2)
endif()
# Sanitizer builds have the baseline and the widest tier of this machine. The tiers between these have the same code.
if(ATT_SANITIZE AND EXISTS /proc/cpuinfo)
  file(STRINGS /proc/cpuinfo processor REGEX "^flags" LIMIT_COUNT 1)
  set(widest baseline)
  foreach(tier ${ATT_TIERS})
    if("${processor} " MATCHES " ${tier}[ v]") # avx512vl stands for all of avx512
      set(widest ${tier})
    endif()
  endforeach()
  foreach(tier ${ATT_TIERS})
    if(NOT tier STREQUAL baseline AND NOT tier STREQUAL widest)
      list(REMOVE_ITEM ATT_TIERS ${tier})
      string(TOUPPER ${tier} name)
      add_compile_definitions(ATT_WITHOUT_${name})
    endif()
  endforeach()
endif()
set(ATT_TIER_FLAGS_avx2 -mavx2 -mfma -mf16c)
set(ATT_TIER_FLAGS_avx512 ${ATT_TIER_FLAGS_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl
    -mprefer-vector-width=512)
set(ATT_TIER_FLAGS_avx512_bf16 ${ATT_TIER_FLAGS_avx512} -mavx512bf16)

# att_folder(path [USES target...]) Makes the static library att_<name> from <path>/*.c, linked only with the folders it
# uses, so a dependency in the wrong direction does not link. path begins with a wing of ATT_WINGS; <name> is the rest,
# or the wing's own name. Folders of lab/ are part of attscope_lab, all others of attscope. <path>/tier/*.c are compiled
# once for each processor tier, with ATT_TIER defined as the tier's name; the external symbols of these objects must end
# in that name (tools/check-symbols). A folder without C files becomes an interface library.
function(att_folder path)
  cmake_parse_arguments(ARG "" "" "USES" ${ARGN})
  set(library attscope)
  if(path MATCHES "^lab/")
    set(library attscope_lab)
  endif()
  att_folder_name(${path} name)
  set(target att_${name})
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${path}/*.c)
  foreach(file ${ATT_LEFT_OUT}) # files excluded by a build option
    list(REMOVE_ITEM files ${PROJECT_SOURCE_DIR}/${file})
  endforeach()
  file(GLOB tier_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${path}/tier/*.c)
  set_property(GLOBAL APPEND PROPERTY ATT_FOLDERS ${path})
  set_property(GLOBAL APPEND PROPERTY ATT_FOLDERS_${library} ${target})
  if(NOT files)
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE att_compile_options ${ARG_USES})
    return()
  endif()
  add_library(${target} STATIC ${files})
  target_link_libraries(${target} PUBLIC att_compile_options ${ARG_USES})
  set_property(GLOBAL APPEND PROPERTY ATT_OBJECTS_${library} $<TARGET_OBJECTS:${target}>)
  if(tier_files)
    foreach(tier ${ATT_TIERS})
      att_tier(${library} ${target} ${tier} ${tier_files})
    endforeach()
  endif()
endfunction()

function(att_tier library folder tier)
  set(target ${folder}_${tier})
  add_library(${target} OBJECT ${ARGN})
  target_link_libraries(${target} PRIVATE att_compile_options)
  target_compile_definitions(${target} PRIVATE ATT_TIER=${tier})
  # -fno-trapping-math changes no result; it lets gcc vectorise loops with comparisons.
  target_compile_options(${target} PRIVATE ${ATT_TIER_FLAGS_${tier}} ${ATT_KERNEL_SANITIZE} ${ATT_TIER_SANITIZE}
                         -ffp-contract=fast -fno-trapping-math)
  target_sources(${folder} PRIVATE $<TARGET_OBJECTS:${target}>)
  set_property(GLOBAL APPEND PROPERTY ATT_OBJECTS_${library} $<TARGET_OBJECTS:${target}>)
  set_property(GLOBAL APPEND PROPERTY ATT_TIER_TARGETS ${target})
endfunction()

# att_library(name output map [USES library...])
# Makes one library from its folders: lib<output>.so (target <name>, alias attscope::<last word of output>) and
# lib<output>.a (target <name>_static). map: linker script with the symbol versions of the shared library. USES: other
# libraries made by this function that this one links with.
function(att_library name output map)
  cmake_parse_arguments(ARG "" "" "USES" ${ARGN})
  get_property(objects GLOBAL PROPERTY ATT_OBJECTS_${name})
  get_property(folders GLOBAL PROPERTY ATT_FOLDERS_${name})
  set(libraries "")
  foreach(folder ${folders})
    get_target_property(uses ${folder} INTERFACE_LINK_LIBRARIES)
    list(APPEND libraries ${uses})
  endforeach()
  list(FILTER libraries EXCLUDE REGEX "^att_")
  list(REMOVE_DUPLICATES libraries)

  add_library(${name} SHARED ${objects} ${map})
  add_library(${name}_static STATIC ${objects})
  foreach(suffix "" _static)
    set_target_properties(${name}${suffix} PROPERTIES OUTPUT_NAME ${output} LINKER_LANGUAGE C)
    target_include_directories(${name}${suffix} INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                               $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
    target_link_libraries(${name}${suffix} PRIVATE ${libraries} Threads::Threads m)
    foreach(used ${ARG_USES})
      target_link_libraries(${name}${suffix} PUBLIC ${used}${suffix})
    endforeach()
  endforeach()
  set_target_properties(${name} PROPERTIES VERSION ${PROJECT_VERSION} SOVERSION ${ATT_INTERFACE} LINK_DEPENDS ${map})
  target_link_options(${name} PRIVATE -Wl,--version-script=${map})
  if(NOT ATT_SANITIZE)
    target_link_options(${name} PRIVATE -Wl,-z,defs)
  endif()
  string(REGEX MATCH "[a-z]+$" alias ${output})
  add_library(attscope::${alias} ALIAS ${name})
endfunction()

# libattscope, and libattscope-lab on top of it.
function(att_libraries)
  att_library(attscope attscope ${ATT_VERSIONS})
  att_library(attscope_lab attscope-lab ${ATT_LAB_VERSIONS} USES attscope)
endfunction()

# The command. It is linked statically, so that the file can be moved alone, and includes public headers only. All files
# but main.c are the object library att_cli, which the generator of manual pages and the fuzz targets use too.
function(att_command)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cli/*.c)
  list(FILTER files EXCLUDE REGEX "/main\\.c$")
  add_library(att_cli OBJECT ${files})
  target_link_libraries(att_cli PUBLIC att_warnings attscope_lab_static)
  target_include_directories(att_cli INTERFACE ${PROJECT_SOURCE_DIR}/cli)
  att_fuzzed(att_cli)
  add_executable(attscope_command ${PROJECT_SOURCE_DIR}/cli/main.c)
  set_target_properties(attscope_command PROPERTIES OUTPUT_NAME attscope)
  target_link_libraries(attscope_command PRIVATE att_cli)
endfunction()

# Manual pages and shell completion. A program that the build runs generates them from the commands' descriptors into
# the folder ATT_PAGES, laid out as below share/.
function(att_pages)
  file(GLOB files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cli/pages/*.c)
  add_executable(att_make_pages ${files})
  target_link_libraries(att_make_pages PRIVATE att_cli)
  set(ATT_PAGES ${PROJECT_BINARY_DIR}/pages)
  add_custom_command(OUTPUT ${ATT_PAGES}.made COMMAND ${CMAKE_COMMAND} -E rm -rf ${ATT_PAGES}
                     COMMAND att_make_pages ${ATT_PAGES} COMMAND ${CMAKE_COMMAND} -E touch ${ATT_PAGES}.made
                     DEPENDS att_make_pages VERBATIM)
  add_custom_target(pages ALL DEPENDS ${ATT_PAGES}.made)
  set(ATT_PAGES ${ATT_PAGES} PARENT_SCOPE)
endfunction()
