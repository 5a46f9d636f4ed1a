# What `cmake --install` installs, and where. The components become Debian packages: library (shared libattscope),
# development (its headers, static library, pkg-config and CMake files), lab and lab_development (the same for
# libattscope-lab), command, and python (the Python package, which uses the installed libraries).
include(CMakePackageConfigHelpers)

set(ATT_CONFIG_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/attscope)

# att_install(target output component development shared static): installs the shared and the static library, and the
# CMake files that import them as attscope::<shared> and attscope::<static>. The static library has its own export file,
# because only its users must find the libraries that it depends on.
function(att_install target output component development shared static)
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${shared})
  set_target_properties(${target}_static PROPERTIES EXPORT_NAME ${static})
  install(TARGETS ${target} EXPORT ${output} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component}
          NAMELINK_COMPONENT ${development})
  install(TARGETS ${target}_static EXPORT ${output}-static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
          COMPONENT ${development})
  foreach(export ${output} ${output}-static)
    install(EXPORT ${export} NAMESPACE attscope:: FILE ${export}-targets.cmake DESTINATION ${ATT_CONFIG_DIR}
            COMPONENT ${development})
  endforeach()
endfunction()

att_install(attscope attscope library development attscope static)
att_install(attscope_lab attscope-lab lab lab_development lab lab_static)
# libattscope-lab finds libattscope in its own folder. In /usr, the loader finds it without RPATH.
if(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set_target_properties(attscope_lab PROPERTIES INSTALL_RPATH "$ORIGIN")
endif()
install(DIRECTORY include/attscope DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
        FILES_MATCHING PATTERN "*.h" PATTERN "lab" EXCLUDE PATTERN "lab.h" EXCLUDE)
install(FILES include/attscope/lab.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/attscope COMPONENT lab_development)
install(DIRECTORY include/attscope/lab DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/attscope COMPONENT lab_development
        FILES_MATCHING PATTERN "*.h")

configure_package_config_file(cmake/attscopeConfig.cmake.in ${PROJECT_BINARY_DIR}/attscopeConfig.cmake
                              INSTALL_DESTINATION ${ATT_CONFIG_DIR} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/attscopeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/attscopeConfig.cmake ${PROJECT_BINARY_DIR}/attscopeConfigVersion.cmake
        DESTINATION ${ATT_CONFIG_DIR} COMPONENT development)

# The .pc files compute the prefix from their own location, so that an installation can be moved.
set(ATT_PKGCONFIG_DIR ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH ATT_PREFIX_FROM_PKGCONFIG /${ATT_PKGCONFIG_DIR} /)
string(REGEX REPLACE "/$" "" ATT_PREFIX_FROM_PKGCONFIG "${ATT_PREFIX_FROM_PKGCONFIG}")
foreach(name attscope attscope-lab)
  configure_file(cmake/${name}.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/attscope.pc DESTINATION ${ATT_PKGCONFIG_DIR} COMPONENT development)
install(FILES ${PROJECT_BINARY_DIR}/attscope-lab.pc DESTINATION ${ATT_PKGCONFIG_DIR} COMPONENT lab_development)

install(TARGETS attscope_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
install(DIRECTORY ${ATT_PAGES}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT command)
install(DIRECTORY ${ATT_PAGES}/bash-completion ${ATT_PAGES}/zsh DESTINATION ${CMAKE_INSTALL_DATADIR}
        COMPONENT command)

# tools/make-tour makes it.
install(DIRECTORY ${PROJECT_BINARY_DIR}/../share/attscope/tour DESTINATION ${CMAKE_INSTALL_DATADIR}/attscope
        COMPONENT command OPTIONAL)

# Where Debian's python3 looks for packages of the system. tools/build-wheel makes the package for other systems.
install(DIRECTORY python/attscope DESTINATION lib/python3/dist-packages COMPONENT python
        PATTERN "__pycache__" EXCLUDE)

install(FILES README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT command)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT command)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT development FILES_MATCHING PATTERN "*.c")
