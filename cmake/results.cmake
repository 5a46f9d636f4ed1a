# Compiles the recipes on which published results are judged into the library (lab/papers/results/recipes.h). Run as a
# script (cmake -P), this file writes the C source; included, it adds that step to att_results.
cmake_minimum_required(VERSION 3.22)

set(ATT_RESULTS_RECIPES cifar10-quick attention-cnn-quick fashion-vit-quick upernet-camvid results/context)

if(CMAKE_SCRIPT_MODE_FILE)
  # -DFOLDER=folder -DOUT=file
  set(c "#include \"lab/papers/results/recipes.h\"\n")
  foreach(recipe ${ATT_RESULTS_RECIPES})
    get_filename_component(name ${recipe} NAME)
    string(MAKE_C_IDENTIFIER ${name} id)
    file(READ ${FOLDER}/${recipe}.yaml text)
    string(REGEX REPLACE "([\\\\\"])" "\\\\\\1" text "${text}")
    string(REPLACE "\n" "\\n\"\n    \"" text "${text}")
    string(APPEND c "\nconst char att_results_recipe_${id}[] =\n    \"${text}\";\n")
  endforeach()
  file(WRITE ${OUT} "${c}")
  return()
endif()

set(recipes_c ${PROJECT_BINARY_DIR}/results_recipes.c)
list(TRANSFORM ATT_RESULTS_RECIPES REPLACE "(.+)" "${PROJECT_SOURCE_DIR}/recipes/\\1.yaml" OUTPUT_VARIABLE recipes)
add_custom_command(
  OUTPUT ${recipes_c}
  COMMAND ${CMAKE_COMMAND} -DFOLDER=${PROJECT_SOURCE_DIR}/recipes -DOUT=${recipes_c} -P ${CMAKE_CURRENT_LIST_FILE}
  DEPENDS ${recipes} ${CMAKE_CURRENT_LIST_FILE}
  VERBATIM)
target_sources(att_results PRIVATE ${recipes_c})
