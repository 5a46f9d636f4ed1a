/* ops/map_statistic.h - attributes of map_statistic. */
#ifndef ATT_OPS_MAP_STATISTIC_H
#define ATT_OPS_MAP_STATISTIC_H

#include <stdint.h>

typedef struct att_map_statistic_attrs {
    int64_t kind; /* an att_map_statistic_kind */
    double parameter;
} att_map_statistic_attrs;

#endif
