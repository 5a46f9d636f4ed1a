# Debian packages: `cpack -G DEB` in the build folder. Configure it with the preset debian, whose prefix /usr installs
# the libraries where Debian expects them.
add_custom_target(product DEPENDS attscope attscope_static attscope_lab attscope_lab_static attscope_command pages)
foreach(plugin ${ATT_PLUGINS})
  add_dependencies(product plugin_${plugin})
endforeach()
set(library libattscope${ATT_INTERFACE})
set(lab libattscope-lab${ATT_INTERFACE})

set(CPACK_PACKAGE_VENDOR "attscope")
set(CPACK_PACKAGE_CONTACT "the attscope developers <attscope@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "training and measuring of vision networks with attention")
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL library development lab lab_development command python ${ATT_PLUGINS})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}) # where libattscope-lab finds libattscope
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME ${library})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION "Networks, training, checkpoints and instruments as a C library.")
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)

if(ATT_CURL)
  set(CPACK_DEBIAN_LIBRARY_PACKAGE_RECOMMENDS ca-certificates) # for downloads
  set(CPACK_DEBIAN_COMMAND_PACKAGE_RECOMMENDS ca-certificates)
endif()

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libattscope-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Headers, static library, pkg-config and CMake files of libattscope.")
# The libraries that the static library needs.
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${library} (= ${PROJECT_VERSION}), libdnnl-dev, ocl-icd-opencl-dev, \
libjansson-dev, libyaml-dev, libarchive-dev, libspng-dev, libexpat1-dev, libjpeg-dev, libwebp-dev, \
libutf8proc-dev, zlib1g-dev, libarpack2-dev, liblapack-dev, liblbfgs-dev${ATT_SQLITE_PACKAGE}${ATT_HUB_PACKAGES}")

# libattscope-lab calls private functions of libattscope, so both must come from the same build.
set(CPACK_DEBIAN_LAB_PACKAGE_NAME ${lab})
set(CPACK_DEBIAN_LAB_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LAB_PACKAGE_DEPENDS "${library} (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_LAB_DESCRIPTION "Sweeps, reports and benchmarks of libattscope's networks as a C library.")

set(CPACK_DEBIAN_LAB_DEVELOPMENT_PACKAGE_NAME libattscope-lab-dev)
set(CPACK_DEBIAN_LAB_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_COMPONENT_LAB_DEVELOPMENT_DESCRIPTION
    "Headers, static library, pkg-config and CMake files of libattscope-lab.")
set(CPACK_DEBIAN_LAB_DEVELOPMENT_PACKAGE_DEPENDS
    "${lab} (= ${PROJECT_VERSION}), libattscope-dev (= ${PROJECT_VERSION}), libjansson-dev${ATT_ODE_PACKAGES}\
${ATT_SERVE_PACKAGES}")

set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME attscope)
set(CPACK_COMPONENT_COMMAND_DESCRIPTION "The command: train, validate, predict, measure, report, inspect, bench.")
set(CPACK_DEBIAN_COMMAND_PACKAGE_SUGGESTS "dataset-fashion-mnist, attscope-openmpi, attscope-mpich")

set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-attscope)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= 3.10), python3-numpy, ${lab} (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS "python3-pandas, python3-pil")
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA
    "${PROJECT_SOURCE_DIR}/python/debian/postinst;${PROJECT_SOURCE_DIR}/python/debian/prerm")
set(CPACK_COMPONENT_PYTHON_DESCRIPTION "Networks, training, instruments and reports in Python, by ctypes.")

# A package for each MPI library that CMake found, so that no other package depends on MPI. CPack finds the package of
# the MPI library itself.
set(plugin_packages "")
foreach(plugin ${ATT_PLUGINS})
  string(TOUPPER ${plugin} component)
  set(CPACK_DEBIAN_${component}_PACKAGE_NAME attscope-${plugin})
  set(CPACK_DEBIAN_${component}_PACKAGE_DEPENDS "${library} (= ${PROJECT_VERSION})")
  set(CPACK_COMPONENT_${component}_DESCRIPTION "Training on several machines that ${ATT_${plugin}_TITLE} connects.")
  list(APPEND plugin_packages "${plugin} attscope-${plugin}")
endforeach()

# Every package installs the licence as share/doc/<package>/copyright.
foreach(component_and_package "library ${library}" "development libattscope-dev" "lab ${lab}"
        "lab_development libattscope-lab-dev" "command attscope" "python python3-attscope" ${plugin_packages})
  separate_arguments(names UNIX_COMMAND "${component_and_package}")
  list(GET names 0 component)
  list(GET names 1 package)
  install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${package} RENAME copyright COMPONENT ${component})
endforeach()
include(CPack)
