/* serve/list.h - the groups of routes. A new group is lab/serve/<group>.c and one line here. */
#ifndef ATT_SERVE_LIST_H
#define ATT_SERVE_LIST_H

#include "lab/serve/request.h"

#define ATT_ROUTE_GROUP_LIST(X) \
    X(pages)                    \
    X(runs)                     \
    X(events)                   \
    X(explore)

#define ATT_ROUTE_GROUP_DECLARE(name) extern const att_route_group att_routes_##name;
ATT_ROUTE_GROUP_LIST(ATT_ROUTE_GROUP_DECLARE)
#undef ATT_ROUTE_GROUP_DECLARE

#endif
