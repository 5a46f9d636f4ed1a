/* attscope stack: JSON. */
#include <math.h>

#include "stack.h"

/* An infinite logarithm becomes null; its own logarithm tells more. */
static void write_log(att_json_writer *w, const char *key, att_stack_log v)
{
    if (isnan(v.log_log))
        return;
    att_json_put_object(w, key);
    att_json_put_number(w, "ln", v.log);
    att_json_put_number(w, "ln_abs_ln", v.log_log);
    if (v.log_log == INFINITY)
        att_json_put_string(w, "value", "0");
    att_json_end_object(w);
}

static void write_layer(att_json_writer *w, const stack_results *r, int i, int l)
{
    const att_stack_layer *layer = stack_layer(r, i, l), *first = stack_layer(r, i, 0);
    att_json_begin_object(w);
    att_json_put_integer(w, "layer", l);
    write_log(w, "residual", layer->residual);
    write_log(w, "residual_median", layer->median);
    write_log(w, "residual_relative", layer->relative);
    att_json_put_number(w, "ln_norm", layer->norm);
    att_json_put_number(w, "rank", layer->rank);
    if (l > 0) {
        att_json_put_number(w, "beta", layer->beta);
        att_json_put_number(w, "gamma", layer->gamma);
        att_json_put_number(w, "lambda", layer->lambda);
        att_json_put_number(w, "mild_rows", layer->condition);
        write_log(w, "input", layer->input);
        write_log(w, "branch", layer->branch);
        write_log(w, "branch_paper", layer->branch_bound.paper);
        write_log(w, "branch_safe", layer->branch_bound.safe);
        att_json_put_number(w, "ln_head_over_paper", layer->head_paper);
        att_json_put_number(w, "ln_head_over_safe", layer->head_safe);
        write_log(w, "paper", layer->bound.paper);
        write_log(w, "safe", layer->bound.safe);
        att_json_put_bool(w, "safe_is_vacuous", att_stack_is_vacuous(layer->bound.safe, first->residual));
        att_json_put_bool(w, "paper_is_vacuous", att_stack_is_vacuous(layer->bound.paper, first->residual));
    }
    att_json_end_object(w);
}

static void write_fit(att_json_writer *w, const char *key, att_stack_fit fit)
{
    att_json_put_object(w, key);
    att_json_put_integer(w, "pairs", fit.pairs);
    att_json_put_integer(w, "first_layer", fit.first);
    att_json_put_integer(w, "last_layer", fit.last + 1);
    att_json_put_number(w, "slope", fit.slope);
    att_json_put_number(w, "intercept", fit.intercept);
    att_json_end_object(w);
}

static void write_run(att_json_writer *w, const stack_results *r, int i)
{
    att_json_begin_object(w);
    if (!r->checkpoint)
        att_json_put_integer(w, "seed", (int64_t)(r->options.seed + (uint64_t)i));
    write_fit(w, "rate", att_stack_fit_rate(stack_layer(r, i, 0), r->options.depth, STACK_LEAST_LOG));
    write_fit(w, "rate_of_all", att_stack_fit_rate(stack_layer(r, i, 0), r->options.depth, -INFINITY));
    att_json_put_array(w, "layers");
    for (int l = 0; l <= r->options.depth; l++)
        write_layer(w, r, i, l);
    att_json_end_array(w);
    att_json_end_object(w);
}

static void write_options(att_json_writer *w, const stack_results *r)
{
    const att_stack_options *o = &r->options;
    att_json_put_integer(w, "depth", o->depth);
    att_json_put_integer(w, "num_heads", o->heads);
    att_json_put_integer(w, "embed_dim", o->width);
    att_json_put_integer(w, "tokens", o->tokens);
    att_json_put_integer(w, "hidden", o->mlp ? o->hidden : 0);
    att_json_put_bool(w, "skip", o->skip);
    att_json_put_bool(w, "mlp", o->mlp);
    att_json_put_string(w, "norm", stack_norm_name(o->norm));
    att_json_put_bool(w, "pre_norm", o->pre_norm);
    att_json_put_bool(w, "shared", o->shared);
    att_json_put_number(w, "norm_eps", o->norm_eps);
    att_json_put_number(w, "init_std", o->init_std);
    att_json_put_number(w, "input_std", o->input_std);
    att_json_put_number(w, "mlp_gain", o->mlp_gain);
}

static void write_absorption(att_json_writer *w, const stack_results *r)
{
    att_json_put_array(w, "absorption");
    for (int l = 0; l < r->options.depth; l++) {
        att_json_begin_object(w);
        att_json_put_integer(w, "layer", l + 1);
        att_json_put_number(w, "difference_of_layer", r->absorption[l].layer);
        att_json_put_number(w, "difference_of_stack", r->absorption[l].stack);
        att_json_end_object(w);
    }
    att_json_end_array(w);
}

static void write_prices(att_json_writer *w, const stack_results *r)
{
    att_json_put_array(w, "mlp_prices");
    for (int p = 0; p < r->price_count * r->repeats; p++) {
        att_json_begin_object(w);
        att_json_put_number(w, "gain", r->gains[p / r->repeats]);
        att_json_put_integer(w, "seed", (int64_t)(r->options.seed + (uint64_t)(p % r->repeats)));
        att_json_put_integer(w, "samples", r->samples);
        att_json_put_number(w, "lambda", r->prices[p].lambda);
        att_json_put_number(w, "ln_residual", r->prices[p].residual);
        att_json_put_number(w, "ln_sensitivity", r->prices[p].sensitivity);
        att_json_put_number(w, "gradient_norm", r->prices[p].gradient_norm);
        att_json_put_number(w, "gradient_variance", r->prices[p].gradient_variance);
        att_json_end_object(w);
    }
    att_json_end_array(w);
}

static void write_results(att_json_writer *w, const void *from)
{
    const stack_results *r = from;
    write_options(w, r);
    if (r->checkpoint) {
        att_json_put_string(w, "checkpoint", r->checkpoint);
        att_json_put_string(w, ATT_ANSWER_IMAGE, r->image);
    }
    att_json_put_array(w, "stacks");
    for (int i = 0; i < r->repeats; i++)
        write_run(w, r, i);
    att_json_end_array(w);
    if (r->absorption)
        write_absorption(w, r);
    if (r->price_count > 0)
        write_prices(w, r);
}

int stack_write(cli_app *cli, const char *path, const stack_results *results)
{
    return cli_json_save(cli, path, write_results, results);
}
