/* ops/rms_norm.h - attributes of rms_norm and its gradient. */
#ifndef ATT_OPS_RMS_NORM_H
#define ATT_OPS_RMS_NORM_H

typedef struct att_rms_norm_attrs {
    double eps;
} att_rms_norm_attrs;

#endif
