#include <attscope/ops.h>
#include <attscope/task.h>

att_value att_backbone_classify(att_graph *graph, const att_backbone *backbone)
{
    const att_classifier_form *classifier = &backbone->classifier;
    att_scope root = att_scope_root(graph), scope = att_scope_in(&root, "%s", classifier->scope);
    att_scope_enter(&scope);
    att_value features = att_dropout(graph, backbone->features.pooled, backbone->drop_rate);
    return classifier->build(&scope, features, backbone->classes);
}
