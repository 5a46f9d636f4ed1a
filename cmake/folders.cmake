# Who may use whom, bottom to top. A folder whose name is missing here does not exist. tools/check-layers reads the same
# lines, so that an #include cannot go where the link does not.
att_folder(core)
att_folder(io USES att_core PkgConfig::JANSSON PkgConfig::YAML PkgConfig::ARCHIVE PkgConfig::SPNG PkgConfig::JPEG
           PkgConfig::WEBP ZLIB::ZLIB)
att_folder(data USES att_io)
att_folder(graph USES att_io)
att_folder(ops USES att_graph)
att_folder(passes USES att_graph)
att_folder(backend USES att_graph)
att_folder(kernels/ref USES att_backend att_ops)
# gomp: the thread count that oneDNN's primitives latch when they are made is set and restored in one file.
att_folder(kernels/cpu USES att_backend att_ops DNNL::dnnl gomp)
att_folder(weights USES att_backend)
att_folder(plan USES att_passes att_weights att_ops)
att_folder(session USES att_plan)
# Hands the lists of ops and kernels to a new context.
if(EXISTS ${PROJECT_SOURCE_DIR}/src/attscope.c)
  att_folder(registry FILES src/attscope.c USES att_ops att_kernels_ref att_kernels_cpu att_session)
else()
  att_folder(registry USES att_ops att_kernels_ref att_kernels_cpu att_session)
endif()
att_folder(nn USES att_registry att_data)
att_folder(models USES att_nn)
att_folder(measure USES att_models)
att_folder(train USES att_measure)
att_folder(store USES att_train PkgConfig::SQLITE)
att_folder(report USES att_store)
att_folder(bench USES att_report)
