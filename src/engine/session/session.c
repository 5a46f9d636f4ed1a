#include "engine/session/session.h"

#include <stdio.h>
#include <string.h>

#include "base/core/error.h"
#include "base/core/text.h"
#include "engine/session/block.h"

/* --- memory ------------------------------------------------------------------------------------------------------ */

static void *reserve(att_session *session, size_t bytes, att_status *status)
{
    if (bytes == 0 || *status != ATT_OK)
        return NULL;
    void *block = att_session_block_take(session->block, bytes, &session->block_used);
    if (!block)
        block = session->memory->allocate(session->context, bytes);
    if (!block)
        *status = att_fail_memory(session->context, bytes, "a session");
    return block;
}

static void *reserve_host(att_session *session, size_t count, size_t size, att_status *status)
{
    if (*status != ATT_OK)
        return NULL;
    void *block = att_allocate_array(session->context, count + 1, size);
    if (!block)
        *status = att_fail_memory(session->context, count * size, "a session");
    return block;
}

static void reserve_teams(att_session *session, att_status *status)
{
    const att_plan *plan = session->plan;
    session->room_bytes = att_room_bytes(att_plan_room(plan));
    session->room = reserve(session, session->room_bytes, status);
    session->barriers = reserve_host(session, (size_t)plan->teams, sizeof *session->barriers, status);
    for (int i = 0; i < plan->teams && *status == ATT_OK; i++)
        att_barrier_init(&session->barriers[i], plan->parts);
}

static size_t kept_bytes(const att_plan *plan, int max_batch)
{
    return att_size_product(plan->store_bytes, (size_t)max_batch);
}

static size_t gathered_bytes(const att_plan *plan, int max_batch)
{
    return att_size_product(plan->gathered_bytes, (size_t)max_batch);
}

/* The largest share of a process of batches of at most max_batch samples. */
static int most_rows(const att_plan *plan, int max_batch)
{
    int processes = att_comm_size(plan->comm);
    return max_batch / processes + (max_batch % processes > 0);
}

/* While spare lanes travel to other processes, the next segment runs. */
static size_t own_spare_bytes(const att_plan *plan)
{
    return att_comm_size(plan->comm) > 1 ? plan->spare_bytes : 0;
}

static size_t reduction_scratch(const att_plan *plan)
{
    return plan->scratch_bytes * (size_t)att_plan_threads(plan);
}

static void reserve_shared(att_session *session, att_status *status)
{
    const att_plan *plan = session->plan;
    session->store = reserve(session, kept_bytes(plan, session->max_rows), status);
    session->gathered = reserve(session, gathered_bytes(plan, session->max_batch), status);
    session->batch_values = reserve(session, plan->batch_bytes, status);
    session->scratch = reserve(session, reduction_scratch(plan), status);
}

static void reserve_ports(att_session *session, att_status *status)
{
    const att_plan *plan = session->plan;
    session->bound = reserve_host(session, (size_t)plan->input_count, sizeof *session->bound, status);
    session->staged = reserve_host(session, (size_t)plan->input_count, sizeof *session->staged, status);
    session->starts = reserve_host(session, (size_t)att_comm_size(plan->comm), sizeof *session->starts, status);
    session->fetched = reserve_host(session, (size_t)plan->output_count, sizeof *session->fetched, status);
    session->outputs = reserve_host(session, (size_t)plan->output_count, sizeof *session->outputs, status);
    for (int i = 0; i < plan->input_count && !session->memory->host && *status == ATT_OK; i++)
        session->staged[i] = reserve(session, (size_t)session->max_rows * (size_t)plan->inputs[i].row_bytes, status);
    for (int i = 0; i < plan->output_count && *status == ATT_OK; i++)
        if (plan->outputs[i].holder == i)
            session->outputs[i] =
                reserve(session, (size_t)session->max_batch * (size_t)plan->outputs[i].row_bytes, status);
}

/* Finds the plan's parameters among the weights, by name. */
static att_status bind_parameters(att_session *session)
{
    const att_plan *plan = session->plan;
    const att_weights *weights = session->weights;
    size_t element = att_dtype_size(plan->dtype);
    for (int i = 0; i < plan->parameter_count; i++) {
        const att_parameter_info *parameter = &plan->parameters[i];
        int index = i < weights->count && strcmp(weights->parameters[i].name, parameter->name) == 0
                        ? i
                        : att_weights_find(weights, parameter->name);
        if (index < 0 || !att_shape_equal(weights->parameters[index].shape, parameter->shape) ||
            weights->parameters[index].buffer != parameter->buffer)
            return att_fail(session->context, ATT_ERR_MISMATCH,
                            index < 0 ? "the weights lack \"%s\", which the plan's graph has"
                                      : "\"%s\" has another shape in the weights than in the plan's graph, or is a "
                                        "buffer in one of them only",
                            parameter->name);
        const att_parameter_place *place = &weights->places[index];
        char *block = weights->blocks[place->block]->values;
        session->parameters[i] =
            (att_bound_parameter){.index = index, .values = block + (size_t)place->offset * element};
    }
    return ATT_OK;
}

static att_status check_weights(const att_plan *plan, const att_weights *weights)
{
    if (plan->dtype != weights->dtype)
        return att_fail(plan->context, ATT_ERR_MISMATCH, "the weights are %s, the plan computes in %s",
                        att_dtype_name(weights->dtype), att_dtype_name(plan->dtype));
    if (plan->units.backend->memory != weights->memory)
        return att_fail(plan->context, ATT_ERR_MISMATCH, "the weights are not in the memory of the backend \"%s\"",
                        plan->units.backend->name);
    return ATT_OK;
}

/* --- required memory --------------------------------------------------------------------------------------------- */

static size_t port_bytes(const att_port *ports, int count, int max_batch)
{
    size_t bytes = 0;
    for (int i = 0; i < count; i++)
        if (ports[i].holder == i)
            bytes = att_size_sum(bytes, att_size_product((size_t)ports[i].row_bytes, (size_t)max_batch));
    return bytes;
}

size_t att_session_parts(const att_plan *plan, int max_batch, att_memory_part parts[ATT_SESSION_PARTS])
{
    int rows = most_rows(plan, max_batch);
    const att_room room = att_plan_room(plan);
    const att_memory_part own[] = {
        [ATT_SESSION_LAYERS] = {"values between layers", att_size_sum(room.arenas, reduction_scratch(plan))},
        [ATT_SESSION_KEPT] = {"values kept for the batch",
                              att_size_sum(kept_bytes(plan, rows),
                                           att_size_sum(plan->batch_bytes, gathered_bytes(plan, max_batch)))},
        [ATT_SESSION_LANES] = {"gradients of other lanes", room.lanes + own_spare_bytes(plan)},
        [ATT_SESSION_PACKED] = {"packed and derived weights",
                                att_size_sum(room.packs + plan->packed_bytes, plan->derived_bytes + plan->total_bytes)},
        [ATT_SESSION_OUTPUTS] = {"outputs", port_bytes(plan->outputs, plan->output_count, max_batch)},
        [ATT_SESSION_INPUTS] = {
            "inputs", plan->units.backend->memory->host ? 0 : port_bytes(plan->inputs, plan->input_count, rows)}};
    _Static_assert(sizeof own == ATT_SESSION_PARTS * sizeof *own, "every part has a place");
    size_t sum = 0;
    for (int i = 0; i < ATT_SESSION_PARTS; i++) {
        parts[i] = own[i];
        sum = att_size_sum(sum, own[i].bytes);
    }
    return sum;
}

size_t att_session_bytes(const att_plan *plan, int max_batch)
{
    att_memory_part parts[ATT_SESSION_PARTS];
    return att_session_parts(plan, max_batch, parts);
}

/* Lists the parts that take at least 1/64 of the sum; `before` precedes the first. Returns the length. */
static int list_parts(char *text, size_t room, const att_memory_part *parts, int count, size_t sum, const char *before)
{
    char size[24];
    int length = 0;
    for (int i = 0; i < count; i++) {
        if (parts[i].bytes == 0 || parts[i].bytes < sum / 64)
            continue;
        length += snprintf(text + length, room - (size_t)length, "%s%s of %s", before,
                           att_size_format(parts[i].bytes, size, sizeof size), parts[i].what);
        before = ", ";
    }
    return length;
}

/* Describes a session and the parts that it needs, with room for them in `text`. */
static void describe_need(const att_plan *plan, size_t sum, const att_memory_part *own, const att_memory_part *extra,
                          int extra_count, char *text, size_t room)
{
    int length = snprintf(text, room, "a session");
    if (plan->units.backend->memory->host)
        length += snprintf(text + length, room - (size_t)length, " on %d threads", att_context_threads(plan->context));
    int listed = list_parts(text + length, room - (size_t)length, own, ATT_SESSION_PARTS, sum, " (");
    length += listed;
    length += list_parts(text + length, room - (size_t)length, extra, extra_count, sum, listed > 0 ? ", " : " (");
    snprintf(text + length, room - (size_t)length,
             "; smaller images, a smaller network, fewer threads or samples need less)");
}

att_status att_session_check_memory(const att_plan *plan, int max_batch, const att_memory_part *extra, int extra_count)
{
    const att_memory *memory = plan->units.backend->memory;
    att_memory_part parts[ATT_SESSION_PARTS];
    size_t sum = att_session_parts(plan, max_batch, parts), left = memory->left(plan->context);
    char what[640], needed[24], unused[24];
    for (int i = 0; i < extra_count; i++)
        sum = att_size_sum(sum, extra[i].bytes);
    if (sum <= left)
        return ATT_OK;
    describe_need(plan, sum, parts, extra, extra_count, what, sizeof what);
    if (memory->host)
        return att_fail_memory(plan->context, sum, what);
    return att_fail(plan->context, ATT_ERR_MEMORY, "out of memory on the device: %s are free, but %s are needed for %s",
                    att_size_format(left, unused, sizeof unused), att_size_format(sum, needed, sizeof needed), what);
}

void att_session_upload(att_session *session)
{
    const att_plan *plan = session->plan;
    for (int i = 0; i < plan->upload_count; i++)
        session->memory->copy_in(session->derived + plan->uploads[i].offset, plan->uploads[i].data,
                                 plan->uploads[i].bytes);
}

/* --- creating ---------------------------------------------------------------------------------------------------- */

static att_status reserve_all(att_session *session)
{
    const att_plan *plan = session->plan;
    att_status status = att_runner_init(&session->runner, &plan->units);
    session->parameters = reserve_host(session, (size_t)plan->parameter_count, sizeof *session->parameters, &status);
    session->sums = reserve_host(session, (size_t)plan->sum_count, sizeof *session->sums, &status);
    if (status == ATT_OK)
        status = bind_parameters(session);
    if (status == ATT_OK)
        status = att_session_find_packed(session);
    reserve_teams(session, &status);
    reserve_shared(session, &status);
    reserve_ports(session, &status);
    session->spare = own_spare_bytes(plan) > 0 ? reserve(session, own_spare_bytes(plan), &status) : session->room;
    session->packed = reserve(session, plan->packed_bytes, &status);
    session->derived = reserve(session, plan->derived_bytes, &status);
    session->totals = reserve(session, plan->total_bytes, &status);
    if (status == ATT_OK)
        att_session_upload(session);
    for (int i = plan->parameter_count; i < plan->sum_count && status == ATT_OK; i++)
        session->sums[i] = session->totals + plan->sums[i].offset;
    return status == ATT_OK && plan->purpose != ATT_INFER && att_comm_size(plan->comm) > 1
               ? att_exchange_create(session, &session->exchange)
               : status;
}

att_status att_session_create(const att_plan *plan, att_weights *weights, int max_batch, att_session **session)
{
    return att_session_create_in(plan, weights, max_batch, NULL, session);
}

att_status att_session_create_in(const att_plan *plan, att_weights *weights, int max_batch, att_session_block *block,
                                 att_session **out)
{
    if (max_batch < 1)
        return att_fail(plan->context, ATT_ERR_ARGUMENT, "a session takes a batch of at least 1, not %d", max_batch);
    ATT_TRY(check_weights(plan, weights));
    if (!block || att_session_block_bytes(plan, max_batch) > block->bytes)
        ATT_TRY(att_session_check_memory(plan, max_batch, NULL, 0));
    att_session *session;
    ATT_TRY(att_new(plan->context, &session, 1, "a session"));
    session->context = plan->context;
    session->plan = plan;
    session->memory = plan->units.backend->memory;
    session->weights = weights;
    session->block = block;
    session->max_batch = max_batch;
    session->max_rows = most_rows(plan, max_batch);
    session->observing = true;
    att_status status = reserve_all(session);
    if (status != ATT_OK)
        att_session_destroy(&session);
    else
        *out = session;
    return status;
}

static void release(att_session *session, void *block, size_t bytes)
{
    if (block && !att_session_block_holds(session->block, block))
        session->memory->release(session->context, block, bytes);
}

static void release_ports(att_session *session, char **blocks, const att_port *ports, int count, int rows)
{
    for (int i = 0; blocks && i < count; i++)
        release(session, blocks[i], (size_t)rows * (size_t)ports[i].row_bytes);
    att_free(session->context, blocks);
}

void att_session_destroy(att_session **out)
{
    if (!out || !*out)
        return;
    att_session *session = *out;
    const att_plan *plan = session->plan;
    if (session->block && session->block->last == session)
        session->block->last = NULL;
    att_exchange_destroy(&session->exchange);
    att_recorded_release(session);
    att_remembered_destroy(session);
    release(session, session->room, session->room_bytes);
    att_free(session->context, session->barriers);
    release(session, session->store, kept_bytes(plan, session->max_rows));
    release(session, session->gathered, gathered_bytes(plan, session->max_batch));
    release(session, session->batch_values, plan->batch_bytes);
    release(session, session->scratch, reduction_scratch(plan));
    release_ports(session, session->staged, plan->inputs, plan->input_count, session->max_rows);
    release_ports(session, session->outputs, plan->outputs, plan->output_count, session->max_batch);
    att_free(session->context, session->fetched);
    att_free(session->context, session->starts);
    att_free(session->context, session->bound);
    att_free(session->context, session->parameters);
    att_free(session->context, session->packs_of);
    att_free(session->context, session->sums);
    release(session, session->derived, plan->derived_bytes);
    release(session, session->totals, plan->total_bytes);
    if (own_spare_bytes(plan) > 0)
        release(session, session->spare, own_spare_bytes(plan));
    release(session, session->packed, plan->packed_bytes);
    att_runner_release(&session->runner);
    att_free(session->context, session);
    *out = NULL;
}

/* --- inputs and outputs ------------------------------------------------------------------------------------------ */

static int find_port(const att_port *ports, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(ports[i].name, name) == 0)
            return i;
    return -1;
}

static const char *port_name(const void *user, int index)
{
    return ((const att_port *)user)[index].name;
}

static att_status fail_no_port(const att_session *session, const char *what, const att_port *ports, int count,
                               const char *name)
{
    const char *nearest = att_text_nearest(name, port_name, ports, count);
    return att_fail(session->context, ATT_ERR_NOT_FOUND, "the plan has no %s \"%s\"%s%s%s", what, name,
                    nearest ? "; did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
}

att_status att_session_bind(att_session *session, const char *input, const void *rows)
{
    const att_plan *plan = session->plan;
    int port = find_port(plan->inputs, plan->input_count, input);
    if (port < 0)
        return fail_no_port(session, "input", plan->inputs, plan->input_count, input);
    session->bound[port] = rows;
    return ATT_OK;
}

static att_status find_output(const att_session *session, const char *output, int *port)
{
    const att_plan *plan = session->plan;
    *port = find_port(plan->outputs, plan->output_count, output);
    return *port < 0 ? fail_no_port(session, "output", plan->outputs, plan->output_count, output) : ATT_OK;
}

static void copy_rows(const att_session *session, int port, int first, int count, void *rows)
{
    const att_port *from = &session->plan->outputs[port];
    size_t row = (size_t)from->row_bytes;
    session->memory->copy_out(rows, session->outputs[from->holder] + (size_t)first * row, (size_t)count * row);
}

att_status att_session_output(att_session *session, const char *output, int first, int count, void *rows)
{
    const att_plan *plan = session->plan;
    int port;
    ATT_TRY(find_output(session, output, &port));
    if (first < 0 || count < 0 || first > session->batch.count - count)
        return att_fail(session->context, ATT_ERR_ARGUMENT,
                        "%d rows of \"%s\" from row %d on were requested, but the last run had %d rows", count, output,
                        first, session->batch.count);
    if (plan->outputs[port].probe && !session->batch.observed)
        return att_fail(session->context, ATT_ERR_ARGUMENT,
                        "\"%s\" is a probe, and probes were off in the last run (att_session_observe())", output);
    ATT_TRY(att_session_fetch(session, plan->outputs[port].holder));
    copy_rows(session, port, first, count, rows);
    return ATT_OK;
}

att_status att_session_own_output(const att_session *session, const char *output, void *rows)
{
    int port;
    ATT_TRY(find_output(session, output, &port));
    copy_rows(session, port, session->batch.first_row, session->batch.rows, rows);
    return ATT_OK;
}

void att_session_observe(att_session *session, bool on)
{
    session->observing = on;
}

static att_status check_batch(const att_session *session, int batch, int least, int most)
{
    if (batch < least || batch > most)
        return att_fail(session->context, ATT_ERR_ARGUMENT, "a batch of %d: the session takes %d to %d", batch, least,
                        most);
    for (int i = 0; i < session->plan->input_count; i++)
        if (!session->bound[i])
            return att_fail(session->context, ATT_ERR_ARGUMENT, "input \"%s\" is not bound",
                            session->plan->inputs[i].name);
    return ATT_OK;
}

/* Of other processes. */
static void forget_outputs(att_session *session)
{
    memset(session->fetched, 0, (size_t)session->plan->output_count * sizeof *session->fetched);
}

/* --- running ----------------------------------------------------------------------------------------------------- */

att_status att_session_run(att_session *session, int batch)
{
    if (session->plan->purpose != ATT_INFER)
        return att_fail(session->context, ATT_ERR_ARGUMENT,
                        "the plan computes gradients; use att_session_accumulate() instead of att_session_run()");
    ATT_TRY(check_batch(session, batch, att_comm_size(session->plan->comm) > 1 ? 0 : 1, session->max_rows));
    session->batch = (att_body_batch){.observed = session->observing};
    ATT_TRY(att_session_join_batch(session, batch));
    forget_outputs(session);
    return att_session_body(session);
}

/* Sets the memory that each parameter's gradient is summed in. */
static att_status bind_gradient(att_session *session, att_gradient *gradient)
{
    const att_plan *plan = session->plan;
    if (gradient && gradient->weights != session->weights)
        return att_fail(session->context, ATT_ERR_MISMATCH, "the gradient is not of the session's weights");
    for (int i = 0; i < plan->parameter_count; i++) {
        if (plan->sums[i].used && !gradient)
            return att_fail(session->context, ATT_ERR_ARGUMENT,
                            "without a gradient to add to, every parameter must be frozen; \"%s\" is not",
                            plan->parameters[i].name);
        if (plan->sums[i].used)
            session->sums[i] = att_gradient_at(gradient, session->parameters[i].index);
    }
    session->gradient = gradient;
    return ATT_OK;
}

/* The run has assigned buffers. Other sessions over the weights must run their prologue again. So must this session if
 * its prologue reads the buffers. */
static void mark_assigned_changed(att_session *session)
{
    const att_plan *plan = session->plan;
    for (int i = 0; i < plan->assigned_count; i++) {
        int index = session->parameters[plan->assigned[i]].index;
        session->weights->blocks[session->weights->places[index].block]->version++;
    }
    if (!plan->prologue_reads_assigned && session->packed_version > 0)
        session->packed_version += (uint64_t)plan->assigned_count;
}

att_status att_session_accumulate(att_session *session, att_gradient *gradient, int batch, double scale, uint64_t seed,
                                  int64_t step, int64_t first)
{
    if (session->plan->purpose == ATT_INFER)
        return att_fail(session->context, ATT_ERR_ARGUMENT, "the plan was compiled without gradients");
    ATT_TRY(check_batch(session, batch, 1, session->max_batch));
    if (first < 0 || first > INT64_MAX - batch)
        return att_fail(session->context, ATT_ERR_ARGUMENT, "a batch of %d cannot begin at position %lld of an update",
                        batch, (long long)first);
    ATT_TRY(bind_gradient(session, gradient));
    session->batch = (att_body_batch){
        .observed = session->observing, .first = first, .run = {.seed = seed, .step = step, .scale = scale}};
    att_session_split_batch(session, batch);
    forget_outputs(session);
    if (gradient)
        att_gradient_changed(gradient);
    att_remembered_begin(session);
    att_status status = att_session_body(session);
    att_remembered_end(session, status);
    mark_assigned_changed(session);
    return status;
}

/* --- profile ----------------------------------------------------------------------------------------------------- */

att_status att_session_profile(att_session *session, bool on)
{
    att_runner_profile(&session->runner, on);
    return ATT_OK;
}

int att_session_profile_count(const att_session *session)
{
    return session->plan->units.profile_count;
}

att_profile_row att_session_profile_at(const att_session *session, int index)
{
    return att_runner_profile_at(&session->runner, index);
}

void att_session_trace(att_session *session, att_trace_fn trace, void *user)
{
    session->trace = trace;
    session->trace_user = user;
}
