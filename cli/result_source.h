/* result_source.h - when and where a run of published results was executed, and what its record lacks. */
#ifndef CLI_RESULT_SOURCE_H
#define CLI_RESULT_SOURCE_H

#include "cli.h"

/* Sets all but the seconds: this version, today, and this machine. */
void result_source_describe(att_result_source *source);

/* What is to be said of a record in this state, after its date: "" or " (outdated: ...)". */
const char *result_record_note(att_record_state state);

#endif
