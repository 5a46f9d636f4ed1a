#include "engine/session/runner.h"

#include <string.h>

#include "base/core/clock.h"
#include "base/core/context.h"
#include "base/core/error.h"

static size_t counter_count(const att_runner *runner)
{
    return (size_t)runner->units->profile_count * (size_t)att_context_threads(runner->context);
}

att_status att_runner_init(att_runner *runner, const att_units *units)
{
    att_context *context = units->context;
    size_t operands = (size_t)units->most_operands * (size_t)att_context_threads(context) + 1;
    *runner = (att_runner){.context = context, .units = units};
    runner->operands = att_allocate_array(context, operands, sizeof *runner->operands);
    runner->counters = att_allocate_array(context, counter_count(runner) + 1, sizeof *runner->counters);
    if (runner->operands && runner->counters)
        return ATT_OK;
    return att_fail_memory(context, operands * sizeof *runner->operands, "a session");
}

void att_runner_release(att_runner *runner)
{
    if (!runner->context)
        return;
    att_free(runner->context, runner->operands);
    att_free(runner->context, runner->counters);
}

void **att_runner_operands(const att_runner *runner, int thread)
{
    return runner->operands + (size_t)thread * (size_t)runner->units->most_operands;
}

void att_runner_fail(att_runner *runner, att_status status)
{
    int none = ATT_OK;
    atomic_compare_exchange_strong(&runner->status, &none, (int)status);
}

static void count(const att_runner *runner, const att_unit *unit, const att_call *call, int thread, double seconds)
{
    att_counter *counter = &runner->counters[thread * runner->units->profile_count + unit->profile_row];
    counter->seconds += seconds;
    if (call->part > 0)
        return;
    counter->calls++;
    counter->flops += unit->flops;
    counter->bytes += unit->bytes;
}

void att_runner_call(att_runner *runner, const att_unit *unit, const att_call *call, int thread)
{
    const att_memory *memory = runner->units->backend->memory;
    double begin = runner->profiling ? att_seconds_now() : 0;
    if (memory->enter)
        memory->enter();
    att_status status = unit->kernel->run(call);
    if (memory->leave)
        memory->leave();
    if (status != ATT_OK)
        att_runner_fail(runner, status);
    if (runner->profiling) {
        att_runner_wait(runner);
        count(runner, unit, call, thread, att_seconds_now() - begin);
    }
}

void att_runner_wait(const att_runner *runner)
{
    if (runner->units->backend->memory->wait)
        runner->units->backend->memory->wait();
}

void att_runner_profile(att_runner *runner, bool on)
{
    runner->profiling = on;
    memset(runner->counters, 0, counter_count(runner) * sizeof *runner->counters);
}

att_profile_row att_runner_profile_at(const att_runner *runner, int index)
{
    const att_kernel *kernel = runner->units->profile_kernels[index];
    att_profile_row row = {.op = kernel->op, .kernel = kernel->name};
    for (int thread = 0; thread < att_context_threads(runner->context); thread++) {
        const att_counter *counter = &runner->counters[thread * runner->units->profile_count + index];
        row.calls += counter->calls;
        row.seconds += counter->seconds;
        row.flops += counter->flops;
        row.bytes += counter->bytes;
    }
    return row;
}
