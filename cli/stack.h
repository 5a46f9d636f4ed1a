/* stack.h - attscope stack: what its parts share. */
#ifndef CLI_STACK_H
#define CLI_STACK_H

#include "cli.h"

enum { STACK_REPEATS = 256 }; /* most repeats */
/* Residuals below e^-700 are beyond the range of a double. */
#define STACK_LEAST_LOG (-700.0)

/* The name of a norm, as --norm takes it; NULL: there is none with this number. */
const char *stack_norm_name(int norm);

/* The results of all repeats of a stack. */
typedef struct stack_results {
    att_stack_options options; /* of the first repeat; repeat i has seed + i */
    int repeats;
    const char *checkpoint, *image;   /* the source of weights and X_0; NULL: random */
    att_stack_layer *layers;          /* [repeats, depth + 1] */
    att_stack_absorption *absorption; /* [depth], of the first repeat; NULL: not computed */
    att_stack_price *prices;          /* [price_count, repeats] */
    const double *gains;              /* [price_count]: mlp_gain of each price */
    int price_count, samples;
} stack_results;

/* Layer l of repeat i. */
static inline const att_stack_layer *stack_layer(const stack_results *r, int i, int l)
{
    return &r->layers[(size_t)i * ((size_t)r->options.depth + 1) + (size_t)l];
}

/* Prints formulas, sources and readings; also part of the help. */
void stack_explain(FILE *out);
/* Prints the tables. */
void stack_print(const stack_results *results);
/* Writes everything to a file as JSON. path: NULL: none. Returns CLI_OK or an exit code. */
int stack_write(cli_app *cli, const char *path, const stack_results *results);

#endif
