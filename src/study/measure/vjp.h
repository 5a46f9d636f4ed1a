/* measure/vjp.h - products of vectors with the Jacobian of a part of a network.
 *
 * The graph has reverse-mode gradients only, which give J'v: the gradient of <v, f(x)> with respect to x. J' has the
 * eigenvalues of J, so these products suffice for a spectrum. The part is compiled as the network of inference: batch
 * norm uses its running statistics; dropout and drop path do nothing. */
#ifndef ATT_MEASURE_VJP_H
#define ATT_MEASURE_VJP_H

#include "study/measure/study.h"

/* The map f from the value `from` to the value `to`, or to - from. */
typedef struct att_vjp_part {
    att_value from, to;
    bool difference;
} att_vjp_part;

/* Whether `to` has the shape of `from` and depends on the network's inputs through `from` alone, so that f is a map of
 * a space into itself. */
bool att_vjp_applies(const att_graph *graph, const att_vjp_part *part);

/* Compiles the part of the graph, for one sample at a time. On success the caller owns *plan. Errors: those of
 * compiling. */
att_status att_vjp_compile(const att_study_job *job, const att_graph *graph, const att_vjp_part *part, att_plan **plan);

typedef struct att_vjp {
    att_context *context;
    const att_study_job *job;
    int64_t done, all; /* progress that each product reports, so that a search can be stopped; the caller sets them */
    att_session *session;
    int64_t size; /* elements of x, and of f(x) */
    bool wide;    /* vectors are in F64 */
    void *seed, *product;
} att_vjp;

/* Creates a session of a plan that att_vjp_compile() made for the part. On failure *vjp is zero. Errors: ERR_MEMORY. */
att_status att_vjp_open(const att_study_job *job, const att_vjp_part *part, const att_plan *plan, att_vjp *vjp);
void att_vjp_close(att_vjp *vjp);
/* Sets x, in the type of the graph. It must live until the last product. */
att_status att_vjp_set(att_vjp *vjp, const void *x);
/* y = J'v; for att_operator. ERR_STOPPED if a stop is requested. */
att_status att_vjp_apply(void *vjp, const double *v, double *y);

#endif
