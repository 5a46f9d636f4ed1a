# What `cmake --install` puts where. Components, which become Debian packages: library (what programs run with),
# development (what they are built with) and command.
include(CMakePackageConfigHelpers)

set(ATT_CONFIG_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/attscope)

set_target_properties(attscope PROPERTIES EXPORT_NAME attscope)
set_target_properties(attscope_static PROPERTIES EXPORT_NAME static)
install(TARGETS attscope EXPORT attscope LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
        NAMELINK_COMPONENT development)
# An export of its own: its users need the libraries that this one is made of, those of the shared one do not.
install(TARGETS attscope_static EXPORT attscope-static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        COMPONENT development)
install(DIRECTORY include/attscope DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT development
        FILES_MATCHING PATTERN "*.h")
foreach(name attscope attscope-static)
  install(EXPORT ${name} NAMESPACE attscope:: FILE ${name}-targets.cmake DESTINATION ${ATT_CONFIG_DIR}
          COMPONENT development)
endforeach()

configure_package_config_file(cmake/attscopeConfig.cmake.in ${PROJECT_BINARY_DIR}/attscopeConfig.cmake
                              INSTALL_DESTINATION ${ATT_CONFIG_DIR} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/attscopeConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/attscopeConfig.cmake ${PROJECT_BINARY_DIR}/attscopeConfigVersion.cmake
        DESTINATION ${ATT_CONFIG_DIR} COMPONENT development)

# The file finds its prefix from its own place, so that an installation can be moved.
set(ATT_PKGCONFIG_DIR ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH ATT_PREFIX_FROM_PKGCONFIG /${ATT_PKGCONFIG_DIR} /)
string(REGEX REPLACE "/$" "" ATT_PREFIX_FROM_PKGCONFIG "${ATT_PREFIX_FROM_PKGCONFIG}")
configure_file(cmake/attscope.pc.in ${PROJECT_BINARY_DIR}/attscope.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/attscope.pc DESTINATION ${ATT_PKGCONFIG_DIR} COMPONENT development)

install(TARGETS attscope_command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
install(DIRECTORY ${ATT_PAGES}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT command)
install(DIRECTORY ${ATT_PAGES}/bash-completion ${ATT_PAGES}/zsh DESTINATION ${CMAKE_INSTALL_DATADIR}
        COMPONENT command)

install(FILES README.md CHANGELOG.md CONTRIBUTING.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT command)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT command)
install(FILES examples/graph.c examples/predict.c examples/train.c DESTINATION ${CMAKE_INSTALL_DOCDIR}/examples
        COMPONENT development)
