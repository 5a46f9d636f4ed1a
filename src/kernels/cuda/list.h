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
    X(attention_grad)

#endif
