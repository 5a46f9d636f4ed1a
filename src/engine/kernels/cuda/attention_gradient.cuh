/* kernels/cuda/attention_gradient.cuh - inputs and outputs of the gradient of attention, and its part on tensor cores.
 */
#ifndef ATT_KERNELS_CUDA_ATTENTION_GRADIENT_CUH
#define ATT_KERNELS_CUDA_ATTENTION_GRADIENT_CUH

#include "engine/kernels/cuda/attention.cuh"

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

/* What a launch computes. */
enum gradient_result { GRADIENT_DQ, GRADIENT_DK, GRADIENT_DV, GRADIENT_DK_DV };

/* Whether scores have terms or masks, or weights are dropped. */
static inline bool attention_has_terms(const attention_problem &p)
{
    return p.terms.relative || p.terms.rows || p.terms.keys || p.causal || p.drops || p.window_h;
}

/* Whether the following functions can be used. */
bool attention_grad_fits_mma(const attention_problem &p, const gradient_inputs &in);
/* dq, the norms and the kept gradients of samples from `first_sample` on. */
void attention_grad_mma_queries(const attention_problem &p, const gradient_inputs &in, const gradient_outputs &to,
                                int first_sample, int samples);
/* dk or dv; or both, if their heads are shared by the same queries. */
void attention_grad_mma_keys(const attention_problem &p, const gradient_inputs &in, const gradient_outputs &to,
                             bool keys, bool values);

/* The same for f32 heads of at most 64 channels. */
bool attention_grad_fits_f32(const attention_problem &p, const gradient_inputs &in);
void attention_grad_f32_queries(const attention_problem &p, const gradient_inputs &in, const gradient_outputs &to,
                                int first_sample, int samples);
void attention_grad_f32_keys(const attention_problem &p, const gradient_inputs &in, const gradient_outputs &to,
                             bool keys, bool values);

#endif
