/* core/error.h - error messages, log lines and requests to stop. */
#ifndef ATT_CORE_ERROR_H
#define ATT_CORE_ERROR_H

#include <attscope/context.h>

#include "base/core/export.h"

/* Reports that `bytes` could not be allocated for `what`, and why. Returns ERR_MEMORY. */
ATT_FOR_LAB att_status att_fail_memory(att_context *context, size_t bytes, const char *what);
/* Fails with ERR_ARGUMENT if `pointer` is NULL. what: name of the argument, with which the message begins, for example
 * "the path of the page". */
ATT_FOR_LAB att_status att_require(att_context *context, const void *pointer, const char *what);
/* Calls att_require() for an array of `count` texts and for each text in it. */
ATT_FOR_LAB att_status att_require_texts(att_context *context, const char *const *texts, int count, const char *what);
/* The number of messages that the context has received. It tells whether a call that failed left a message. */
ATT_FOR_LAB uint64_t att_message_count(att_context *context);
ATT_FOR_LAB void att_log(att_context *context, att_log_level level, const char *format, ...) ATT_PRINTF(3, 4);

/* Returns whether the `stop` callback of the settings requests to end the current call. */
ATT_FOR_LAB bool att_stop_asked(const att_context *context);
/* After hold = true, requests to stop are ignored until a call with hold = false. Used to write results after a stop.
 */
ATT_FOR_LAB void att_hold_stop(att_context *context, bool hold);
/* Fails with ERR_STOPPED if a stop is requested. what: the file or folder that is being read, for the message. */
ATT_FOR_LAB att_status att_check_stop(att_context *context, const char *what);

/* Returns from the enclosing function if `call` fails. */
#define ATT_TRY(call)                    \
    do {                                 \
        att_status try_status_ = (call); \
        if (try_status_ != ATT_OK)       \
            return try_status_;          \
    } while (0)

#endif
