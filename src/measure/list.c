#include "measure/list.h"

#define ATT_INSTRUMENT_ADDRESS(name) &att_instrument_##name,
const att_instrument *const att_instruments[] = {ATT_INSTRUMENT_LIST(ATT_INSTRUMENT_ADDRESS) NULL};
#undef ATT_INSTRUMENT_ADDRESS
