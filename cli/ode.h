/* ode.h - results of `attscope ode`, and how they are shown. */
#ifndef CLI_ODE_H
#define CLI_ODE_H

#include "cli.h"

enum { ODE_MOST_METHODS = 8, ODE_MOST_FAMILY = 8 };

typedef struct ode_method {
    att_ode_method_info info;
    char failure[512];             /* why there is no trajectory; "": there is one */
    att_ode_trajectory trajectory; /* zero if there is none */
    double error;                  /* |u - reference| / error_unit at the end; NaN: unknown or diverged */
    double least_step, largest_step, largest_product; /* of h; of h SI */
} ode_method;

/* A member of a family of ever stiffer systems. */
typedef struct ode_member {
    char name[64];
    att_ode_theorem theorem;
} ode_member;

typedef struct ode_results {
    att_ode *ode;
    att_ode_info info;
    att_ode_options options;
    const char *reference; /* how the reference was computed, or why there is none */
    double error_unit;     /* of att_ode_reference(); NaN if there is no reference */
    ode_method methods[ODE_MOST_METHODS];
    int method_count;
    double theorem_step;
    ode_member family[ODE_MOST_FAMILY]; /* the first one is the system itself */
    int family_count;
} ode_results;

void ode_explain(FILE *out);
void ode_print(const ode_results *results);
/* Both return CLI_OK or an exit code. path of the JSON: NULL: none. */
int ode_write_json(cli_app *cli, const char *path, const ode_results *results);
int ode_write_csv(cli_app *cli, const char *path, const ode_results *results);

#endif
