# Who may use whom, bottom to top. A folder whose name is missing here does not exist.
att_folder(core)
att_folder(io USES att_core PkgConfig::JANSSON PkgConfig::YAML PkgConfig::ARCHIVE PkgConfig::SPNG PkgConfig::JPEG
           ZLIB::ZLIB)
att_folder(data USES att_io)
att_folder(graph USES att_io)
