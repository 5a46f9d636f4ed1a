/* comm/transport.h - how bytes travel between processes: what a plugin offers.
 *
 * A plugin is a shared object that exports one att_transport under the name att_transport_plugin. It uses nothing of
 * the library and includes no other header of it.
 */
#ifndef ATT_COMM_TRANSPORT_H
#define ATT_COMM_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Messages of one channel never meet those of another, so two threads may communicate at the same time, each on a
 * channel of its own. The channel of endings carries nothing else (att_comm_settle()). */
enum { ATT_COMM_MAIN, ATT_COMM_BACKGROUND, ATT_COMM_ENDINGS, ATT_COMM_CHANNELS };

/* A send or receive that was started. All zero: none. */
typedef struct att_transfer {
    uint64_t request; /* the transport's */
    uint64_t pending; /* 1 until wait() or test() found it complete */
} att_transfer;

enum { ATT_TRANSPORT_INTERFACE = 3, ATT_TRANSFER_BYTES = 1 << 30 };

/* Functions that can fail return NULL on success, or else a text that says what failed, valid until the next call on
 * the same channel. `state` is what start() returned. */
typedef struct att_transport {
    uint32_t interface; /* ATT_TRANSPORT_INTERFACE: a plugin of another build is refused */
    const char *(*start)(void **state, int *rank, int *size);
    const char *(*library)(void *state); /* name and version */
    /* Both start a transfer of `size` bytes; the memory belongs to it until wait(). Messages between two ranks arrive
     * in the order in which they were sent. size: at most ATT_TRANSFER_BYTES. */
    const char *(*send)(void *state, int channel, const void *bytes, size_t size, int to, att_transfer *transfer);
    const char *(*receive)(void *state, int channel, void *bytes, size_t size, int from, att_transfer *transfer);
    /* Waits until the transfer is complete and sets *transfer to zero; returns at once where it is zero. */
    const char *(*wait)(void *state, int channel, att_transfer *transfer);
    /* Sets *done if the transfer is complete, and *transfer to zero; never waits. */
    const char *(*test)(void *state, int channel, att_transfer *transfer, bool *done);
    const char *(*broadcast)(void *state, int channel, void *bytes, size_t size, int root);
    /* Every process contributes its part of `bytes` and receives those of all others: rank r's part lies at offsets[r]
     * and ends at offsets[r + 1]. */
    const char *(*gather)(void *state, int channel, void *bytes, const size_t *offsets);
    void (*abort)(void *state, int exit_status);
    void (*finish)(void *state);
} att_transport;

#define ATT_TRANSPORT_SYMBOL "att_transport_plugin"

#endif
