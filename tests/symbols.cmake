# What the built objects and the shared library may define. Sanitizers add symbols of their own.
if(NOT ATT_SANITIZE)
  set(check ${PROJECT_SOURCE_DIR}/tools/check-symbols)
  get_property(tier_targets GLOBAL PROPERTY ATT_TIER_TARGETS)
  foreach(target ${tier_targets})
    string(REGEX MATCH "[^_]+$" tier ${target})
    add_test(NAME tools/symbols_${target} COMMAND ${check} tier ${tier} $<TARGET_OBJECTS:${target}>
             COMMAND_EXPAND_LISTS)
  endforeach()
  if(TARGET attscope_command)
    set(users $<TARGET_OBJECTS:attscope_command>)
  endif()
  add_test(NAME tools/symbols_library COMMAND ${check} library $<TARGET_FILE:attscope> ${users} COMMAND_EXPAND_LISTS)
endif()
