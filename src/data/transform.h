/* data/transform.h - what the loader needs of the transforms besides the public functions. */
#ifndef ATT_DATA_TRANSFORM_H
#define ATT_DATA_TRANSFORM_H

#include <attscope/data.h>

/* ERR_ARGUMENT where an option is outside its range. */
att_status att_transform_check(att_context *context, const att_transform_options *options);

#endif
