/* Values of the frozen part (att_plan.frozen) that a session keeps from run to run, found by the bits of the inputs. */
#include <string.h>

#include "base/core/error.h"
#include "engine/session/session.h"

/* A sample. Its values lie side by side in the order of att_plan.frozen; NULL: no entry yet. */
typedef struct entry {
    uint64_t key[2];
    char *values;
    bool known; /* the values are there */
} entry;

struct att_remembered {
    att_context *context;
    size_t bytes; /* of an entry's values */
    entry *table; /* open addressing, at most half full */
    size_t room;  /* a power of two */
    int64_t count, most;
    /* By row of the batch of the current run: the sample's entry, NULL if there is none; and whether the row fills it.
     */
    entry **rows;
    bool *fills;
    bool active; /* the current run gives and takes values */
};

size_t att_session_remembered_bytes(const att_plan *plan, int64_t samples)
{
    const size_t each = att_size_sum(plan->frozen_bytes, 4 * sizeof(entry));
    return plan->frozen_count == 0 ? 0 : att_size_product(each, (size_t)samples);
}

static size_t room_for(int64_t samples)
{
    size_t room = 16;
    while (room < 2 * (size_t)samples)
        room *= 2;
    return room;
}

att_status att_session_remember(att_session *session, int64_t samples)
{
    att_context *context = session->context;
    const size_t room = room_for(samples), rows = (size_t)session->max_rows;
    att_remembered *r;
    if (session->plan->frozen_count == 0 || !session->memory->host || session->remembered)
        return ATT_OK;
    ATT_TRY(att_new(context, &r, 1, "remembered values"));
    *r = (att_remembered){.context = context, .bytes = session->plan->frozen_bytes, .room = room, .most = samples};
    session->remembered = r;
    r->table = att_allocate_array(context, room, sizeof *r->table);
    r->rows = att_allocate_array(context, rows, sizeof *r->rows);
    r->fills = att_allocate_array(context, rows, sizeof *r->fills);
    if (r->table && r->rows && r->fills)
        return ATT_OK;
    att_remembered_destroy(session);
    return att_fail_memory(context, room * sizeof *r->table, "remembered values");
}

void att_remembered_destroy(att_session *session)
{
    att_remembered *r = session->remembered;
    if (!r)
        return;
    for (size_t i = 0; r->table && i < r->room; i++)
        att_free(r->context, r->table[i].values);
    att_free(r->context, r->table);
    att_free(r->context, r->rows);
    att_free(r->context, r->fills);
    att_free(session->context, r);
    session->remembered = NULL;
}

/* --- keys --------------------------------------------------------------------------------------------------------- */

/* Adds 8 bytes to a hash of 128 bits: two multiplicative hashes with different odd factors (the first words of the
 * fractional parts of the golden ratio and of the square root of 3). */
static void add_word(uint64_t key[2], uint64_t word)
{
    key[0] = (key[0] ^ word) * 0x9e3779b97f4a7c15u;
    key[1] = (key[1] ^ word) * 0xbb67ae8584caa73bu;
    key[0] ^= key[0] >> 32;
    key[1] ^= key[1] >> 29;
}

static void add_bytes(uint64_t key[2], const char *bytes, size_t count)
{
    for (; count >= sizeof(uint64_t); bytes += sizeof(uint64_t), count -= sizeof(uint64_t)) {
        uint64_t word;
        memcpy(&word, bytes, sizeof word);
        add_word(key, word);
    }
    for (; count > 0; count--)
        add_word(key, (unsigned char)*bytes++);
}

static void make_key(const att_session *session, int row, uint64_t key[2])
{
    const att_plan *plan = session->plan;
    key[0] = key[1] = 0;
    for (int i = 0; i < plan->input_count; i++) {
        const size_t bytes = (size_t)plan->inputs[i].row_bytes;
        if (plan->frozen_reads[i])
            add_bytes(key, (const char *)session->bound[i] + (size_t)row * bytes, bytes);
    }
}

/* The entry of the key, a new one if there is room for it; NULL: there is none. */
static entry *find(att_remembered *r, const uint64_t key[2])
{
    size_t at = (size_t)key[0] & (r->room - 1);
    while (r->table[at].values && memcmp(r->table[at].key, key, sizeof r->table[at].key) != 0)
        at = (at + 1) & (r->room - 1);
    entry *found = &r->table[at];
    if (found->values)
        return found;
    if (r->count == r->most || !(found->values = att_allocate(r->context, r->bytes)))
        return NULL;
    memcpy(found->key, key, sizeof found->key);
    r->count++;
    return found;
}

/* --- one run ------------------------------------------------------------------------------------------------------ */

void att_remembered_begin(att_session *session)
{
    att_remembered *r = session->remembered;
    if (!r)
        return;
    r->active = !session->observing; /* probes need every value */
    for (int row = 0; row < session->batch.rows && r->active; row++) {
        uint64_t key[2];
        make_key(session, row, key);
        r->rows[row] = find(r, key);
        r->fills[row] = r->rows[row] && !r->rows[row]->known;
        for (int other = 0; other < row && r->fills[row]; other++) /* one of equal samples fills the entry */
            r->fills[row] = r->rows[other] != r->rows[row];
    }
}

void att_remembered_end(att_session *session, att_status status)
{
    att_remembered *r = session->remembered;
    for (int row = 0; r && r->active && status == ATT_OK && row < session->batch.rows; row++)
        if (r->fills[row])
            r->rows[row]->known = true;
    if (r)
        r->active = false;
}

static char *row_of(const att_session *session, const att_ref *ref, int64_t row)
{
    return (char *)(uintptr_t)att_session_rows(session, ref) + row * ref->row_bytes;
}

bool att_remembered_give(att_session *session, int64_t first, int count, bool copies)
{
    const att_remembered *r = session->remembered;
    if (!r || !r->active)
        return false;
    for (int64_t row = first; row < first + count; row++)
        if (!r->rows[row] || !r->rows[row]->known)
            return false;
    for (int64_t row = first; row < first + count && copies; row++) {
        const char *from = r->rows[row]->values;
        for (int i = 0; i < session->plan->frozen_count; i++) {
            const att_ref *ref = &session->plan->frozen[i];
            memcpy(row_of(session, ref, row), from, (size_t)ref->row_bytes);
            from += ref->row_bytes;
        }
    }
    return true;
}

void att_remembered_take(att_session *session, int64_t first, int count)
{
    const att_remembered *r = session->remembered;
    for (int64_t row = first; r && r->active && row < first + count; row++) {
        char *to = r->fills[row] ? r->rows[row]->values : NULL;
        for (int i = 0; to && i < session->plan->frozen_count; i++) {
            const att_ref *ref = &session->plan->frozen[i];
            memcpy(to, row_of(session, ref, row), (size_t)ref->row_bytes);
            to += ref->row_bytes;
        }
    }
}
