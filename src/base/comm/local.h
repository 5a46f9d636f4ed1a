/* comm/local.h - processes that are threads of this one, for tests. */
#ifndef ATT_COMM_LOCAL_H
#define ATT_COMM_LOCAL_H

#include "base/comm/comm.h"

typedef struct att_hub att_hub;

/* Connects `size` communicators. The context must outlive all of them. */
att_status att_hub_create(att_context *context, int size, att_hub **hub);
/* The communicators may outlive the hub's maker: the last one that is closed frees its memory. */
void att_hub_destroy(att_hub **hub);
/* Called by each rank's own thread with a context of its own; waits for all ranks. */
att_status att_hub_join(att_hub *hub, att_context *context, int rank, att_comm **comm);

#endif
