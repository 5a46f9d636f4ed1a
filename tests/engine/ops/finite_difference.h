/* ops/finite_difference.h - compares gradients of a compiled graph with central differences, in f64 on the reference
 * kernels. */
#ifndef ATT_TESTS_OPS_FINITE_DIFFERENCE_H
#define ATT_TESTS_OPS_FINITE_DIFFERENCE_H

#include <attscope/ops.h>
#include <attscope/plan.h>

#include "base/core/context.h"
#include "context.h"
#include "engine/backend/backend.h"
#include "engine/graph/registry.h"
#include "engine/kernels/case.h"
#include "engine/kernels/ref/list.h"
#include "engine/ops/list.h"

/* Five samples: with two lanes and groups of two, there are lanes of two and of three samples, and a group of one. */
enum { FD_BATCH = 5, FD_GROUP = 2, FD_LANES = 2, FD_MAX_INPUTS = 8 };

/* --- a scalar loss from any value: loss = sum_e c_e y_e, where c is an input of the same shape -------------------- */

static inline att_status fd_infer_dot(att_infer *infer)
{
    infer->out[0] = (att_desc){infer->in[0].dtype, ATT_SAMPLE, {.rank = 0}};
    infer->out_count = 1;
    return ATT_OK;
}

static inline att_status fd_infer_dot_grad(att_infer *infer)
{
    infer->out[0] = infer->in[1];
    infer->out_count = 1;
    return ATT_OK;
}

static inline void fd_backward_dot(att_backward *backward)
{
    att_value in[] = {att_backward_gradient(backward, 0), att_backward_in(backward, 1)};
    att_backward_add_gradient(backward, 0, att_emit(att_backward_graph(backward), "dot_grad", NULL, in, 2, NULL));
}

static inline att_status fd_run_dot(const att_call *call)
{
    int64_t count = att_shape_count(call->problem->in[0].shape);
    const double *y = call->in[0], *c = call->in[1];
    double *loss = call->out[0];
    for (int64_t sample = 0; call->part == 0 && sample < call->problem->group; sample++) {
        loss[sample] = 0;
        for (int64_t e = sample * count; e < (sample + 1) * count; e++)
            loss[sample] += c[e] * y[e];
    }
    return ATT_OK;
}

static inline att_status fd_run_dot_grad(const att_call *call)
{
    int64_t count = att_shape_count(call->problem->in[1].shape);
    const double *dloss = call->in[0], *c = call->in[1];
    for (int64_t e = 0; call->part == 0 && e < count * call->problem->group; e++)
        ((double *)call->out[0])[e] = dloss[e / count] * c[e];
    return ATT_OK;
}

static const att_op fd_dot = {.name = "dot", .infer = fd_infer_dot, .backward = fd_backward_dot};
static const att_op fd_dot_grad = {.name = "dot_grad", .infer = fd_infer_dot_grad};
static const att_kernel fd_ref_dot = {.op = "dot", .name = "ref", .run = fd_run_dot};
static const att_kernel fd_ref_dot_grad = {.op = "dot_grad", .name = "ref", .run = fd_run_dot_grad};

#define FD_OP_ADDRESS(name) &att_op_##name,
static const att_op *const fd_ops[] = {ATT_OP_LIST(FD_OP_ADDRESS) & fd_dot, &fd_dot_grad, NULL};
#define FD_KERNEL_ADDRESS(name) &att_ref_##name,
static const att_kernel *const fd_kernels[] = {ATT_OP_LIST(FD_KERNEL_ADDRESS) & fd_ref_dot, &fd_ref_dot_grad, NULL};

static const att_backend fd_ref = {
    .name = "ref", .memory = &att_host_memory, .kernels = fd_kernels, .grouping = &att_host_grouping};
static const att_backend *const fd_backends[] = {&fd_ref, NULL};
static const att_registry fd_registry = {fd_ops, fd_backends};

static inline int fd_setup(void **state)
{
    (void)state;
    att_settings settings = att_settings_defaults();
    settings.threads = 2;
    return att_context_create_with(&settings, &fd_registry, &context) != ATT_OK;
}

/* --- building ----------------------------------------------------------------------------------------------------- */

/* A graph, and the rows bound to its inputs. */
typedef struct fd_model {
    att_graph *graph;
    struct {
        char name[32];
        void *rows;
    } input[FD_MAX_INPUTS];
    int input_count;
} fd_model;

static inline fd_model fd_create(void)
{
    fd_model model = {0};
    must(att_graph_create(context, ATT_F64, &model.graph));
    return model;
}

static inline void fd_destroy(fd_model *model)
{
    for (int i = 0; i < model->input_count; i++)
        free(model->input[i].rows);
    att_graph_destroy(&model->graph);
}

/* Adds an input of rows drawn from N(shift, scale^2); for I32, whole numbers below `limit`. */
static inline att_value fd_input(fd_model *model, att_dtype dtype, att_shape shape, double scale, double shift,
                                 int32_t limit)
{
    assert_true(model->input_count < FD_MAX_INPUTS);
    int number = model->input_count++;
    char *name = model->input[number].name;
    snprintf(name, sizeof model->input[number].name, "input%d", number);
    int64_t count = FD_BATCH * att_shape_count(shape);
    void *rows = calloc((size_t)count, att_dtype_size(dtype));
    assert_non_null(rows);
    att_random random = att_random_from(att_random_hash(name));
    for (int64_t i = 0; i < count; i++)
        att_element_store(dtype, rows, i,
                          dtype == ATT_I32 ? (double)att_random_below(&random, limit)
                                           : att_random_normal(&random) * scale + shift);
    model->input[number].rows = rows;
    return att_graph_input(model->graph, name, dtype, shape);
}

/* Sets sum c y as the loss, with random c. */
static inline void fd_loss_of(fd_model *model, att_value y)
{
    att_value in[] = {y, fd_input(model, ATT_F64, att_value_shape(model->graph, y), 1, 0, 0)};
    att_graph_output(model->graph, "loss", att_emit(model->graph, "dot", NULL, in, 2, NULL));
}

/* --- checking ----------------------------------------------------------------------------------------------------- */

typedef struct fd_run {
    att_plan *plan;
    att_weights *weights;
    att_session *session;
    att_gradient *gradient;
} fd_run;

static inline fd_run fd_open(const fd_model *model, uint64_t seed)
{
    fd_run run = {0};
    att_plan_options options = att_plan_options_defaults();
    options.purpose = ATT_TRAIN;
    options.backend = "ref";
    options.group = FD_GROUP;
    options.lanes = FD_LANES;
    must(att_plan_compile(model->graph, &options, &run.plan));
    must(att_weights_create(model->graph, "ref", &run.weights));
    must(att_weights_initialise(run.weights, seed));
    must(att_session_create(run.plan, run.weights, FD_BATCH, &run.session));
    must(att_gradient_create(run.weights, &run.gradient));
    for (int i = 0; i < model->input_count; i++)
        must(att_session_bind(run.session, model->input[i].name, model->input[i].rows));
    return run;
}

static inline void fd_close(fd_run *run)
{
    att_gradient_destroy(&run->gradient);
    att_session_destroy(&run->session);
    att_weights_destroy(&run->weights);
    att_plan_destroy(&run->plan);
}

/* Returns the Euclidean norm of the whole gradient. */
static inline double fd_norm(const fd_run *run)
{
    double squares = 0;
    for (int i = 0; i < att_weights_count(run->weights); i++) {
        att_parameter_info parameter = att_weights_at(run->weights, i);
        int64_t count = att_shape_count(parameter.shape);
        double *gradient = calloc((size_t)count, sizeof *gradient);
        assert_non_null(gradient);
        if (!parameter.buffer)
            must(att_gradient_get(run->gradient, i, gradient, count));
        for (int64_t e = 0; e < count; e++)
            squares += gradient[e] * gradient[e];
        free(gradient);
    }
    return sqrt(squares);
}

static const double fd_scale = 0.3;

static inline double fd_evaluate(fd_run *run)
{
    double loss[FD_BATCH], sum = 0;
    att_gradient_begin(run->gradient);
    must(att_session_accumulate(run->session, run->gradient, FD_BATCH, fd_scale, 9, 4, 0));
    must(att_session_output(run->session, "loss", 0, FD_BATCH, loss));
    for (int i = 0; i < FD_BATCH; i++)
        sum += fd_scale * loss[i];
    return sum;
}

/* Returns the central difference of element e of a parameter; `host` has its values. */
static inline double fd_difference(fd_run *run, int parameter, double *host, int64_t count, int64_t e)
{
    const double h = 1e-5;
    double kept = host[e], side[2];
    for (int s = 0; s < 2; s++) {
        host[e] = kept + (s ? h : -h);
        must(att_weights_set(run->weights, -1, parameter, host, count));
        side[s] = fd_evaluate(run);
    }
    host[e] = kept;
    must(att_weights_set(run->weights, -1, parameter, host, count));
    return (side[1] - side[0]) / (2 * h);
}

/* Returns the largest error of a parameter's gradient, relative to its largest element; checks every `stride`-th
 * element. */
static inline double fd_parameter_error(fd_run *run, int parameter, int64_t stride)
{
    int64_t count = att_shape_count(att_weights_at(run->weights, parameter).shape);
    double *host = calloc((size_t)count, sizeof *host), *gradient = calloc((size_t)count, sizeof *gradient);
    assert_true(host && gradient);
    must(att_weights_get(run->weights, -1, parameter, host, count));
    fd_evaluate(run);
    must(att_gradient_get(run->gradient, parameter, gradient, count));
    double error = 0, largest = 0;
    for (int64_t e = 0; e < count; e += stride) {
        double expected = fd_difference(run, parameter, host, count, e);
        double difference = fabs(gradient[e] - expected);
        error = isnan(difference) ? INFINITY : fmax(error, difference);
        largest = fmax(largest, fabs(expected));
    }
    free(host);
    free(gradient);
    return error / fmax(largest, 1e-3);
}

/* Fails and names the parameter if the error of a gradient is larger than `tolerance`. Returns the largest error. */
static inline double fd_check(const fd_model *model, const char *what, int64_t stride, double tolerance)
{
    must(att_graph_status(model->graph));
    fd_run run = fd_open(model, 1);
    double largest = 0;
    for (int i = 0; i < att_weights_count(run.weights); i++) {
        if (att_weights_at(run.weights, i).buffer)
            continue;
        double error = fd_parameter_error(&run, i, stride);
        if (!(error <= tolerance))
            fail_msg("%s: the gradient of %s is off by %.3g", what, att_weights_at(run.weights, i).name, error);
        largest = fmax(largest, error);
    }
    fd_close(&run);
    return largest;
}

/* Runs two samples of an inference graph. */
static inline fd_run fd_run_inference(const fd_model *model)
{
    fd_run run = {0};
    att_plan_options options = att_plan_options_defaults();
    options.backend = "ref";
    must(att_graph_status(model->graph));
    must(att_plan_compile(model->graph, &options, &run.plan));
    must(att_weights_create(model->graph, "ref", &run.weights));
    must(att_weights_initialise(run.weights, 5));
    must(att_session_create(run.plan, run.weights, 2, &run.session));
    for (int i = 0; i < model->input_count; i++)
        must(att_session_bind(run.session, model->input[i].name, model->input[i].rows));
    must(att_session_run(run.session, 2));
    return run;
}

#endif
