// The tasks that read weights: embedding, and tiles of matrix-vector products.
//
// A tile is the rows [first, last).
#pragma once

#include "apps/llama/decode/row_products.cuh"
#include "apps/llama/decode/step.cuh"

namespace llama {

/// RMSNorm's weights and epsilon.
struct Norm {
  const float* weights;
  float eps;

  /// The n values of x, normalised, in scratch memory. Collective. Null (and the task fails) if there is too
  /// little. Every tile does this over again: n multiplications are cheaper than a task of their own and its
  /// edge.
  template <class Block>
  FLYWHEEL_TASK const float* apply(Block& block, const float* x, int n) const {
    float* out = block.template scratch<float>(n);
    if (!out) return nullptr;
    const float scale = rms_scale(block, x, n, eps);
    block.for_each(n, [&](int i) { out[i] = x[i] * scale * weights[i]; });
    block.sync();
    return out;
  }
};

/// x = the row of `table` that belongs to the step's token.
struct Embed {
  Matrix table;
  const StepState* state;
  float* x;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    table.visit([&](const auto* weights) {
      const auto* row = weights + static_cast<std::size_t>(state->token) * static_cast<std::size_t>(table.columns);
      block.for_each(table.columns, [&](int i) { x[i] = to_float(row[i]); });
    });
  }
};

/// y = weights * norm(x) + bias.
struct ProjectNormed {
  Matrix weights;
  Norm norm;
  const float* x;
  float* y;
  int first, last;
  const float* bias = nullptr;  // of each row of the matrix, or null

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const float* in = norm.apply(block, x, weights.columns);
    if (!in) return;
    multiply_rows(block, weights, in, first, last, [&](int row, float dot) { y[row] = bias ? dot + bias[row] : dot; });
  }
};

/// The same for the logits, which are not needed while the prompt is being read.
struct ProjectLogits {
  ProjectNormed project;
  const StepState* state;
  Param<RunSettings> settings;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    if (state->position + 1 >= block.param(settings).prompt_count) project(block);
  }
};

/// y += weights * x: a projection back into the residual stream.
struct ProjectResidual {
  Matrix weights;
  const float* x;
  float* y;
  int first, last;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    multiply_rows(block, weights, x, first, last, [&](int row, float dot) { y[row] += dot; });
  }
};

/// y = silu(gate * norm(x)) times up * norm(x): SwiGLU (Shazeer, "GLU Variants Improve Transformer").
struct GateUp {
  Matrix gate, up;
  Norm norm;
  const float* x;
  float* y;
  int first, last;

  template <class Block>
  FLYWHEEL_TASK void operator()(Block& block) const {
    const float* in = norm.apply(block, x, gate.columns);
    if (!in) return;
    multiply_row_pairs(block, gate, up, in, first, last, [&](int row, float g, float u) { y[row] = silu(g) * u; });
  }
};

/// Nothing. It stands between two wide stages, so that m + n edges do for m * n.
struct Join {
  template <class Block>
  FLYWHEEL_TASK void operator()(Block&) const {}
};

}  // namespace llama
