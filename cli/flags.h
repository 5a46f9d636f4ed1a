/* flags.h - options that several commands share. */
#ifndef CLI_FLAGS_H
#define CLI_FLAGS_H

#include <attscope/attscope.h>

#include "cli.h"
#include "options.h"

typedef struct cli_network {
    const char *model; /* NULL: not given */
    att_option_values options;
    cli_reals input_size;                /* what is given goes over into the options */
    const char *adaptor, *adaptor_input; /* NULL: not given; what is given goes over into attn */
    bool
        test_images; /* no flag: take images of the size and crop with which timm's validate.py evaluates the weights */
} cli_network;
extern const cli_group cli_group_network;
/* The declaration of a network's option in the first family that has it; NULL: none has. */
const att_option *cli_declared_find(const char *key);
/* What its flag is called: --drop, or the key with dashes for underscores. */
void cli_flag_of(const att_option *option, char flag[ATT_OPTION_KEY]);
/* A flag for a declaration; offset: of the att_option_values in the struct of the row's group. */
cli_option cli_declared_row(const att_option *declared, const char *name, size_t offset);

typedef struct cli_preprocess {
    cli_reals mean, std;
    double crop_pct;                       /* 0: not given */
    const char *crop_mode, *interpolation; /* NULL: not given */
} cli_preprocess;
extern const cli_group cli_group_preprocess;

typedef struct cli_engine {
    int threads;
    const char *backend;
    bool amp;
    const char *amp_dtype;
    bool amp_force;
} cli_engine;
extern const cli_group cli_group_engine;

att_precision cli_engine_precision(const cli_engine *engine);
/* Makes the context. --amp is refused where the processor has no products in bf16, unless forced. Returns an exit
 * status. */
int cli_engine_open(cli_app *cli, const cli_engine *engine);

typedef struct cli_output {
    const char *json; /* "-": stdout; NULL: none */
} cli_output;
extern const cli_group cli_group_output;

/* What --interpolation and the like can name. */
const char *cli_choice_interpolation(int index);
/* "all" and the instruments, for help and completion of lists of them. */
const char *cli_choice_instrument(int index);

#endif
