# Tests of the symbols that objects and libraries define and export. Sanitizers add symbols, so their builds lack these.
if(NOT ATT_SANITIZE)
  set(check ${PROJECT_SOURCE_DIR}/tools/check-symbols)
  get_property(tier_targets GLOBAL PROPERTY ATT_TIER_TARGETS)
  foreach(target ${tier_targets})
    string(REGEX MATCH "(avx512_bf16|[^_]+)$" tier ${target})
    add_test(NAME tools/symbols_${target} COMMAND ${check} tier ${tier} $<TARGET_OBJECTS:${target}>
             COMMAND_EXPAND_LISTS)
  endforeach()
  add_test(NAME tools/symbols_names
           COMMAND ${check} names $<TARGET_FILE:attscope_static> $<TARGET_FILE:attscope_lab_static>)
  foreach(library attscope attscope_lab)
    add_test(NAME tools/symbols_exports_${library} COMMAND ${check} exports $<TARGET_FILE:${library}>)
  endforeach()
  add_test(NAME tools/symbols_private COMMAND ${check} private $<TARGET_FILE:attscope> $<TARGET_FILE:attscope_lab>)
  add_test(NAME tools/symbols_public
           COMMAND ${check} public $<TARGET_FILE:attscope> $<TARGET_FILE:attscope_lab> -- $<TARGET_OBJECTS:att_cli>
           COMMAND_EXPAND_LISTS)
endif()
