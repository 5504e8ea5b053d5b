/* SPDX-License-Identifier: Apache-2.0 */
/* The operators of ai.onnx.ml on numbers: sorted by name. */
#include "graph/op_list.h"

#define FEATURES (BIT(F32) | BIT(F64) | BIT(I32) | BIT(I64))

static const rnl_op_schema *const rows[] = {
    ROW("ArrayFeatureExtractor", 1, 5, 2, 2, 1, FEATURES, 0, rnl_infer_feature_extractor, NULL, ""),
    ROW("Binarizer", 1, 5, 1, 1, 1, FEATURES, 0, rnl_infer_unary, NULL, " threshold "),
    ROW("LabelEncoder", 2, 5, 1, 1, 1, FEATURES | BIT(I16), 0, rnl_infer_label_encoder, NULL,
        " default_float default_int64 default_string default_tensor keys_floats keys_int64s keys_strings keys_tensor "
        "values_floats values_int64s values_strings values_tensor "),
    ROW("LinearClassifier", 1, 5, 1, 1, 2, FEATURES, 0, rnl_infer_linear_classifier, NULL,
        " classlabels_ints classlabels_strings coefficients intercepts multi_class post_transform "),
    ROW("LinearRegressor", 1, 5, 1, 1, 1, FEATURES, 0, rnl_infer_linear_regressor, NULL,
        " coefficients intercepts post_transform targets "),
    ROW("Normalizer", 1, 5, 1, 1, 1, FEATURES, 0, rnl_infer_normalizer, NULL, " norm "),
    ROW("Scaler", 1, 5, 1, 1, 1, FEATURES, 0, rnl_infer_scaler, NULL, " offset scale "),
    ROW("TreeEnsemble", 5, 5, 1, 1, 1, BIT(F16) | BIT(F32) | BIT(F64), 0, rnl_infer_trees, NULL,
        " aggregate_function leaf_targetids leaf_weights membership_values n_targets nodes_falseleafs "
        "nodes_falsenodeids "
        "nodes_featureids nodes_hitrates nodes_missing_value_tracks_true nodes_modes nodes_splits nodes_trueleafs "
        "nodes_truenodeids post_transform tree_roots "),
    ROW("TreeEnsembleRegressor", 1, 5, 1, 1, 1, FEATURES, 0, rnl_infer_tree_regressor, NULL,
        " aggregate_function base_values base_values_as_tensor n_targets nodes_falsenodeids nodes_featureids "
        "nodes_hitrates nodes_hitrates_as_tensor nodes_missing_value_tracks_true nodes_modes nodes_nodeids "
        "nodes_treeids "
        "nodes_truenodeids nodes_values nodes_values_as_tensor post_transform target_ids target_nodeids target_treeids "
        "target_weights target_weights_as_tensor "),
};

const rnl_op_domain rnl_op_domain_ml = {"ai.onnx.ml", rows, sizeof rows / sizeof *rows};
