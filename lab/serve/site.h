/* serve/site.h - what a server shows: the runs, models and images named on the command line. Thread-safe. */
#ifndef ATT_SERVE_SITE_H
#define ATT_SERVE_SITE_H

#include <attscope/lab/runs.h>
#include <attscope/lab/serve.h>

typedef struct att_site att_site;

/* Sorts the operands into runs, models and folders of runs. On success the caller owns *site and frees it with
 * att_site_destroy(). Errors: those of att_server_start() for operands. */
att_status att_site_create(att_context *context, const att_serve_options *options, att_site **site);
void att_site_destroy(att_site **site);

/* Links name a run and a model by its name: the shortest end of its path, of whole components, that differs from those
 * of the others ("last.safetensors", "a/last.safetensors"). Names stay the same as long as the site lives. */

/* Looks for new runs in the folders of runs, then returns the number of runs. The number of a run, 0..count-1, never
 * changes. The folders are read at each call, so that a training run that starts appears. Errors, for `context`:
 * ERR_IO, ERR_MEMORY. */
att_status att_site_count_runs(att_site *site, att_context *context, int *count);
/* The folder and the name of run `run`, 0..count-1; the name lives as long as the site. */
att_status att_site_run(att_site *site, att_context *context, int run, char folder[static ATT_RUN_PATH]);
const char *att_site_run_name(att_site *site, int run);
/* Writes the folder of the run with this name. Errors: ERR_NOT_FOUND (there is no such run); those of
 * att_site_count_runs(). */
att_status att_site_find_run(att_site *site, att_context *context, const char *name, char folder[static ATT_RUN_PATH]);

/* Whether runs or folders of runs were named. */
bool att_site_has_runs(const att_site *site);

/* The checkpoints that were named themselves, 0..count-1, and networks by their names. The texts live as long as the
 * site. */
typedef struct att_site_model {
    const char *path; /* as att_network_open() takes it */
    const char *name;
    const char *network; /* NETWORK of an operand NETWORK=PATH; NULL: none */
} att_site_model;
int att_site_model_count(const att_site *site);
att_site_model att_site_model_at(const att_site *site, int model);
/* Writes the path of the model with this name, or the folder of the run with this name. Errors: ERR_NOT_FOUND; those of
 * att_site_count_runs(). */
att_status att_site_find_model(att_site *site, att_context *context, const char *name, char path[static ATT_RUN_PATH]);

/* The folder of images, the file of texts, the tokenizer, the network of checkpoints for which none is known, and the
 * names of classes; NULL if none was given. */
const char *att_site_images(const att_site *site);
const char *att_site_texts(const att_site *site);
const char *att_site_tokenizer(const att_site *site);
const char *att_site_network(const att_site *site);
const char *att_site_labels(const att_site *site);

#endif
