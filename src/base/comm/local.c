#include <pthread.h>
#include <string.h>

#include "base/comm/comm.h"
#include "base/comm/local.h"
#include "base/core/error.h"
#include "base/core/memory.h"

/* Processes that are threads of this one. Nothing is buffered: bytes are copied once the send and the receive are
 * both posted. */

typedef struct local_post {
    const void *from; /* of a send */
    void *to;         /* of a receive */
    size_t size;
    bool done;
    struct local_post *next;
} local_post;

/* Posts that wait for their partner, oldest first: either sends or receives. */
typedef struct local_mailbox {
    local_post *first, *last;
} local_mailbox;

struct att_hub {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    att_context *context;
    int size, members; /* members: joined and not yet left, and the hub's maker */
    bool aborted;
    local_mailbox *mailboxes; /* [channel][from][to] */
};

typedef struct local_rank {
    att_hub *hub;
    int rank;
} local_rank;

static const char *const aborted_text = "another process ended all";

/* --- transfers --------------------------------------------------------------------------------------------------- */

static bool is_partner(const local_post *a, const local_post *b)
{
    return (a->from != NULL) != (b->from != NULL);
}

static const char *copy(att_hub *hub, local_post *a, local_post *b)
{
    const local_post *send = a->from ? a : b, *receive = a->from ? b : a;
    if (send->size != receive->size)
        return "a send and its receive differ in size";
    memcpy(receive->to, send->from, send->size);
    a->done = b->done = true;
    pthread_cond_broadcast(&hub->changed);
    return NULL;
}

static void append(local_mailbox *mailbox, local_post *post)
{
    if (mailbox->last)
        mailbox->last->next = post;
    else
        mailbox->first = post;
    mailbox->last = post;
}

/* Copies if the partner is there, waits in the mailbox if not. */
static const char *deliver(att_hub *hub, int channel, int from, int to, local_post *own)
{
    local_mailbox *mailbox =
        &hub->mailboxes[((size_t)channel * (size_t)hub->size + (size_t)from) * (size_t)hub->size + (size_t)to];
    local_post *partner = mailbox->first;
    if (!partner || !is_partner(partner, own)) {
        append(mailbox, own);
        return NULL;
    }
    mailbox->first = partner->next;
    if (!mailbox->first)
        mailbox->last = NULL;
    return copy(hub, partner, own);
}

static const char *start_transfer(local_rank *member, int channel, int from, int to, local_post values,
                                  att_transfer *transfer)
{
    att_hub *hub = member->hub;
    local_post *own = att_allocate(hub->context, sizeof *own);
    if (!own)
        return "no memory is left";
    *own = values;
    pthread_mutex_lock(&hub->lock);
    /* Memory of posts that others left when they failed may be gone. */
    const char *failure = hub->aborted ? aborted_text : deliver(hub, channel, from, to, own);
    bool hub_aborted = hub->aborted;
    pthread_mutex_unlock(&hub->lock);
    if (hub_aborted)
        att_free(hub->context, own);
    *transfer = hub_aborted ? (att_transfer){0} : (att_transfer){.request = (uintptr_t)own, .pending = 1};
    return failure;
}

static const char *send_bytes(void *state, int channel, const void *bytes, size_t size, int to, att_transfer *transfer)
{
    local_rank *member = state;
    return start_transfer(member, channel, member->rank, to, (local_post){.from = bytes, .size = size}, transfer);
}

static const char *receive_bytes(void *state, int channel, void *bytes, size_t size, int from, att_transfer *transfer)
{
    local_rank *member = state;
    return start_transfer(member, channel, from, member->rank, (local_post){.to = bytes, .size = size}, transfer);
}

static const char *test_for(void *state, int channel, att_transfer *transfer, bool *done)
{
    (void)channel;
    const local_rank *member = state;
    att_hub *hub = member->hub;
    local_post *own = (local_post *)(uintptr_t)transfer->request;
    pthread_mutex_lock(&hub->lock);
    *done = !transfer->pending || own->done;
    const char *failure = !*done && hub->aborted ? aborted_text : NULL;
    pthread_mutex_unlock(&hub->lock);
    if (*done && transfer->pending) {
        att_free(hub->context, own);
        *transfer = (att_transfer){0};
    }
    return failure;
}

static const char *wait_for(void *state, int channel, att_transfer *transfer)
{
    (void)channel;
    const local_rank *member = state;
    att_hub *hub = member->hub;
    if (!transfer->pending)
        return NULL;
    local_post *own = (local_post *)(uintptr_t)transfer->request;
    pthread_mutex_lock(&hub->lock);
    while (!own->done && !hub->aborted)
        pthread_cond_wait(&hub->changed, &hub->lock);
    bool done = own->done;
    pthread_mutex_unlock(&hub->lock);
    if (!done)
        return aborted_text; /* the post is still in its mailbox */
    att_free(hub->context, own);
    *transfer = (att_transfer){0};
    return NULL;
}

/* --- collective calls -------------------------------------------------------------------------------------------- */

static const char *transfer_now(local_rank *member, int channel, void *bytes, size_t size, int other, bool sends)
{
    att_transfer transfer = {0};
    const char *failure = sends ? send_bytes(member, channel, bytes, size, other, &transfer)
                                : receive_bytes(member, channel, bytes, size, other, &transfer);
    return failure ? failure : wait_for(member, channel, &transfer);
}

static const char *broadcast(void *state, int channel, void *bytes, size_t size, int root)
{
    local_rank *member = state;
    const char *failure = NULL;
    if (member->rank != root)
        return transfer_now(member, channel, bytes, size, root, false);
    for (int i = 0; i < member->hub->size && !failure; i++)
        if (i != root)
            failure = transfer_now(member, channel, bytes, size, i, true);
    return failure;
}

static const char *gather(void *state, int channel, void *bytes, const size_t *offsets)
{
    const local_rank *member = state;
    const char *failure = NULL;
    for (int i = 0; i < member->hub->size && !failure; i++)
        failure = broadcast(state, channel, (char *)bytes + offsets[i], offsets[i + 1] - offsets[i], i);
    return failure;
}

/* --- opening and closing ----------------------------------------------------------------------------------------- */

static size_t mailbox_count(const att_hub *hub)
{
    return (size_t)ATT_COMM_CHANNELS * (size_t)hub->size * (size_t)hub->size;
}

static void release(att_hub *hub)
{
    for (size_t i = 0; hub->mailboxes && i < mailbox_count(hub); i++)
        for (local_post *post = hub->mailboxes[i].first, *next; post; post = next) {
            next = post->next;
            att_free(hub->context, post);
        }
    pthread_cond_destroy(&hub->changed);
    pthread_mutex_destroy(&hub->lock);
    att_free(hub->context, hub->mailboxes);
    att_free(hub->context, hub);
}

static void end_all(void *state, int exit_status)
{
    (void)exit_status;
    att_hub *hub = ((local_rank *)state)->hub;
    pthread_mutex_lock(&hub->lock);
    hub->aborted = true;
    pthread_cond_broadcast(&hub->changed);
    pthread_mutex_unlock(&hub->lock);
}

static void leave(att_hub *hub)
{
    pthread_mutex_lock(&hub->lock);
    bool is_last = --hub->members == 0;
    pthread_mutex_unlock(&hub->lock);
    if (is_last)
        release(hub);
}

static void finish(void *state)
{
    local_rank *own = state;
    att_hub *hub = own->hub;
    att_free(hub->context, own);
    leave(hub);
}

static const char *library(void *state)
{
    (void)state;
    return "threads of one process";
}

static const att_transport local_transport = {.interface = ATT_TRANSPORT_INTERFACE,
                                              .library = library,
                                              .send = send_bytes,
                                              .receive = receive_bytes,
                                              .wait = wait_for,
                                              .test = test_for,
                                              .broadcast = broadcast,
                                              .gather = gather,
                                              .abort = end_all,
                                              .finish = finish};

att_status att_hub_create(att_context *context, int size, att_hub **out)
{
    att_hub *hub;
    ATT_TRY(att_new(context, &hub, 1, "a hub"));
    *hub = (att_hub){.context = context, .size = size, .members = 1};
    pthread_mutex_init(&hub->lock, NULL);
    pthread_cond_init(&hub->changed, NULL);
    hub->mailboxes = att_allocate_array(context, mailbox_count(hub), sizeof *hub->mailboxes);
    if (!hub->mailboxes) {
        size_t bytes = mailbox_count(hub) * sizeof *hub->mailboxes;
        release(hub);
        return att_fail_memory(context, bytes, "a hub");
    }
    *out = hub;
    return ATT_OK;
}

void att_hub_destroy(att_hub **hub)
{
    if (*hub)
        leave(*hub);
    *hub = NULL;
}

att_status att_hub_join(att_hub *hub, att_context *context, int rank, att_comm **comm)
{
    local_rank *own = att_allocate(hub->context, sizeof *own);
    if (!own)
        return att_fail_memory(context, sizeof *own, "a communicator");
    *own = (local_rank){.hub = hub, .rank = rank};
    pthread_mutex_lock(&hub->lock);
    hub->members++;
    pthread_mutex_unlock(&hub->lock);
    att_status status = att_comm_create(context, &local_transport, own, rank, hub->size, comm);
    if (status != ATT_OK)
        finish(own);
    return status;
}
