/* nn/list.h - the built-in modules. Each is one line here and one file that ends in its descriptor. */
#ifndef ATT_NN_LIST_H
#define ATT_NN_LIST_H

#define ATT_MODULE_LIST(X) \
    X(cb)                  \
    X(cb_s)                \
    X(uniform_head)        \
    X(se)                  \
    X(eca)                 \
    X(fca)                 \
    X(srm)                 \
    X(cbam)                \
    X(step)

#endif
