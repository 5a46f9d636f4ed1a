/* core/error.h - failing with a sentence. */
#ifndef ATT_CORE_ERROR_H
#define ATT_CORE_ERROR_H

#include <attscope/context.h>

#include "core/export.h"

/* ERR_MEMORY with a sentence that says how much for what was not to be had, and why. */
ATT_FOR_LAB att_status att_fail_memory(att_context *context, size_t bytes, const char *what);
ATT_FOR_LAB void att_log(att_context *context, att_log_level level, const char *format, ...) ATT_PRINTF(3, 4);

/* Whether the settings' `stop` asks to end the call. */
ATT_FOR_LAB bool att_stop_asked(const att_context *context);
/* Until it is called again with false, nothing asks to stop: for what must be written after a stop. */
ATT_FOR_LAB void att_hold_stop(att_context *context, bool hold);
/* ERR_STOPPED where it does; what: the file or folder that is being read. */
att_status att_check_stop(att_context *context, const char *what);

/* Returns from the enclosing function where `call` failed. */
#define ATT_TRY(call)                    \
    do {                                 \
        att_status try_status_ = (call); \
        if (try_status_ != ATT_OK)       \
            return try_status_;          \
    } while (0)

#endif
