/* attscope stack: deep stacks of self-attention, their collapse to rank one, and its bounds. */
#include <stdlib.h>
#include <string.h>

#include "flags.h"
#include "network.h"
#include "paths.h"
#include "progress.h"
#include "stack.h"
#include "stop.h"

typedef struct settings {
    att_stack_options stack; /* without hidden and norm, which the next two give */
    double mlp_ratio;
    const char *norm, *model;
    int repeats, samples;
    att_reals gains;
    cli_output output;
} settings;

const char *stack_norm_name(int norm)
{
    static const char *const names[] = {
#define NORM_NAME(name, text) text,
        ATT_STACK_NORM_LIST(NORM_NAME)
#undef NORM_NAME
    };
    return norm < (int)(sizeof names / sizeof *names) ? names[norm] : NULL;
}

static const att_flag stack_rows[] = {
    {"depth", .kind = ATT_FLAG_INT, .value = "N", .help = "layers", ATT_FLAG_AT(settings, stack.depth), .low = 1,
     .high = 100000},
    {"num-heads", .kind = ATT_FLAG_INT, .value = "N", .help = "heads of each layer; must divide --embed-dim",
     ATT_FLAG_AT(settings, stack.heads), .low = 1, .high = 2048},
    {"embed-dim", .kind = ATT_FLAG_INT, .value = "N", .help = "width of the tokens", ATT_FLAG_AT(settings, stack.width),
     .low = 1, .high = 2048},
    {"tokens", .kind = ATT_FLAG_INT, .value = "N", .help = "number of tokens", ATT_FLAG_AT(settings, stack.tokens),
     .low = 1, .high = 4096},
    {"skip", .kind = ATT_FLAG_SWITCH, .help = "skip connections: X + f(X) around attention and MLP",
     ATT_FLAG_AT(settings, stack.skip)},
    {"mlp", .kind = ATT_FLAG_SWITCH, .help = "an MLP with GELU after each attention", ATT_FLAG_AT(settings, stack.mlp)},
    {"mlp-ratio", .kind = ATT_FLAG_REAL, .value = "X", .help = "hidden width of the MLP / --embed-dim",
     ATT_FLAG_AT(settings, mlp_ratio), .low = 0.001, .high = 64},
    {"norm", .kind = ATT_FLAG_TEXT, .value = "KIND",
     .help = "layer norm: of each token, or column-wise: by the mean and standard deviation of each channel over the "
             "tokens",
     .choice = stack_norm_name, ATT_FLAG_AT(settings, norm)},
    {"pre-norm", .kind = ATT_FLAG_SWITCH,
     .help = "norm in front of each branch, as in ViT; otherwise after the addition",
     ATT_FLAG_AT(settings, stack.pre_norm)},
    {"model", .kind = ATT_FLAG_TEXT, .value = "NAME", .help = "name of CHECKPOINT's network, if its file does not tell",
     ATT_FLAG_AT(settings, model)},
    {"norm-eps", .kind = ATT_FLAG_REAL, .value = "EPS",
     .help = "added to the variance of a token; with CHECKPOINT, the network's is used",
     ATT_FLAG_AT(settings, stack.norm_eps), .low = 0, .high = 1e6},
};

static const att_flag random_rows[] = {
    {"init-std", .kind = ATT_FLAG_REAL, .value = "STD",
     .help = "weights are drawn from N(0, STD^2), 1e-50 to 1e6; 0: from N(0, 1 / inputs)",
     ATT_FLAG_AT(settings, stack.init_std), .low = 0, .high = 1e6},
    {"mlp-gain", .kind = ATT_FLAG_REAL, .value = "G", .help = "factor of both matrices of the MLP",
     ATT_FLAG_AT(settings, stack.mlp_gain), .low = 0, .high = 1e6},
    {"input-std", .kind = ATT_FLAG_REAL, .value = "STD", .help = "tokens X_0 are drawn from N(0, STD^2)",
     ATT_FLAG_AT(settings, stack.input_std), .low = 0, .high = 1e6},
    {"shared", .kind = ATT_FLAG_SWITCH, .help = "all layers have the same weights",
     ATT_FLAG_AT(settings, stack.shared)},
    {"seed", .kind = ATT_FLAG_SEED, .value = "N", .help = "seed of weights and tokens",
     ATT_FLAG_AT(settings, stack.seed)},
    {"repeats", .kind = ATT_FLAG_INT, .value = "N",
     .help = "stacks with seed, seed + 1, ...; the table has mean +- deviation of the logarithms",
     ATT_FLAG_AT(settings, repeats), .low = 1, .high = STACK_REPEATS},
    {"mlp-gains", .kind = ATT_FLAG_REALS, .value = "G", .most = ATT_MOST_REALS,
     .help = "with --mlp, also print what a larger Lipschitz constant of the MLP costs, for these gains: sensitivity "
             "to the "
             "input and variance of the gradient",
     ATT_FLAG_AT(settings, gains), .low = 0, .high = 1e6},
    {"samples", .kind = ATT_FLAG_INT, .value = "N", .help = "samples for each gain of --mlp-gains",
     ATT_FLAG_AT(settings, samples), .low = 2, .high = 1000},
};

static void defaults(att_context *context, void *values)
{
    (void)context;
    settings *s = values;
    *s = (settings){.stack = att_stack_options_defaults(), .repeats = 1, .samples = 16, .mlp_ratio = 4};
    s->norm = stack_norm_name(s->stack.norm);
}

static const att_flag_group stack_group = {"Stack", stack_rows, sizeof stack_rows / sizeof *stack_rows,
                                           .defaults = defaults};
static const att_flag_group random_group = {
    .title = "Random weights", .rows = random_rows, .row_count = sizeof random_rows / sizeof *random_rows};

static const att_flag_use uses[] = {
    {&stack_group, 0}, {&random_group, 0}, {&cli_group_output, offsetof(settings, output)}};

/* --- progress ----------------------------------------------------------------------------------------------------- */

typedef struct job {
    cli_app *cli;
    const settings *settings;
    stack_results results;
    int run;                    /* number of the stack that runs */
    att_stack_network *network; /* of CHECKPOINT; NULL: random weights */
} job;

/* Shows the layer on a terminal. Returns false after Ctrl-C. */
static bool show_layer(void *user, int layer)
{
    job *j = user;
    if (layer % 64 == 0)
        cli_bar_print(j->cli, "stack %d/%d  layer %d/%d  ", j->run + 1, j->results.repeats, layer,
                      j->results.options.depth);
    return !cli_stop_asked();
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static att_stack_options options_of(job *j)
{
    const settings *s = j->settings;
    att_stack_options o = s->stack;
    o.hidden = s->mlp_ratio * s->stack.width < 1 ? 1 : (int)(s->mlp_ratio * s->stack.width + 0.5);
    o.progress = show_layer;
    o.progress_user = j;
    for (int i = 0; stack_norm_name(i); i++)
        if (strcmp(s->norm, stack_norm_name(i)) == 0)
            o.norm = (att_stack_norm)i;
    return o;
}

/* Replaces sizes, weights and tokens by those of the network. */
static int load(job *j, const char *checkpoint, const char *image)
{
    char path[CLI_PATH];
    if (cli_is_folder(image))
        return cli_usage("%s is a folder, and stack needs one image, whose tokens are X_0", image);
    int code = cli_checkpoint_locate(j->cli, checkpoint, path);
    j->results.checkpoint = checkpoint;
    j->results.image = image;
    return code == CLI_OK ? cli_check(j->cli, att_stack_network_read(j->cli->context, path, j->settings->model, image,
                                                                     &j->results.options, &j->network))
                          : code;
}

static bool has_norm(const settings *s, att_stack_norm norm)
{
    return strcmp(s->norm, stack_norm_name(norm)) == 0;
}

/* Whether a flag differs from its default that has no effect on the stack of CHECKPOINT. */
static bool has_random_flags(const settings *s, const settings *d)
{
    bool sizes = s->stack.depth != d->stack.depth || s->stack.heads != d->stack.heads ||
                 s->stack.width != d->stack.width || s->stack.tokens != d->stack.tokens;
    bool weights = s->stack.init_std != d->stack.init_std || s->stack.mlp_gain != d->stack.mlp_gain ||
                   s->stack.shared != d->stack.shared || s->mlp_ratio != d->mlp_ratio ||
                   s->stack.norm_eps != d->stack.norm_eps || s->stack.seed != d->stack.seed;
    return sizes || weights || s->stack.input_std != d->stack.input_std || s->repeats > 1 || s->gains.count > 0;
}

/* CHECKPOINT is a ViT: layer norm of each token, in front of the branches. */
static bool has_other_norms(const settings *s)
{
    return !has_norm(s, ATT_STACK_NORM_NONE) && !(has_norm(s, ATT_STACK_NORM_TOKEN) && s->stack.pre_norm);
}

static int check_network(const cli_app *cli, const settings *s, int operands)
{
    if (operands == 1)
        return cli_usage("stack needs an image after CHECKPOINT, whose tokens are X_0");
    if (operands == 2 && has_other_norms(s))
        return cli_usage(
            "with CHECKPOINT, the norms are those of a ViT: give --norm token --pre-norm, or neither for blocks "
            "without norms");
    if (operands == 2 && has_random_flags(s, att_flags_defaults(cli->flags)))
        return cli_usage(
            "sizes, weights and tokens are those of CHECKPOINT: leave out the flags for random stacks "
            "(--depth, --num-heads, --embed-dim, --tokens, --mlp-ratio, --norm-eps, \"Random weights\")");
    if (operands == 0 && s->model)
        return cli_usage("--model names the network of CHECKPOINT, which is missing");
    return CLI_OK;
}

/* d: the defaults */
static int check(const settings *s, const settings *d)
{
    if (s->stack.heads > s->stack.width || s->stack.width % s->stack.heads)
        return cli_usage("--num-heads %d does not divide --embed-dim %d", s->stack.heads, s->stack.width);
    if (s->stack.pre_norm && has_norm(s, ATT_STACK_NORM_NONE))
        return cli_usage("--pre-norm says where the norm is, and needs --norm token or --norm column");
    if (!s->stack.mlp && (s->mlp_ratio != d->mlp_ratio || s->stack.mlp_gain != d->stack.mlp_gain))
        return cli_usage("--mlp-ratio and --mlp-gain are of the MLPs, and need --mlp");
    if (s->stack.norm_eps != d->stack.norm_eps && !has_norm(s, ATT_STACK_NORM_TOKEN))
        return cli_usage("--norm-eps is of the norm of each token, and needs --norm token");
    if (s->gains.count == 0 && s->samples != d->samples)
        return cli_usage("--samples requires --mlp-gains");
    if (s->gains.count == 0)
        return CLI_OK;
    if (!s->stack.mlp || !has_norm(s, ATT_STACK_NORM_NONE))
        return cli_usage("--mlp-gains needs --mlp and --norm none: it is the price of an MLP without norm");
    if (s->stack.depth > ATT_STACK_PRICE_DEPTH)
        return cli_usage("--mlp-gains needs a --depth of at most %d, not %d", ATT_STACK_PRICE_DEPTH, s->stack.depth);
    return CLI_OK;
}

static bool allocate(stack_results *r)
{
    size_t depth = (size_t)r->options.depth, repeats = (size_t)r->repeats;
    const att_stack_options *o = &r->options;
    r->layers = calloc(repeats * (depth + 1), sizeof *r->layers);
    r->prices = calloc((size_t)r->price_count * repeats + 1, sizeof *r->prices);
    bool absorbs = o->norm == ATT_STACK_NORM_COLUMN && !o->skip && !o->mlp && !o->pre_norm;
    if (absorbs)
        r->absorption = calloc(depth, sizeof *r->absorption);
    return r->layers && r->prices && (r->absorption || !absorbs);
}

static int simulate(job *j)
{
    stack_results *r = &j->results;
    int code = CLI_OK;
    for (j->run = 0; j->run < r->repeats && code == CLI_OK; j->run++) {
        att_stack_options o = r->options;
        o.seed += (uint64_t)j->run;
        size_t first = (size_t)j->run * ((size_t)o.depth + 1);
        code = cli_check(j->cli, att_stack_run(j->cli->context, &o, r->layers + first, NULL));
    }
    if (code == CLI_OK && r->absorption)
        code = cli_check(j->cli, att_stack_absorb(j->cli->context, &r->options, r->absorption));
    return code;
}

static int price(job *j)
{
    stack_results *r = &j->results;
    int code = CLI_OK;
    for (int i = 0; i < r->price_count * r->repeats && code == CLI_OK; i++) {
        att_stack_options o = r->options;
        o.seed += (uint64_t)(i % r->repeats);
        o.mlp_gain = r->gains[i / r->repeats];
        code = cli_check(j->cli, att_stack_price_mlp(j->cli->context, &o, r->samples, &r->prices[i]));
    }
    return code;
}

static int run(cli_app *cli, void *user, const char *const *operands, int count)
{
    const settings *s = user;
    job j = {.cli = cli, .settings = s};
    int code = check_network(cli, s, count);
    if (code == CLI_OK)
        code = check(s, att_flags_defaults(cli->flags));
    if (code == CLI_OK)
        code = cli_open(cli, 1);
    if (code == CLI_OK)
        code = cli_output_check(s->output.json);
    if (code != CLI_OK)
        return code;
    j.results = (stack_results){.options = options_of(&j),
                                .repeats = s->repeats,
                                .gains = s->gains.values,
                                .price_count = s->gains.count,
                                .samples = s->samples};
    stack_results *r = &j.results;
    if (count == 2)
        code = load(&j, operands[0], operands[1]);
    if (code == CLI_OK && !allocate(r))
        code = cli_failure("out of memory for %d stacks of %d layers", s->repeats, r->options.depth);
    if (code == CLI_OK)
        code = simulate(&j);
    if (code == CLI_OK)
        code = price(&j);
    cli_bar_clear(cli);
    if (code == CLI_OK && cli_prints(s->output.json))
        stack_print(r);
    if (code == CLI_OK)
        code = stack_write(cli, s->output.json, r);
    free(r->layers);
    free(r->prices);
    free(r->absorption);
    att_stack_network_destroy(&j.network);
    return code;
}

const cli_command cli_command_stack = {
    .name = "stack",
    .summary = "shows how deep self-attention collapses to rank one, and its bounds",
    .operands = "[CHECKPOINT IMAGE]",
    .most_operands = 2,
    .excess = "stack takes one CHECKPOINT and one IMAGE",
    .about =
        "Runs a random stack of self-attention layers in f64 and prints the residual\n"
        "res(X) = X - 1 mean(X)' of the tokens after each layer, on a logarithmic scale,\n"
        "next to its bounds. The residual is computed without subtracting tokens, so that\n"
        "it is known at any depth: 10,000 layers (--depth 10000, no other flags) take about\n"
        "half a minute.\n"
        "\n"
        "With CHECKPOINT and IMAGE, the layers are the blocks of a trained ViT and X_0 the\n"
        "tokens of the image in front of the first block. Sizes are those of the network.\n"
        "--skip, --mlp, --norm token --pre-norm switch on what the network has; with all\n"
        "of them the stack is the network itself.\n"
        "\n"
        "Logarithms are natural. -e^A stands for a logarithm beyond -1e6: ln r = -e^A.\n"
        "-inf: the residual is 0, as of equal tokens, or no double can follow it, because\n"
        "attention is so sharp that groups of tokens became equal. A bound that does not\n"
        "force a decrease is vacuous and marked by v.",
    .explain = stack_explain,
    .example =
        "  attscope stack --depth 1000 --num-heads 1\n"
        "  attscope stack --depth 100 --skip --mlp --norm token --pre-norm --repeats 5\n"
        "  attscope stack --norm column --json layers.json\n"
        "  attscope stack --mlp --mlp-gains 0.5 1 2 4\n"
        "  attscope stack deit_tiny_patch16_224.safetensors cat.jpg --norm token --pre-norm",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .run = run,
};
