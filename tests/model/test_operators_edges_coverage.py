# SPDX-License-Identifier: Apache-2.0
"""Every operator that the library lists is tested at the edges of its types: by a row in edge_*.py or test_operators_edges*.py, or
by the test that is named here."""

import glob
import os
import re
import unittest

import edges

HERE = os.path.dirname(os.path.abspath(__file__))
# Tests of their own that compare with float64 or exact numbers: odd sizes, NaN, infinities, limits of integers.
ELSEWHERE = {
    "model/test_operators_det.py": "Det",
    "model/test_operators_quantize.py": "QuantizeLinear DequantizeLinear",
    "model/test_operators_quantised.py": "DynamicQuantizeLinear QLinearSigmoid QLinearSoftmax",
    "model/test_operators_indexing.py": "ArgMax ArgMin CumProd CumSum Hardmax NonMaxSuppression TopK",
    "model/test_operators_types.py": "BitCast Cast CastLike",
    "model/test_operators_constants.py": "Constant",
    "model/test_operators_ml.py": "ArrayFeatureExtractor Binarizer LabelEncoder LinearClassifier LinearRegressor "
                                  "Normalizer Scaler TreeEnsemble TreeEnsembleRegressor",
    "model/test_operators_random.py": "Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike",
    "model/test_operators_ngrams.py": "TfIdfVectorizer",
    "model/test_operators_transformer.py": "FlexAttention",
    "model/test_segments.py": "If Loop Scan",
    "device/test_op_reduce.c": "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd "
                               "ReduceSum ReduceSumSquare",
    "device/test_op_softmax.c": "LogSoftmax Softmax",
    "device/test_op_map.c": "Add And BitShift BitwiseAnd BitwiseOr BitwiseXor Clip Div Equal Greater GreaterOrEqual Less "
                            "LessOrEqual Max Mean Min Mod Mul Or PRelu Pow Sub Sum SwiGLU Where Xor",
}


class CoverageTest(unittest.TestCase):
    def test_every_operator(self):
        tables = glob.glob(os.path.join(HERE, "edge_*.py")) + glob.glob(os.path.join(HERE, "test_operators_edges*.py"))
        named = set()
        for path in tables:
            if path != os.path.abspath(__file__):
                with open(path, encoding="utf-8") as file:
                    named |= set(re.findall(r'"([A-Z][A-Za-z0-9]+)"', file.read()))
        for path, operators in ELSEWHERE.items():
            self.assertTrue(os.path.exists(os.path.join(HERE, "..", path)), path)
            named |= set(operators.split())
        listed = {operator.split(".")[0] for _, operator in edges.claimed(edges.runnel.Library())}
        self.assertEqual(sorted(listed - named), [], "operators without a test at the edges of their types")


if __name__ == "__main__":
    unittest.main(verbosity=2)
