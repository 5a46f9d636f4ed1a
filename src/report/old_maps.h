/* report/old_maps.h - version 2 of maps.safetensors, which attscope 0.1 wrote (attscope/maps.h): it has classes in
 * place of captions. */
#ifndef ATT_REPORT_OLD_MAPS_H
#define ATT_REPORT_OLD_MAPS_H

#include "report/map_file.h"

#define ATT_OLD_MAPS_FORMAT "2"

/* *captions: a JSON array of a text for each image, the caller's. maps: `file` and `images` are read. Errors:
 * ERR_FORMAT, ERR_MEMORY, and what reading says. */
att_status att_old_maps_captions(const att_map_file *maps, json_t **captions);

#endif
