/* Trains a small ViT on a data set, and prints its accuracy on the validation images.
 *
 *   train DATA OUTPUT
 *   train flowers output/flowers
 *
 * DATA is a path for att_dataset_open(), such as a folder with the class folders train/daisy, train/tulip, val/daisy,
 * val/tulip. OUTPUT is the folder for checkpoints, which is created. `predict OUTPUT IMAGE` (predict.c) and the command
 * `attscope` use the best checkpoint in it.
 */
#include <stdio.h>

#include <attscope/attscope.h>

/* Images are resized to 32 x 32 pixels and cut into patches of 8 x 8. */
static att_status open_network(att_context *context, int classes, att_network **network)
{
    att_option_values values = att_options_none();
    att_network_options options = att_network_options_defaults();
    att_options_set(&values, "num_classes", classes);
    att_options_set(&values, "img_size", 32);
    att_options_set(&values, "patch_size", 8);
    att_options_set(&values, "embed_dim", 64);
    att_options_set(&values, "depth", 4);
    att_options_set(&values, "num_heads", 2);
    att_options_set_text(&values, "modules", "cb"); /* context broadcasting at the end of each MLP */
    options.options = &values;
    return att_network_open(context, "vit_tiny_patch16_224", &options, network);
}

static att_status train(att_context *context, const char *data, const char *output)
{
    att_dataset *training = NULL, *validation = NULL;
    att_network *network = NULL;
    att_dataset_options validation_options = att_dataset_options_defaults();
    validation_options.split = "val";
    att_train_options recipe = att_train_options_defaults();
    recipe.epochs = 20;
    recipe.warmup_epochs = 2;
    recipe.batch_size = 32;
    recipe.optimizer = "adamw";
    recipe.lr = 1e-3;
    recipe.output = output;

    att_status status = att_dataset_open(context, data, NULL, &training);
    if (status == ATT_OK)
        status = att_dataset_open(context, data, &validation_options, &validation);
    if (status == ATT_OK)
        status = open_network(context, att_dataset_class_count(training), &network);
    if (status == ATT_OK) {
        const att_transform_options images = att_network_transform(network);
        att_train_result result;
        status = att_train(att_network_model(network), att_network_weights(network),
                           &(att_train_data){training, validation, &images, &images}, &recipe, &result);
        if (status == ATT_OK)
            printf("%.1f %% correct after epoch %d of %d\n", result.best_metric, result.best_epoch + 1, result.epochs);
    }
    att_network_close(&network);
    att_dataset_close(&validation);
    att_dataset_close(&training);
    return status;
}

int main(int count, char **arguments)
{
    if (count != 3) {
        fprintf(stderr, "usage: train DATA OUTPUT\n");
        return 2;
    }
    att_context *context = NULL;
    att_status status = att_context_create(NULL, &context);
    if (status == ATT_OK)
        status = train(context, arguments[1], arguments[2]);
    if (status != ATT_OK)
        fprintf(stderr, "%s: %s\n", att_status_name(status), context ? att_context_message(context) : "");
    att_context_destroy(&context);
    return status != ATT_OK;
}
