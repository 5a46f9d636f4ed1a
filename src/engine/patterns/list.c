#include "engine/patterns/list.h"

#include <stddef.h>

#define ATT_PATTERN_ADDRESS(name) &att_pattern_##name,
const att_pattern *const att_patterns[] = {ATT_PATTERN_LIST(ATT_PATTERN_ADDRESS) NULL};
