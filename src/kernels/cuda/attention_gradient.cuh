/* kernels/cuda/attention_gradient.cuh - inputs and outputs of the gradient of attention, and its part on tensor cores.
 */
#ifndef ATT_KERNELS_CUDA_ATTENTION_GRADIENT_CUH
#define ATT_KERNELS_CUDA_ATTENTION_GRADIENT_CUH

#include "kernels/cuda/attention.cuh"

/* The call's inputs besides those of attention. do_o: [samples, H, N], do . o of each query. */
struct gradient_inputs {
    cuda_value dout, out;
    const float *lse;
    float *do_o;
};

struct gradient_outputs {
    cuda_value of[ATT_ATTENTION_OPERANDS]; /* of the inputs that hold q, k and v */
    cuda_value relative, rows, columns, norms;
    float *kept; /* [samples of a portion, H, N, keys]: gradients of scores, or NULL */
};

/* Whether the following functions can be used. */
bool attention_grad_fits_mma(const attention_problem &p, const gradient_inputs &in);
/* dq, the norms and the kept gradients of samples from `first_sample` on. */
void attention_grad_mma_queries(const attention_problem &p, const gradient_inputs &in, const gradient_outputs &to,
                                int first_sample, int samples);
/* dk or dv; or both, if their heads are shared by the same queries. */
void attention_grad_mma_keys(const attention_problem &p, const gradient_inputs &in, const gradient_outputs &to,
                             bool keys, bool values);

#endif
