#include "engine/passes/seconds.h"

/* Rounded rates of one thread while two threads run, on a Xeon (Sapphire Rapids) with AVX-512. These commands measure
 * them:
 *
 *   products     attscope bench --filter 'resnet50*train', column GEMM (both threads); with --amp for bf16
 *   other ops    attscope bench kernels --filter 'normalize*', column GB/s: these ops are bound by memory traffic
 *   memory       the column "memory" of the first command (both threads)
 *
 *  Only the ratios of the rates affect a plan.
 */
static const double PRODUCT_F32 = 100e9, PRODUCT_BF16 = 200e9; /* operations per second; a multiply-add is two */
static const double CACHE = 40e9, MEMORY = 10e9;               /* bytes per second */

double att_node_seconds(const att_graph *graph, const att_node *node)
{
    att_cost cost = att_node_cost(graph, node);
    bool is_bf16 = node->in[0] != ATT_NONE && graph->values.items[node->in[0]].desc.dtype == ATT_BF16;
    double computing = 2 * cost.macs / (is_bf16 ? PRODUCT_BF16 : PRODUCT_F32), moving = cost.bytes / CACHE;
    return computing > moving ? computing : moving;
}

double att_memory_seconds(double bytes)
{
    return bytes / MEMORY;
}
