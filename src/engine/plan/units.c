#include <string.h>

#include "base/core/error.h"
#include "engine/plan/units.h"

static bool same_descs(const att_desc *a, const att_desc *b, int count)
{
    for (int i = 0; i < count; i++)
        if (a[i].dtype != b[i].dtype || a[i].kind != b[i].kind || !att_shape_equal(a[i].shape, b[i].shape))
            return false;
    return true;
}

/* Compares bytes. If only padding differs, the result is an additional unit, which is harmless. */
static bool same_attrs(const void *a, const void *b, size_t size)
{
    return size == 0 || memcmp(a, b, size) == 0;
}

static att_unit *find_equal(const att_units *units, const att_op *op, const att_problem *a)
{
    for (att_unit *unit = units->first; unit; unit = unit->next) {
        const att_problem *b = &unit->problem;
        if (a->op == b->op && a->group == b->group && a->parts == b->parts && a->in_count == b->in_count &&
            a->out_count == b->out_count && same_attrs(a->attrs, b->attrs, op->attrs_size) &&
            same_descs(a->in, b->in, a->in_count) && same_descs(a->out, b->out, a->out_count))
            return unit;
    }
    return NULL;
}

static att_status fail_no_kernel(const att_units *units, const att_problem *problem)
{
    char shape[96] = "nothing";
    att_dtype dtype = ATT_F32;
    if (problem->in_count > 0 && att_desc_present(&problem->in[0])) {
        att_shape_format(problem->in[0].shape, shape, sizeof shape);
        dtype = problem->in[0].dtype;
    }
    return att_fail(units->context, ATT_ERR_UNSUPPORTED, "backend \"%s\" has no kernel for op \"%s\" on %s %s",
                    units->backend->name, problem->op, att_dtype_name(dtype), shape);
}

static int profile_row(att_units *units, const att_kernel *kernel)
{
    for (int i = 0; i < units->profile_count; i++)
        if (units->profile_kernels[i] == kernel)
            return i;
    units->profile_kernels[units->profile_count] = kernel;
    return units->profile_count++;
}

static double unit_flops(const att_op *op, const att_unit *unit)
{
    att_cost cost = {0};
    att_op_cost(op, unit->problem.in, unit->problem.out, unit->problem.attrs, &cost);
    return cost.flops * (double)unit->problem.group;
}

static double desc_bytes(const att_problem *problem, const att_desc *desc)
{
    return att_desc_present(desc) ? (double)att_problem_count(problem, desc) * (double)att_dtype_size(desc->dtype) : 0;
}

static double problem_bytes(const att_problem *problem)
{
    double bytes = 0;
    for (int i = 0; i < problem->in_count; i++)
        bytes += desc_bytes(problem, &problem->in[i]);
    for (int i = 0; i < problem->out_count; i++)
        bytes += desc_bytes(problem, &problem->out[i]);
    return bytes;
}

/* Copies the problem's descriptions and attributes into the units' arena. */
static att_status copy_problem(att_units *units, const att_op *op, att_problem *problem)
{
    size_t ins = (size_t)problem->in_count * sizeof(att_desc), outs = (size_t)problem->out_count * sizeof(att_desc);
    att_desc *descs = att_arena_allocate(units->arena, ins + outs);
    void *attrs = op->attrs_size > 0 ? att_arena_allocate(units->arena, op->attrs_size) : NULL;
    if (!descs || (op->attrs_size > 0 && !attrs))
        return att_fail_memory(units->context, ins + outs, "a plan");
    memcpy(descs, problem->in, ins);
    memcpy(descs + problem->in_count, problem->out, outs);
    problem->in = descs;
    problem->out = descs + problem->in_count;
    if (attrs)
        problem->attrs = memcpy(attrs, problem->attrs, op->attrs_size);
    return ATT_OK;
}

/* Finds or creates the unit of a problem. The problem's pointers are copied. */
static att_status find_or_create_unit(att_units *units, const att_op *op, const att_problem *problem, att_unit **out)
{
    att_unit *unit = find_equal(units, op, problem);
    if (unit) {
        *out = unit;
        return ATT_OK;
    }
    unit = att_arena_allocate(units->arena, sizeof *unit);
    if (!unit)
        return att_fail_memory(units->context, sizeof *unit, "a plan");
    unit->problem = *problem;
    ATT_TRY(copy_problem(units, op, &unit->problem));
    unit->kernel = att_kernel_for(units->backend->kernels, &unit->problem);
    if (!unit->kernel)
        return fail_no_kernel(units, &unit->problem);
    if (unit->kernel->prepare)
        ATT_TRY(unit->kernel->prepare(&unit->problem, &unit->prepared));
    unit->profile_row = profile_row(units, unit->kernel);
    unit->flops = unit_flops(op, unit);
    unit->bytes = problem_bytes(&unit->problem);
    unit->next = units->first;
    units->first = unit;
    int operands = problem->in_count + problem->out_count;
    units->most_operands = operands > units->most_operands ? operands : units->most_operands;
    *out = unit;
    return ATT_OK;
}

/* Descriptions of a node's inputs and outputs. Outputs that nobody reads are absent. */
static void describe_operands(const att_graph *graph, const att_node *node, const int *readers, att_desc *in,
                              att_desc *out)
{
    for (int i = 0; i < node->in_count; i++)
        in[i] = node->in[i] == ATT_NONE ? (att_desc){.shape.rank = -1} : graph->values.items[node->in[i]].desc;
    for (int i = 0; i < node->out_count; i++) {
        out[i] = graph->values.items[node->out[i]].desc;
        if (readers[node->out[i]] == 0)
            out[i].shape.rank = -1;
    }
}

att_status att_prepare_unit(att_units *units, const att_graph *graph, const att_node *node, const int *readers,
                            int group, int parts, att_unit **unit)
{
    size_t operands = (size_t)node->in_count + (size_t)node->out_count;
    att_desc *in = att_allocate_array(units->context, operands, sizeof *in), *out = in ? in + node->in_count : NULL;
    if (!in)
        return att_fail_memory(units->context, operands * sizeof *in, "a plan");
    describe_operands(graph, node, readers, in, out);
    att_problem problem = {.context = units->context,
                           .op = node->op->name,
                           .attrs = node->attrs,
                           .in = in,
                           .out = out,
                           .in_count = node->in_count,
                           .out_count = node->out_count,
                           .group = group,
                           .parts = parts};
    att_problem_divide(node->op, &problem, in, out);
    att_status status = find_or_create_unit(units, node->op, &problem, unit);
    att_free(units->context, in);
    return status;
}

att_status att_prepare_flat(att_units *units, const char *name, const void *attrs, const att_desc *in, int in_count,
                            const att_desc *out, int out_count, int parts, att_unit **unit)
{
    const att_op *op = att_registry_op(units->context, name);
    if (!op)
        return att_fail(units->context, ATT_ERR_NOT_FOUND, "there is no op \"%s\"", name);
    att_problem problem = {.context = units->context,
                           .op = op->name,
                           .attrs = attrs,
                           .in = in,
                           .out = out,
                           .in_count = in_count,
                           .out_count = out_count,
                           .group = 1,
                           .parts = parts};
    return find_or_create_unit(units, op, &problem, unit);
}

att_status att_units_init(att_units *units, att_arena *arena, const att_backend *backend)
{
    size_t kernels = 1;
    while (backend->kernels[kernels - 1])
        kernels++;
    *units = (att_units){.context = arena->context, .arena = arena, .backend = backend};
    units->profile_kernels = att_arena_allocate(arena, kernels * sizeof(att_kernel *));
    return units->profile_kernels ? ATT_OK : att_fail_memory(units->context, kernels * sizeof(att_kernel *), "a plan");
}

void att_units_release(att_units *units)
{
    for (att_unit *unit = units->first; unit; unit = unit->next)
        if (unit->kernel->release)
            unit->kernel->release(units->context, unit->prepared.state);
    units->first = NULL;
}
