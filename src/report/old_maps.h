/* report/old_maps.h - version 2 of maps.safetensors, written by attscope 0.1 (attscope/maps.h). It has classes instead
 * of captions. */
#ifndef ATT_REPORT_OLD_MAPS_H
#define ATT_REPORT_OLD_MAPS_H

#include "report/map_file.h"

#define ATT_OLD_MAPS_FORMAT "2"

/* Makes captions from the classes. *captions: a JSON array with one string per image, owned by the caller. Reads
 * maps->file and maps->images. Errors: ERR_FORMAT, ERR_MEMORY, those of reading. */
att_status att_old_maps_captions(const att_map_file *maps, json_t **captions);

#endif
