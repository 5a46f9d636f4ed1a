#include "lab/runs/recipe/recipe.h"

#include "base/core/error.h"
#include "base/flags/flags.h"

att_status att_recipe_default(att_context *context, att_recipe *recipe)
{
    att_flags *flags = NULL;
    ATT_TRY(att_recipe_flags(context, &flags));
    att_flags_default(flags, recipe);
    att_flags_destroy(&flags);
    return ATT_OK;
}

static att_status read_values(const att_flags *flags, const char *path, const att_yaml *yaml, att_recipe *recipe)
{
    ATT_TRY(att_flags_read(flags, path, yaml, recipe, NULL));
    return att_flags_complete(flags, recipe);
}

att_status att_recipe_read(att_context *context, const char *path, att_recipe *recipe, att_yaml **yaml)
{
    att_flags *flags = NULL;
    att_yaml *read = NULL;
    att_recipe filled = *recipe;
    ATT_TRY(att_recipe_flags(context, &flags));
    att_status status = att_yaml_read(context, path, &read);
    if (status == ATT_OK)
        status = read_values(flags, path, read, &filled);
    att_flags_destroy(&flags);
    if (status != ATT_OK) {
        att_yaml_destroy(&read);
        return status;
    }
    *recipe = filled;
    *yaml = read;
    return ATT_OK;
}

att_status att_recipe_write(att_context *context, const char *path, const att_recipe *recipe)
{
    att_flags *flags = NULL;
    ATT_TRY(att_recipe_flags(context, &flags));
    att_status status = att_flags_write(flags, recipe, path);
    att_flags_destroy(&flags);
    return status;
}
