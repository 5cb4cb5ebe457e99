// A model's weights in device memory.
#pragma once

#include <flywheel/flywheel.hpp>

#include <filesystem>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/llama/checkpoint/config.hpp"
#include "apps/llama/checkpoint/matrix.cuh"

namespace llama {

using namespace flywheel;

/// A weight that is no finite number, as the model's files name it.
struct OddWeight {
  std::string tensor;
  int row, column;
  float value;
};

/// Owner of what a Matrix points to.
struct MatrixBuffer {
  Buffer<unsigned char> bytes;
  int rows = 0;
  Matrix matrix{};
  std::optional<OddWeight> odd = {};  // the first such weight of a bf16 matrix, if it has any
};

/// Matrices are [rows, columns]: rows are outputs. Norms and biases are float.
struct LayerWeights {
  MatrixBuffer qkv;                        // [(heads + 2 kv heads) * head_dim, hidden]: queries, keys, values
  MatrixBuffer output;                     // [hidden, heads * head_dim]
  MatrixBuffer gate;                       // [intermediate, hidden]
  MatrixBuffer up;                         // as gate, and of the same type
  MatrixBuffer down;                       // [hidden, intermediate]
  Buffer<float> attention_norm, mlp_norm;  // [hidden]
  Buffer<float> query_norm, key_norm;      // [head_dim]; empty where the family has none
  Buffer<float> qkv_bias;                  // a value for each row of qkv; empty where the family has none
};

/// bf16 weights stay bf16; F32 and F16 become float. Nothing is rounded.
struct Weights {
  MatrixBuffer embedding;  // [vocabulary, hidden]
  MatrixBuffer head;       // [vocabulary, hidden]; empty when it is the embedding
  Buffer<float> final_norm;
  std::vector<LayerWeights> layers;

  const MatrixBuffer& output() const { return head.rows ? head : embedding; }
};

/// Uploads the weights of a Hugging Face model folder. Throws ModelError for files that are missing or
/// damaged, for a tensor that is missing or of another shape than `config` says, and for sizes that are no
/// multiples of 8.
Weights load_weights(Runtime& runtime, const Config& config, const std::filesystem::path& folder);

}  // namespace llama
