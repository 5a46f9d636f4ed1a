/* kernels/cuda/list.h - the kernels of the backend "cuda". */
#ifndef ATT_KERNELS_CUDA_LIST_H
#define ATT_KERNELS_CUDA_LIST_H

/* X(name) for each descriptor att_cuda_<name>, by file. */
#define ATT_CUDA_KERNELS(X) \
    /* add.cu */            \
    X(add)                  \
    /* attention.cu */      \
    X(attention)            \
    /* attention_grad.cu */ \
    X(attention_grad)       \
    /* layer_norm.cu */     \
    X(layer_norm)           \
    X(layer_norm_grad)      \
    X(rms_norm)             \
    X(rms_norm_grad)        \
    X(l2_norm)              \
    X(l2_norm_grad)         \
    /* softmax.cu */        \
    X(softmax)              \
    X(softmax_grad)         \
    /* statistics.cu */     \
    X(attention_summary)    \
    X(step_norms)           \
    X(residual_norms)       \
    X(map_statistic)

#endif
