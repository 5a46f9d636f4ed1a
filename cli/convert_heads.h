/* convert_heads.h - heads that attend by position: attscope convert --prune-heads and --to-convolution. */
#ifndef CLI_CONVERT_HEADS_H
#define CLI_CONVERT_HEADS_H

#include <attscope/position_heads.h>

#include "cli.h"
#include "flags.h"

typedef struct cli_heads_flags {
    bool prune;
    const char *to_convolution; /* layers; NULL: no conversion */
    int kernel;                 /* side of the convolutions that are written; 0: the default */
} cli_heads_flags;
extern const att_flag_group cli_heads_group;

/* The degenerate heads of a network, in the order of its layers; heads NULL: none. The owner frees `heads`. */
typedef struct cli_degenerate {
    att_head_place *heads;
    int count;
} cli_degenerate;
/* Finds them. Returns CLI_OK or an exit code. */
int cli_degenerate_find(cli_app *cli, const att_model *model, const att_weights *weights, cli_degenerate *found);
/* Prints the rule and the heads, with `title` as head of the first line; writes them as members of the current JSON
 * object. */
void cli_degenerate_print(const char *title, const cli_degenerate *found);
void cli_degenerate_write(const cli_degenerate *found, att_json_writer *writer);

/* Finds out whether the scores of heads by position are a quadratic form, for which degenerate heads are defined. The
 * network has layers of such heads. Returns CLI_OK or an exit code. */
int cli_heads_have_forms(cli_app *cli, const att_model *model, const att_weights *weights, bool *have);

/* A network without its degenerate heads. The owner frees all members, also after a failure. */
typedef struct cli_pruned {
    att_model *model;
    att_weights *weights;
    cli_degenerate removed;
    cli_degenerate kept; /* head 0 of each layer whose heads are all degenerate */
} cli_pruned;
int cli_heads_prune(cli_app *cli, const att_model *model, const att_weights *weights, cli_pruned *result);
/* Prints the removed heads, and those that stay although they are degenerate; writes them as members of the current
 * JSON object. */
void cli_pruned_print(const cli_pruned *pruned);
void cli_pruned_write(const cli_pruned *pruned, att_json_writer *writer);
void cli_pruned_free(cli_pruned *pruned);

/* Prints the shape of each head, and the errors of the nearest convolutions. Writes the convolutions to the file `out`
 * (NULL: none) and the figures to the file `json` (NULL: none). Returns CLI_OK or an exit code. */
int cli_heads_to_convolution(cli_app *cli, const cli_heads_flags *flags, const att_model *model,
                             const att_weights *weights, const char *out, const char *json);

#endif
