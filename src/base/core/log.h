/* core/log.h - what the messages of the log are about. */
#ifndef ATT_CORE_LOG_H
#define ATT_CORE_LOG_H

#include "base/core/error.h"

/* Begins every message of att_log() with `subject` ("the teacher: "), which is not copied, until a call with NULL. */
ATT_FOR_LAB void att_log_about(att_context *context, const char *subject);

#endif
