# The wings of the house, bottom to top. A wing uses only the wings above its line. Those of src/ make libattscope, those
# of lab/ libattscope-lab.
set(ATT_WINGS
    src/base
    src/data
    src/engine
    src/networks
    src/study
    lab/report
    lab/papers
    lab/runs
    lab/bench
    lab/serve)

# The folders, bottom to top, and which folders each may use. Every folder of src/ and lab/ must be listed here.
# tools/check-layers reads these lines too, and checks every #include against them.
att_folder(src/base/core USES ${CMAKE_DL_LIBS})
# Eigenvalues. ARPACK's pkg-config file names LAPACK only for static linking.
att_folder(src/base/spectrum USES att_core PkgConfig::ARPACK PkgConfig::LAPACK)
att_folder(src/base/comm USES att_core)
att_folder(src/base/io USES att_core PkgConfig::JANSSON PkgConfig::YAML PkgConfig::ARCHIVE PkgConfig::SPNG PkgConfig::JPEG
           PkgConfig::WEBP PkgConfig::EXPAT ZLIB::ZLIB)
att_folder(src/base/flags USES att_io)
# Tokenizers.
att_folder(src/data/text USES att_io PkgConfig::UTF8PROC)
att_folder(src/data USES att_io att_comm)
att_folder(src/engine/graph USES att_core)
att_folder(src/engine/ops USES att_graph)
att_folder(src/engine/passes USES att_graph)
att_folder(src/engine/patterns USES att_passes att_ops)
att_folder(src/engine/backend USES att_graph)
att_folder(src/engine/kernels/ref USES att_backend att_ops)
# gomp: a oneDNN primitive stores the OpenMP thread count when it is created; onednn.c sets and restores that count.
att_folder(src/engine/kernels/cpu USES att_backend att_ops att_spectrum DNNL::dnnl gomp)
# CUDA sources, which cmake/cuda.cmake compiles into a plugin.
att_folder(src/engine/kernels/cuda USES att_backend att_ops)
att_folder(src/engine/weights USES att_backend)
att_folder(src/engine/plan USES att_patterns att_weights att_comm)
att_folder(src/engine/session USES att_plan)
att_folder(src/engine/update USES att_session)
# Gives a new context the lists of ops and kernels.
att_folder(src/engine/registry USES att_ops att_kernels_ref att_kernels_cpu att_update)
att_folder(src/networks/nn USES att_registry att_data)
att_folder(src/networks/heads USES att_nn)
att_folder(src/networks/tasks USES att_heads)
att_folder(src/networks/models USES att_tasks)
att_folder(src/networks/layouts USES att_models)
att_folder(src/networks/hub USES att_layouts ${ATT_HUB_LIBRARIES})
att_folder(src/study/measure USES att_models att_spectrum)
att_folder(src/study/train USES att_measure att_flags)
att_folder(src/study/network USES att_train att_hub att_text PkgConfig::LBFGS)
att_folder(src/study/explore USES att_network)
att_folder(src/study/relevance USES att_explore)
att_folder(src/study/pictures USES att_relevance)
att_folder(src/study/store USES att_pictures ${ATT_SQLITE_LIBRARY})
att_folder(lab/report USES att_store PkgConfig::JANSSON)
att_folder(lab/papers/collapse USES att_network)
att_folder(lab/papers/ode USES att_report att_spectrum ${ATT_ODE_LIBRARIES})
att_folder(lab/papers/experiments USES att_store att_text)
att_folder(lab/papers/results USES att_report PkgConfig::JANSSON)
att_folder(lab/runs/records USES att_report)
att_folder(lab/runs/ablation USES att_records)
att_folder(lab/runs/recipe USES att_records)
att_folder(lab/runs/sweep USES att_recipe)
att_folder(lab/runs/advise USES att_sweep)
att_folder(lab/bench USES att_report)
att_folder(lab/serve USES att_ablation ${ATT_SERVE_LIBRARIES})
