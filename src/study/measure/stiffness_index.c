/* The stiffness index of branches and stages: the spectrum of their Jacobians at both ends of the real axis, for a few
 * samples. It takes many products with a Jacobian for each map, so it runs plans of its own (measure/study.h). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <attscope/ops.h>

#include "base/core/memory.h"
#include "base/spectrum/spectrum.h"
#include "study/measure/list.h"
#include "study/measure/moments.h"
#include "study/measure/vjp.h"

enum { COUNT, PRODUCTS, TOLERANCE, STAGES, DT }; /* options */
static const char *const yes_or_no[] = {"yes", "no", NULL};
static const att_detail options[] = {
    {.name = "count", .meaning = "how many images, from the first", .start = 2, .low = 1, .high = 4096, .whole = true},
    {.name = "products",
     .meaning = "the most products with a Jacobian, for one map and image",
     .start = 2000,
     .low = 200,
     .high = 1e6,
     .whole = true},
    {.name = "tolerance",
     .meaning = "the largest residual of an eigenvalue, as a share of |J|",
     .start = 1e-4,
     .low = 1e-12,
     .high = 0.1},
    {.name = "stages", .meaning = "whether stages are maps, too", .high = 1, .choices = yes_or_no},
    ATT_DT_OPTION};

/* A row: whether the sample was measured, then its numbers. */
enum { MEASURED, INDEX, LEFT, LEFT_IM, RIGHT, RIGHT_IM, NSI, RESIDUAL, USED, CONVERGED, NUMBERS };
static const char *const names[NUMBERS] = {NULL,       "index", "left",     "left_im",  "right",
                                           "right_im", "nsi",   "residual", "products", "converged"};

/* --- maps --------------------------------------------------------------------------------------------------------- */

/* A map whose spectrum is measured. */
typedef struct map {
    att_vjp_part part;
    int first, last; /* its first and last addition: nodes of the graph */
    bool begins;     /* the first addition of a stage, alone */
    char name[192];
} map;

typedef struct maps {
    map *items;
    int count;
} maps;

static void add_branches(att_graph *graph, att_dt dt, maps *all)
{
    for (att_residual_step step = {.node = -1}; att_residual_step_next(graph, step.node, &step);) {
        map m = {.part = {step.before, att_step_branch(graph, &step, dt), false},
                 .first = step.node,
                 .last = step.node,
                 .begins = step.begins};
        snprintf(m.name, sizeof m.name, "%s", step.scope);
        if (att_vjp_applies(graph, &m.part))
            all->items[all->count++] = m;
    }
}

/* Begins a stage with a step. If its shortcut changes the shape, x_first is the state after the step. */
static map begin_stage(const att_graph *graph, const att_residual_step *step, int *steps)
{
    const att_vjp_part branch = {step->before, graph->nodes.items[step->node].in[1], false};
    bool whole = att_vjp_applies(graph, &branch);
    *steps = whole;
    return (map){
        .part = {whole ? step->before : step->after, step->after, true}, .first = step->node, .last = step->node};
}

static void end_stage(const att_graph *graph, const map *stage, int steps, int number, maps *all)
{
    if (steps < 2 || !att_vjp_applies(graph, &stage->part))
        return;
    all->items[all->count] = *stage;
    snprintf(all->items[all->count].name, sizeof stage->name, "stage.%d", number);
    all->count++;
}

static void add_stages(const att_graph *graph, maps *all)
{
    map stage = {0};
    int steps = 0, number = 0;
    for (att_residual_step step = {.node = -1}; att_residual_step_next(graph, step.node, &step);) {
        if (step.begins) {
            end_stage(graph, &stage, steps, number, all);
            stage = begin_stage(graph, &step, &steps);
            number++;
            continue;
        }
        stage.part.to = step.after;
        stage.last = step.node;
        steps++;
    }
    end_stage(graph, &stage, steps, number, all);
}

/* Lists the branches, then the stages. The branches may be new nodes of the graph (att_step_branch()). The caller frees
 * all->items. */
static att_status find_maps(att_graph *graph, bool stages, att_dt dt, maps *all)
{
    size_t steps = 0;
    for (att_residual_step step = {.node = -1}; att_residual_step_next(graph, step.node, &step);)
        steps++;
    *all = (maps){.items = att_allocate_array(graph->context, 2 * steps + 1, sizeof(map))};
    if (!all->items)
        return att_fail_memory(graph->context, 2 * steps * sizeof(map), "an instrument");
    add_branches(graph, dt, all);
    if (stages)
        add_stages(graph, all);
    return ATT_OK;
}

static void keep_selected(maps *all, bool (*selects)(const void *user, int node), const void *user)
{
    int kept = 0;
    for (int i = 0; i < all->count; i++)
        if (selects(user, all->items[i].first) && selects(user, all->items[i].last))
            all->items[kept++] = all->items[i];
    all->count = kept;
}

/* --- requests ----------------------------------------------------------------------------------------------------- */

static bool is_requested(const void *requests, int node)
{
    return att_requests_node(requests, "add", node - 1) == node;
}

static att_status request(att_requests *requests)
{
    att_graph *graph = att_requests_graph(requests);
    maps all;
    ATT_TRY(
        find_maps(graph, att_requests_option(requests, STAGES) == 0, (att_dt)att_requests_option(requests, DT), &all));
    keep_selected(&all, is_requested, requests);
    for (int i = 0; i < all.count; i++)
        att_requests_study_row(requests, NUMBERS, 1);
    for (int n = INDEX; n < NUMBERS; n++)
        for (int i = 0; i < all.count; i++) {
            att_requests_series(requests, all.items[i].name, -1, names[n]);
            if (all.items[i].begins)
                att_requests_exclude(requests);
        }
    att_free(graph->context, all.items);
    return all.count > 0 ? ATT_OK
                         : att_requests_found_nothing(requests, "residual addition whose branch is a map of x_t alone");
}

/* --- the study ---------------------------------------------------------------------------------------------------- */

/* Kept between runs. */
typedef struct study {
    att_graph *graph; /* the measured network with the branches */
    maps maps;
    att_plan **plans;  /* by map */
    att_plan *capture; /* computes the values at which the Jacobians are taken */
} study;

static void close_study(att_context *context, void *own)
{
    study *s = own;
    for (int i = 0; s->plans && i < s->maps.count; i++)
        att_plan_destroy(&s->plans[i]);
    att_plan_destroy(&s->capture);
    att_free(context, s->plans);
    att_free(context, s->maps.items);
    att_graph_destroy(&s->graph);
    att_free(context, s);
}

static bool is_selected(const void *job, int node)
{
    const att_residual_step step = {.node = node};
    return att_study_selects(job, &step);
}

/* The outputs "from.I" and "to.I" of the plan are those of map I. */
static att_status compile_capture(const att_study_job *job, study *s)
{
    att_graph *graph = s->graph;
    graph->outputs.count = 0;
    for (int i = 0; i < s->maps.count; i++) {
        char name[32];
        snprintf(name, sizeof name, "from.%d", i);
        att_graph_output(graph, name, s->maps.items[i].part.from);
        snprintf(name, sizeof name, "to.%d", i);
        att_graph_output(graph, name, s->maps.items[i].part.to);
    }
    att_plan_options plan = att_study_plan_options(job);
    return att_plan_compile(graph, &plan, &s->capture);
}

/* Bytes that the search of one map needs beside the captured values. */
static size_t bytes_of(const att_study_job *job, const study *s, int index)
{
    enum { VECTORS = 6 }; /* of Arnoldi iteration beside the basis, and two captured values */
    size_t size = (size_t)att_shape_count(att_value_shape(job->graph, s->maps.items[index].part.from));
    size_t vectors = (size_t)att_spectrum_options_defaults().basis + VECTORS;
    return att_size_sum(att_session_bytes(s->plans[index], 1), att_size_product(size, vectors * sizeof(double)));
}

/* Says what the study costs, and refuses what does not fit into memory. */
static att_status check_cost(const att_study_job *job, const study *s)
{
    size_t most = 0, captured = att_session_bytes(s->capture, 1);
    double flops = 0;
    for (int i = 0; i < s->maps.count; i++) {
        size_t bytes = bytes_of(job, s, i);
        most = bytes > most ? bytes : most;
        flops += att_plan_cost(s->plans[i]).flops;
    }
    if (captured > att_memory_left(job->context) || most > att_memory_left(job->context) - captured)
        return att_fail_memory(job->context, captured + most, "the spectrum of a branch");
    att_log(job->context, ATT_LOG_INFO,
            "stiffness_index: up to %.0f images, %d maps; one product with the Jacobian of each map takes %.3g GFLOP, "
            "and a map at most %.0f products, so the search takes at most %.3g TFLOP and %.3g MB",
            job->options[COUNT], s->maps.count, flops / 1e9, job->options[PRODUCTS],
            flops * job->options[PRODUCTS] * job->options[COUNT] / 1e12, (double)(captured + most) / 1e6);
    return ATT_OK;
}

static att_status prepare(const att_study_job *job, study *s)
{
    s->graph = att_graph_copy(job->graph);
    if (!s->graph)
        return att_fail_memory(job->context, sizeof *s->graph, "the graph of an instrument");
    ATT_TRY(find_maps(s->graph, job->options[STAGES] == 0, (att_dt)job->options[DT], &s->maps));
    keep_selected(&s->maps, is_selected, job);
    ATT_TRY(att_new(job->context, &s->plans, (size_t)s->maps.count, "an instrument"));
    ATT_TRY(compile_capture(job, s));
    for (int i = 0; i < s->maps.count; i++)
        ATT_TRY(att_vjp_compile(job, s->graph, &s->maps.items[i].part, &s->plans[i]));
    return check_cost(job, s);
}

/* Computes the values of the sample at which Jacobians are taken. */
static att_status capture(const att_study_job *job, att_session *session, int sample)
{
    ATT_TRY(att_study_bind(job, session, sample));
    return att_session_run(session, 1);
}

static double at(const void *values, bool wide, int64_t i)
{
    return wide ? ((const double *)values)[i] : ((const float *)values)[i];
}

/* |f(x)| / |x| */
static double nsi_of(const att_vjp_part *part, const void *from, const void *to, int64_t size, bool wide)
{
    double xx = 0, ff = 0;
    for (int64_t i = 0; i < size; i++) {
        double x = at(from, wide, i), f = at(to, wide, i) - (part->difference ? x : 0);
        xx += x * x;
        ff += f * f;
    }
    return sqrt(ff / xx);
}

/* Finds both ends of the spectrum at x. */
static att_status find_ends(const att_study_job *job, att_vjp *vjp, const void *x, att_spectrum_ends *ends)
{
    att_spectrum_options search = att_spectrum_options_defaults();
    const att_operator transposed = {(int)vjp->size, att_vjp_apply, vjp};
    search.tolerance = job->options[TOLERANCE];
    search.most_products = (int)job->options[PRODUCTS];
    ATT_TRY(att_vjp_set(vjp, x));
    return att_spectrum_ends_find(job->context, &transposed, &search, ends);
}

static void write_row(const att_spectrum_ends *ends, double nsi, float *row)
{
    const double unknown = ends->converged ? 1 : NAN;
    row[MEASURED] = 1;
    row[INDEX] = (float)(ends->stiffness_index * unknown);
    row[LEFT] = (float)(ends->left.re * unknown);
    row[LEFT_IM] = (float)(ends->left.im * unknown);
    row[RIGHT] = (float)(ends->right.re * unknown);
    row[RIGHT_IM] = (float)(ends->right.im * unknown);
    row[NSI] = (float)nsi;
    row[RESIDUAL] = (float)ends->residual;
    row[USED] = (float)ends->products;
    row[CONVERGED] = ends->converged;
}

/* x, f: room for the values at which the map is taken, and that it gives */
static att_status search_at(const att_study_job *job, const study *s, int index, att_session *captured, att_vjp *vjp,
                            void *x, void *f, float *row)
{
    char name[32];
    att_spectrum_ends ends;
    snprintf(name, sizeof name, "from.%d", index);
    ATT_TRY(att_session_output(captured, name, 0, 1, x));
    snprintf(name, sizeof name, "to.%d", index);
    ATT_TRY(att_session_output(captured, name, 0, 1, f));
    ATT_TRY(find_ends(job, vjp, x, &ends));
    write_row(&ends, nsi_of(&s->maps.items[index].part, x, f, vjp->size, vjp->wide), row);
    return ATT_OK;
}

static att_status search_map(const att_study_job *job, const study *s, int index, att_session *captured, int sample,
                             int samples)
{
    att_vjp vjp;
    ATT_TRY(att_vjp_open(job, &s->maps.items[index].part, s->plans[index], &vjp));
    vjp.done = (int64_t)sample * s->maps.count + index;
    vjp.all = (int64_t)samples * s->maps.count;
    size_t bytes = 2 * (size_t)vjp.size * sizeof(double);
    char *values = att_allocate(job->context, bytes);
    float *row = job->rows[index] + (int64_t)sample * NUMBERS;
    att_status status = values ? search_at(job, s, index, captured, &vjp, values, values + bytes / 2, row)
                               : att_fail_memory(job->context, bytes, "the stream of a network");
    att_free(job->context, values);
    att_vjp_close(&vjp);
    return status;
}

/* samples: those of this run that are measured */
static att_status search_sample(const att_study_job *job, const study *s, att_session *captured, int sample,
                                int samples)
{
    ATT_TRY(capture(job, captured, sample));
    for (int i = 0; i < s->maps.count; i++)
        ATT_TRY(search_map(job, s, i, captured, sample, samples));
    return att_study_tell(job, (int64_t)(sample + 1) * s->maps.count, (int64_t)samples * s->maps.count);
}

static att_status run(att_study_job *job)
{
    const int64_t left = (int64_t)job->options[COUNT] - job->seen;
    att_session *captured = NULL;
    if (left <= 0)
        return ATT_OK;
    if (!*job->own) {
        *job->own = att_allocate(job->context, sizeof(study));
        if (!*job->own)
            return att_fail_memory(job->context, sizeof(study), "an instrument");
        ATT_TRY(prepare(job, *job->own));
    }
    const study *s = *job->own;
    ATT_TRY(att_session_create(s->capture, job->session->weights, 1, &captured));
    att_status status = ATT_OK;
    const int samples = left < job->count ? (int)left : job->count;
    for (int i = 0; i < samples && status == ATT_OK; i++)
        status = search_sample(job, s, captured, i, samples);
    att_session_destroy(&captured);
    return status;
}

static const att_study stiffness_study = {.run = run, .close = close_study};

/* --- figures ------------------------------------------------------------------------------------------------------ */

/* The state: the numbers of each map. */

static int64_t tallies_of(const att_observed *shape)
{
    return (int64_t)shape->count * NUMBERS;
}

static size_t size(const att_observed *shape)
{
    return (size_t)tallies_of(shape) * sizeof(att_tally);
}

static void observe(void *state, const att_observed *observed)
{
    att_tally *of = state;
    for (int i = 0; i < observed->count; i++, of += NUMBERS)
        for (int n = INDEX; n < NUMBERS && observed->rows[i][MEASURED] != 0; n++)
            att_tally_add(&of[n], observed->rows[i][n]);
}

static void merge(void *state, const void *later, const att_observed *shape)
{
    att_tallies_merge(state, later, tallies_of(shape));
}

static void report(const void *state, const att_observed *shape, att_figure *figures)
{
    for (int n = INDEX; n < NUMBERS; n++)
        for (int i = 0; i < shape->count; i++)
            *figures++ = att_tally_figure((const att_tally *)state + i * NUMBERS + n);
}

static const att_statistic_info statistics[] = {{"index", "SI", NULL},
                                                {"left", "left end, real part", NULL},
                                                {"left_im", "left end, imaginary part", NULL},
                                                {"right", "right end, real part", NULL},
                                                {"right_im", "right end, imaginary part", NULL},
                                                {"nsi", "ζ of the same images", NULL},
                                                {"residual", "residual", "of |J|"},
                                                {"products", "products", "products"},
                                                {"converged", "converged", "share of images"},
                                                {NULL, NULL, NULL}};

static const att_statistic_scale scales[] = {
    {NULL, "0 for a branch that is constant; Euler with step 1 is unstable where an eigenvalue is below -2",
     "the formula; Hairer, Wanner, 1996"},
    {NULL, NULL, NULL}};

const att_instrument att_instrument_stiffness_index = {
    .info =
        {.name = "stiffness_index",
         .view = "step size",
         .title = "Stiffness index",
         .summary = "stiffness index of branches and stages: the largest |Re| of a Jacobian's eigenvalues",
         .unit = "1",
         .formula = "SI = max_i |Re lambda_i(J)|, J = df/dx at x_t, f the branch of a residual addition (not x + f); "
                    "of a stage: f(x_first) = x_last - x_first",
         .source = "Huang et al., ICCV 2023",
         .scales = scales,
         .reading =
             "f is the branch before its gate, as in the reading attention of nsi with the same dt: LayerScale belongs "
             "to f, and to dt with stiffness_index:dt=all. f is a map of the whole stream x_t of one image, all tokens "
             "and channels; batch norm uses its running statistics. The ends of the spectrum are the eigenvalues with "
             "the smallest (left) and the largest (right) real part, which Arnoldi iteration finds from products J'v, "
             "the gradient of <v, f(x)>: J' has the eigenvalues of J. An end counts if its residual |J'v - lambda v| / "
             "|v|, measured with a further product, is at most tolerance |J|. The search of an end stops at products / "
             "2; if an end does not count then, the index and both ends are undefined, residual and products say how "
             "far it came, and more products may help. The residual bounds the error of lambda for a normal J; for "
             "others the error may be larger. In single precision, residuals below about 1e-6 |J| are rounding. Only "
             "the first `count` images are measured. A branch is left out if its output has another shape than x_t, or "
             "depends on more than x_t (a shortcut with a convolution); a stage holds the additions of one shape, and "
             "of such a block only what follows it. Left out of a comparison with TNS: the first step of a stage",
         .options = options,
         .option_count = sizeof options / sizeof *options,
         .costly = true,
         .statistics = statistics,
         .excluded = "the first step of its stage, which TNS leaves out"},
    .request = request,
    .state = {size, observe, merge, report},
    .study = &stiffness_study,
};
