#include <attscope/ops.h>

#include "engine/ops/attention.h"
#include "engine/ops/attention_summary.h"
#include "engine/ops/cases.h"
#include "engine/ops/list.h"
#include "engine/ops/rule.h"

_Static_assert((int)ATT_ATTENTION_SUMMARY == (int)ATT_SUMMARY_COUNT, "the public count is that of the columns");

att_value att_attention_summary(att_graph *graph, att_value stats, int prefix)
{
    att_attention_summary_attrs attrs = {.prefix = prefix};
    return att_emit(graph, "attention_summary", &attrs, &stats, 1, NULL);
}

static att_status summary_infer(att_infer *infer)
{
    ATT_TRY(att_rule_count(infer, 1));
    ATT_TRY(att_rule_require_rank(infer, 0, "stats", ATT_SAMPLE, 3));
    att_shape stats = infer->in[0].shape;
    int32_t prefix = ((const att_attention_summary_attrs *)infer->attrs)->prefix;
    if (stats.dims[2] != ATT_STAT_COUNT)
        return att_rule_fail(infer, ATT_ERR_MISMATCH, "stats %s must have rows of %d", ATT_SHOWN(&infer->in[0]),
                             ATT_STAT_COUNT);
    if (prefix < 0 || prefix > stats.dims[1])
        return att_rule_fail(infer, ATT_ERR_ARGUMENT, "%d prefix tokens, but only %lld tokens", prefix,
                             (long long)stats.dims[1]);
    return att_rule_out(infer, infer->in[0].dtype, ATT_SAMPLE, att_shape_of(stats.dims[0], ATT_SUMMARY_COUNT));
}

/* Statistics near 0.48: masses that leave some mass for the other tokens, and sums over weights from which a norm can
 * be computed. */
#define SUMMARY(p) ATTRS(attention_summary, .prefix = (p))
#define STATS(h, n) IN(DRAWN(ATT_SAMPLE, 0.001, 0.48, h, n, ATT_STAT_COUNT))
static const att_op_case summary_cases[] = {
    {.name = "odd", SUMMARY(1), STATS(2, 5)},
    {.name = "no_prefix", SUMMARY(0), STATS(3, 33)},
    {.name = "prefix_only", SUMMARY(2), STATS(1, 2)},
    {.name = "two_prefixes", SUMMARY(2), STATS(3, 51)},
    {.name = "tiny", SUMMARY(1), STATS(3, 197), .bench = true},
    {.name = "small", SUMMARY(1), STATS(6, 197), .bench = true},
};

const att_op att_op_attention_summary = {
    .name = "attention_summary",
    .attrs_size = sizeof(att_attention_summary_attrs),
    .help = "means over queries of attention statistics, one row per head",
    .autocast_in = 0,
    .infer = summary_infer,
    .flops_per_in = 2,
    ATT_CASES(summary_cases),
};
