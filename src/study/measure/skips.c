#include "study/measure/skips.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/core/memory.h"
#include "networks/tasks/score.h"
#include "networks/tasks/task.h"
#include "study/measure/clone.h"

enum { MOST_SAMPLES = 64 }; /* of one run, so that logits of many variants stay small */

double att_skips_zeta(bool per_block, const float *norms)
{
    return att_nsi(norms, per_block ? ATT_READING_UNIT : ATT_READING_ATTENTION);
}

/* Adds the network's logits with the blocks of a set skipped. The stream x_t takes the place of the sum, so that a ReLU
 * after the addition stays. */
static att_value add_variant(att_graph *graph, const att_residual_step *blocks, int count, const bool *skipped,
                             att_value logits)
{
    att_clone clone;
    if (att_clone_begin(graph, NULL, NULL, &clone) != ATT_OK)
        return ATT_NONE;
    clone.inference = true;
    for (int i = 0; i < count; i++)
        if (skipped[i])
            att_clone_replace(&clone, graph->nodes.items[blocks[i].node].out[0],
                              att_clone_value(&clone, blocks[i].before));
    att_value copy = att_clone_value(&clone, logits);
    att_clone_end(&clone);
    return copy;
}

static void name_of(int set, char name[32])
{
    snprintf(name, 32, "logits.%d", set);
}

static att_status log_cost(const att_study_job *job, const att_graph *variants, int sets)
{
    att_cost network, all;
    ATT_TRY(att_graph_inference_cost(job->graph, &network));
    ATT_TRY(att_graph_inference_cost(variants, &all));
    att_log(job->context, ATT_LOG_INFO,
            "%s: %d variants of the network, which share what comes before their first skipped block, take %.3g GFLOP "
            "for each image, %.3g times as much as the network (%.3g GFLOP)",
            job->instrument->info.name, sets, all.flops / 1e9, all.flops / network.flops, network.flops / 1e9);
    return ATT_OK;
}

/* Compiles the graph. A variant that skips nothing has the network's own logits. */
static att_status compile(const att_study_job *job, att_graph *graph, const att_residual_step *blocks, int count,
                          const bool *skipped, att_skips *skips)
{
    att_value logits = att_graph_find_output(graph, att_task_class_output(graph));
    skips->classes = (int)att_shape_count(att_value_shape(graph, logits));
    graph->outputs.count = 0;
    for (int s = 0; s < skips->sets && graph->status == ATT_OK; s++) {
        char name[32];
        name_of(s, name);
        att_graph_output(graph, name, add_variant(graph, blocks, count, skipped + (int64_t)s * count, logits));
    }
    ATT_TRY(graph->status);
    ATT_TRY(log_cost(job, graph, skips->sets));
    att_plan_options options = att_study_plan_options(job);
    options.precision = job->session->plan->precision;
    return att_plan_compile(graph, &options, &skips->plan);
}

static att_status open_session(const att_study_job *job, att_skips *skips)
{
    size_t bytes = (size_t)skips->most * (size_t)skips->classes * sizeof(double);
    ATT_TRY(att_session_create(skips->plan, job->session->weights, skips->most, &skips->session));
    skips->logits = att_allocate(job->context, bytes);
    if (!skips->logits)
        return att_fail_memory(job->context, bytes, "the logits of a network with skipped blocks");
    return ATT_OK;
}

att_status att_skips_open(const att_study_job *job, const att_residual_step *blocks, int count, const bool *skipped,
                          int sets, att_skips *skips)
{
    const int most = job->session->max_batch;
    *skips = (att_skips){.context = job->context,
                         .sets = sets,
                         .most = most < MOST_SAMPLES ? most : MOST_SAMPLES,
                         .wide = job->graph->dtype == ATT_F64};
    att_graph *graph = att_graph_copy(job->graph);
    if (!graph)
        return att_fail_memory(job->context, sizeof *graph, "the graph of an instrument");
    att_status status = compile(job, graph, blocks, count, skipped, skips);
    att_graph_destroy(&graph);
    if (status == ATT_OK)
        status = open_session(job, skips);
    if (status != ATT_OK)
        att_skips_close(skips);
    return status;
}

void att_skips_close(att_skips *skips)
{
    if (!skips->context)
        return;
    att_session_destroy(&skips->session);
    att_plan_destroy(&skips->plan);
    att_free(skips->context, skips->logits);
    *skips = (att_skips){0};
}

/* Runs at most `most` samples. */
static att_status run_some(att_skips *skips, const att_study_job *job, int first, int count, float *hits,
                           int64_t stride)
{
    ATT_TRY(att_study_bind(job, skips->session, first));
    ATT_TRY(att_session_run(skips->session, count));
    for (int s = 0; s < skips->sets; s++) {
        char name[32];
        name_of(s, name);
        ATT_TRY(att_session_output(skips->session, name, 0, count, skips->logits));
        if (skips->wide)
            att_study_narrow(skips->logits, (int64_t)count * skips->classes);
        for (int i = 0; i < count; i++) {
            const int label = job->labels[first + i];
            const bool hit =
                label >= 0 && att_score_rank(skips->logits + (int64_t)i * skips->classes, skips->classes, label) == 0;
            hits[i * stride + s] = label < 0 ? NAN : (float)hit;
        }
    }
    return ATT_OK;
}

att_status att_skips_run(att_skips *skips, const att_study_job *job, int first, int count, float *hits, int64_t stride)
{
    for (int done = 0; done < count; done += skips->most) {
        int now = count - done < skips->most ? count - done : skips->most;
        ATT_TRY(run_some(skips, job, first + done, now, hits + done * stride, stride));
        ATT_TRY(att_study_tell(job, done + now, count));
    }
    return ATT_OK;
}
