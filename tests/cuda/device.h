/* cuda/device.h - the backend "cuda" in tests: a context, or the reason why the tests are skipped. */
#ifndef ATT_TESTS_CUDA_DEVICE_H
#define ATT_TESTS_CUDA_DEVICE_H

#include <stdio.h>

#include "base/core/context.h"
#include "engine/backend/backend.h"

static att_context *context;
static const att_backend *backend;

/* ctest reads this exit status as "skipped". */
enum { DEVICE_SKIPPED = 77 };

/* Whether there is a device. Prints why not. */
static inline bool device_open(void)
{
    if (att_context_create(NULL, &context) != ATT_OK)
        return false;
    if (att_backend_choose(context, "cuda", &backend) == ATT_OK)
        return true;
    printf("skipped: %s\n", att_context_message(context));
    att_context_destroy(&context);
    return false;
}

#endif
