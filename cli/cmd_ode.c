/* attscope ode: stiff differential equations, and how the step size of a method follows the stiffness index. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "flags.h"
#include "ode.h"
#include "progress.h"
#include "stop.h"

typedef struct settings {
    att_reals eigenvalues;
    att_ode_settings system; /* without eigenvalues */
    const char *csv, *page;
    int most_steps;
    double step, rtol, atol;
    att_texts methods;
    cli_output output;
} settings;

static const char *choose_method(int index)
{
    return att_ode_method_at(index).name;
}

static const att_flag system_rows[] = {
    {"eigenvalues", .kind = ATT_FLAG_REALS, .value = "L", .most = ATT_MOST_REALS,
     .help = "linear: eigenvalues of a diagonal matrix, such as -1 -1000", ATT_FLAG_AT(settings, eigenvalues),
     .low = -1e12, .high = 1e12},
    {"matrix", .kind = ATT_FLAG_TEXT, .value = "FILE",
     .help = "linear: text file with a square matrix, a row on each line, instead of --eigenvalues",
     ATT_FLAG_AT(settings, system.matrix)},
    {"points", .kind = ATT_FLAG_INT, .value = "N", .help = "heat: interior points",
     ATT_FLAG_AT(settings, system.points), .low = 2, .high = ATT_ODE_MOST_POINTS},
    {"mu", .kind = ATT_FLAG_REAL, .value = "MU", .help = "vanderpol: the larger, the stiffer",
     ATT_FLAG_AT(settings, system.mu), .low = 0, .high = 1e6},
    {"end", .kind = ATT_FLAG_REAL, .value = "T", .help = "end of the interval, instead of the system's own",
     ATT_FLAG_AT(settings, system.end), .low = -1e15, .high = 1e15},
};

static const att_flag run_rows[] = {
    {"method", .kind = ATT_FLAG_TEXTS, .value = "NAME",
     .help = "a method; may be given several times. Default: all that this build has", .choice = choose_method,
     ATT_FLAG_AT(settings, methods)},
    {"step", .kind = ATT_FLAG_REAL, .value = "H", .help = "step of euler and rk4; default: 1/1000 of the interval",
     ATT_FLAG_AT(settings, step), .low = 1e-15, .high = 1e15},
    {"rtol", .kind = ATT_FLAG_REAL, .value = "R", .help = "rkf45 and bdf: relative tolerance",
     ATT_FLAG_AT(settings, rtol), .low = 1e-14, .high = 0.1},
    {"atol", .kind = ATT_FLAG_REAL, .value = "A", .help = "rkf45 and bdf: absolute tolerance",
     ATT_FLAG_AT(settings, atol), .low = 0, .high = 1e6},
    {"max-steps", .kind = ATT_FLAG_INT, .value = "N", .help = "most steps of a method",
     ATT_FLAG_AT(settings, most_steps), .low = 1, .high = ATT_ODE_MOST_STEPS},
};

static const att_flag file_rows[] = {
    {"csv", .kind = ATT_FLAG_TEXT, .value = "FILE", .help = "write all steps and states as CSV; -: to standard output",
     ATT_FLAG_AT(settings, csv)},
    {"page", .kind = ATT_FLAG_TEXT, .value = "FILE",
     .help = "write an HTML page with charts of step size and stiffness index", ATT_FLAG_AT(settings, page)},
};

static void defaults(att_context *context, void *values)
{
    (void)context;
    att_ode_options run = att_ode_options_defaults();
    *(settings *)values = (settings){.eigenvalues = {.values = {-1, -1000}, .count = 2},
                                     .system = att_ode_settings_defaults(),
                                     .step = NAN,
                                     .rtol = run.rtol,
                                     .atol = run.atol,
                                     .most_steps = (int)run.most_steps};
}

static const att_flag_group system_group = {"System", system_rows, sizeof system_rows / sizeof *system_rows,
                                            .defaults = defaults};
static const att_flag_group run_group = {
    .title = "Integration", .rows = run_rows, .row_count = sizeof run_rows / sizeof *run_rows};
static const att_flag_group file_group = {
    .title = "Files", .rows = file_rows, .row_count = sizeof file_rows / sizeof *file_rows};
static const att_flag_use uses[] = {
    {&system_group, 0}, {&run_group, 0}, {&file_group, 0}, {&cli_group_output, offsetof(settings, output)}};

typedef struct job {
    cli_app *cli;
    const settings *settings;
    const char *name;   /* operand */
    const char *method; /* that runs */
    ode_results results;
} job;

/* --- systems ------------------------------------------------------------------------------------------------------ */

static att_ode_settings system_of(const settings *s)
{
    att_ode_settings system = s->system;
    system.eigenvalues = s->eigenvalues.values;
    system.eigenvalue_count = s->eigenvalues.count;
    return system;
}

/* Flags of a system other than the one that was asked for. */
static int check(const cli_app *cli, const settings *s, const char *name)
{
    const settings *d = att_flags_defaults(cli->flags);
    bool has_eigenvalues = memcmp(&s->eigenvalues, &d->eigenvalues, sizeof d->eigenvalues) != 0;
    const struct {
        bool given;
        const char *flag, *system;
    } rules[] = {{has_eigenvalues, "eigenvalues", "linear"},
                 {s->system.matrix != NULL, "matrix", "linear"},
                 {s->system.points != d->system.points, "points", "heat"},
                 {s->system.mu != d->system.mu, "mu", "vanderpol"}};
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (rules[i].given && strcmp(name, rules[i].system) != 0)
            return cli_usage("--%s belongs to the system %s, not to %s", rules[i].flag, rules[i].system, name);
    if (has_eigenvalues && s->system.matrix)
        return cli_usage("--eigenvalues and --matrix both give the matrix of linear: leave out one of them");
    return CLI_OK;
}

/* --- trajectories ------------------------------------------------------------------------------------------------- */

/* Shows the share of the interval on a terminal. Returns false after Ctrl-C. */
static bool show(void *user, double share)
{
    job *j = user;
    cli_bar_print(j->cli, "%s %3.0f %%  ", j->method, 100 * share);
    return !cli_stop_asked();
}

static void choose_methods(job *j)
{
    ode_results *r = &j->results;
    const att_texts *asked = &j->settings->methods;
    for (int i = 0; i < att_ode_method_count() && r->method_count < ODE_MOST_METHODS; i++) {
        att_ode_method_info info = att_ode_method_at(i);
        bool wanted = asked->count == 0 && !info.available;
        for (int a = 0; a < asked->count; a++)
            wanted = wanted || strcmp(asked->values[a], info.name) == 0;
        if (wanted)
            r->methods[r->method_count++] = (ode_method){.info = info, .error = NAN};
    }
}

static void summarise(ode_method *m)
{
    const att_ode_trajectory *t = &m->trajectory;
    m->least_step = INFINITY;
    for (int64_t i = 0; i < t->count; i++) {
        m->least_step = fmin(m->least_step, t->steps[i].h);
        m->largest_step = fmax(m->largest_step, t->steps[i].h);
        m->largest_product = fmax(m->largest_product, t->steps[i].h * t->steps[i].stiffness_index);
    }
}

/* A method that cannot do it, such as one that needs too many steps, is reported in its row, if others were asked for
 * too. */
static int integrate(job *j, ode_method *m)
{
    att_context *context = j->cli->context;
    j->method = m->info.name;
    att_status status = att_ode_run(j->results.ode, m->info.name, &j->results.options, &m->trajectory);
    if (status == ATT_OK)
        summarise(m);
    if (status == ATT_OK || status == ATT_ERR_STOPPED || j->results.method_count == 1)
        return cli_check(j->cli, status);
    snprintf(m->failure, sizeof m->failure, "%s", att_context_message(context));
    return CLI_OK;
}

static double distance(const double *a, const double *b, int size)
{
    double difference = 0;
    for (int i = 0; i < size; i++)
        difference = hypot(difference, a[i] - b[i]);
    return difference;
}

static int compare(job *j)
{
    ode_results *r = &j->results;
    double *reference = calloc((size_t)r->info.size, sizeof *reference);
    if (!reference)
        return cli_failure("out of memory for a state of %d components", r->info.size);
    att_status status = att_ode_reference(r->ode, reference, &r->error_unit, &r->reference);
    if (status != ATT_OK) /* the message lives until the next failure, and nothing is called after this */
        r->reference = att_context_message(j->cli->context), r->error_unit = NAN;
    for (int i = 0; i < r->method_count && status == ATT_OK; i++)
        if (r->methods[i].trajectory.state && !r->methods[i].trajectory.diverged)
            r->methods[i].error = distance(r->methods[i].trajectory.state, reference, r->info.size) / r->error_unit;
    free(reference);
    return status == ATT_ERR_STOPPED ? cli_check(j->cli, status) : CLI_OK;
}

/* --- theorem 2 ---------------------------------------------------------------------------------------------------- */

static int check_member(job *j, const char *name, const att_ode_settings *system)
{
    ode_results *r = &j->results;
    ode_member *m = &r->family[r->family_count];
    att_ode *ode = NULL;
    int code = cli_check(j->cli, att_ode_open(j->cli->context, j->name, system, &ode));
    if (code == CLI_OK)
        code = cli_check(j->cli, att_ode_theorem_check(ode, r->theorem_step, &m->theorem));
    att_ode_close(&ode);
    snprintf(m->name, sizeof m->name, "%s", name);
    r->family_count += code == CLI_OK;
    return code;
}

/* The next stiffer system: heat on a finer grid, linear with ten times the largest |eigenvalue|. Returns false if there
 * is none. */
static bool stiffen(const char *name, int k, att_ode_settings *system, double *largest, char *text, size_t size)
{
    if (strcmp(name, "heat") == 0 && k <= 6) {
        system->points = 8 << k;
        snprintf(text, size, "N = %d", system->points);
        return true;
    }
    if (strcmp(name, "linear") != 0 || system->matrix)
        return false;
    *largest *= 10;
    snprintf(text, size, "lambda = %g", *largest);
    return true;
}

static int check_family(job *j)
{
    char name[64];
    att_ode_settings system = system_of(j->settings);
    att_reals values = j->settings->eigenvalues;
    int largest = 0, code = check_member(j, j->results.info.name, &system);
    for (int i = 1; i < values.count; i++)
        largest = fabs(values.values[i]) > fabs(values.values[largest]) ? i : largest;
    system.eigenvalues = values.values;
    for (int k = 0; k < ODE_MOST_FAMILY - 1 && code == CLI_OK; k++) {
        if (!stiffen(j->name, k, &system, &values.values[largest], name, sizeof name))
            break;
        code = check_member(j, name, &system);
    }
    return code;
}

/* --- the command -------------------------------------------------------------------------------------------------- */

static int write_page(job *j)
{
    const ode_results *r = &j->results;
    att_ode_line lines[ODE_MOST_METHODS];
    int count = 0;
    for (int i = 0; i < r->method_count; i++)
        if (r->methods[i].trajectory.state)
            lines[count++] = (att_ode_line){r->methods[i].info.name, &r->methods[i].trajectory};
    char target[CLI_PATH];
    return cli_check(j->cli, att_ode_page_write(r->ode, lines, count, cli_file_target(j->settings->page, target)));
}

static int write_files(job *j)
{
    const settings *s = j->settings;
    const ode_results *r = &j->results;
    if (cli_prints(s->output.json) && cli_prints(s->csv))
        ode_print(r);
    int code = ode_write_json(j->cli, s->output.json, r);
    if (code == CLI_OK && s->csv)
        code = ode_write_csv(j->cli, s->csv, r);
    return code == CLI_OK && s->page ? write_page(j) : code;
}

static int integrate_all(job *j)
{
    ode_results *r = &j->results;
    int code = CLI_OK;
    for (int i = 0; i < r->method_count && code == CLI_OK; i++)
        code = integrate(j, &r->methods[i]);
    cli_bar_clear(j->cli);
    if (code == CLI_OK)
        code = check_family(j);
    if (code == CLI_OK)
        code = compare(j);
    return code == CLI_OK ? write_files(j) : code;
}

static int open_system(job *j)
{
    const settings *s = j->settings;
    ode_results *r = &j->results;
    const att_ode_settings system = system_of(s);
    int code = cli_check(j->cli, att_ode_open(j->cli->context, j->name, &system, &r->ode));
    if (code != CLI_OK)
        return code;
    r->info = att_ode_info_of(r->ode);
    r->options = (att_ode_options){.step = isnan(s->step) ? 0 : s->step,
                                   .rtol = s->rtol,
                                   .atol = s->atol,
                                   .most_steps = s->most_steps,
                                   .states = s->output.json || s->csv,
                                   .progress = show,
                                   .user = j};
    r->theorem_step = s->step > 0 ? s->step : (r->info.end - r->info.start) / 1000;
    choose_methods(j);
    return CLI_OK;
}

static int run(cli_app *cli, void *user, const char *const *operands, int count)
{
    (void)count;
    const settings *s = user;
    job j = {.cli = cli, .settings = s, .name = operands[0]};
    int code = check(cli, s, operands[0]);
    const cli_named_output outputs[] = {
        {"--json", s->output.json, false}, {"--csv", s->csv, false}, {"--page", s->page, false}};
    if (code == CLI_OK)
        code = cli_outputs_check(outputs, sizeof outputs / sizeof *outputs);
    if (code == CLI_OK)
        code = cli_open(cli, 1);
    if (code == CLI_OK)
        code = open_system(&j);
    if (code == CLI_OK)
        code = integrate_all(&j);
    for (int i = 0; i < j.results.method_count; i++)
        att_ode_trajectory_free(&j.results.methods[i].trajectory);
    att_ode_close(&j.results.ode);
    return code;
}

const cli_command cli_command_ode = {
    .name = "ode",
    .summary = "shows how the step size of ODE methods follows the stiffness index",
    .operands = "SYSTEM",
    .least_operands = 1,
    .most_operands = 1,
    .about =
        "A residual network x + f(x) dt is forward Euler for du/dt = f(u), and an\n"
        "attention module is its step size (Huang et al., ICCV 2023). This command\n"
        "measures the classical side: it integrates a system with several methods and\n"
        "prints each step with the stiffness index SI of the system there. An explicit\n"
        "method must keep h SI below its stability limit, 2 for Euler, so its step falls\n"
        "where SI rises; an implicit method need not.\n"
        "\n"
        "SYSTEM is linear, heat, vanderpol, robertson, or a file with equations:\n"
        "  k = 0.04            # a constant\n"
        "  x' = -k * x + y     # an equation; t is the time\n"
        "  y' = sin(t) - y\n"
        "  x(0) = 1            # the initial values\n"
        "  y(0) = 0\n"
        "  t = 0 .. 40         # the interval; default: 0 .. 1\n"
        "The name of a file has a dot or a slash.\n"
        "\n"
        "Methods: euler and rk4 have a fixed step; rkf45 and bdf, from SUNDIALS, choose\n"
        "it by their tolerance.",
    .explain = ode_explain,
    .example =
        "  attscope ode vanderpol --mu 100 --page vanderpol.html\n"
        "  attscope ode heat --points 63 --method euler --step 1.3e-4    # unstable\n"
        "  attscope ode linear --eigenvalues -1 -1000 --json -\n"
        "  attscope ode brusselator.ode --method rkf45 --csv steps.csv",
    .uses = uses,
    .use_count = sizeof uses / sizeof *uses,
    .settings_size = sizeof(settings),
    .run = run,
};
