#include <attscope/ops.h>
#include <attscope/task.h>

static att_value classify(att_graph *graph, const att_backbone *backbone, const char *name, att_value features)
{
    att_scope root = att_scope_root(graph), scope = att_scope_in(&root, "%s", name);
    att_scope_enter(&scope);
    features = att_dropout(graph, features, backbone->drop_rate);
    return backbone->classifier.build(&scope, features, backbone->classes);
}

att_value att_backbone_classify(att_graph *graph, const att_backbone *backbone)
{
    const att_classifier_form *classifier = &backbone->classifier;
    const att_features *features = &backbone->features;
    if (!classifier->second)
        return classify(graph, backbone, classifier->scope, features->pooled);
    att_value first = classify(graph, backbone, classifier->scope, features->classified[0]);
    att_value second = classify(graph, backbone, classifier->second, features->classified[1]);
    return att_combine(graph, 0.5, first, 0.5, second);
}
