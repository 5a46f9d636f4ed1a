/* ode/systems.h - for tests: opens systems, and skips tests of what this build does not have. */
#ifndef TESTS_ODE_SYSTEMS_H
#define TESTS_ODE_SYSTEMS_H

#include <attscope/lab/ode.h>

#include <math.h>

#include "base/io/scratch.h"

static inline att_ode *open_system(scratch *s, const char *name, const att_ode_settings *settings)
{
    att_ode *ode = NULL;
    if (att_ode_open(s->context, name, settings, &ode) != ATT_OK)
        fail_msg("%s: %s", name, att_context_message(s->context));
    return ode;
}

static inline att_ode_trajectory run_method(att_ode *ode, const char *method, const att_ode_options *options)
{
    att_ode_trajectory t = {0};
    assert_int_equal(att_ode_run(ode, method, options, &t), ATT_OK);
    return t;
}

/* Whether this build has the method; if not, says so. */
static inline bool has_method(const char *name)
{
    for (int i = 0; i < att_ode_method_count(); i++) {
        att_ode_method_info info = att_ode_method_at(i);
        if (strcmp(info.name, name) != 0)
            continue;
        if (info.available)
            printf("skipped: %s\n", info.available);
        return !info.available;
    }
    return false;
}

/* Writes the equations to the file "system.ode" and returns its path. */
static inline const char *write_system(scratch *s, const char *text)
{
    snprintf(s->path, sizeof s->path, "%s/system.ode", s->folder);
    scratch_write(s, text, strlen(text));
    return s->path;
}

static inline bool has_files(scratch *s)
{
    att_ode *ode = NULL;
    att_status status = att_ode_open(s->context, write_system(s, "x' = 1\nx(0) = 0\n"), NULL, &ode);
    att_ode_close(&ode);
    if (status == ATT_ERR_UNSUPPORTED)
        printf("skipped: %s\n", att_context_message(s->context));
    return status != ATT_ERR_UNSUPPORTED;
}

#endif
