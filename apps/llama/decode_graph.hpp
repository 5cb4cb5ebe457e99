// One decode step as a task graph: a token goes in, the next one comes out.
#pragma once

#include <flywheel/flywheel.hpp>

#include "apps/llama/decode_memory.hpp"
#include "apps/llama/tasks/step.cuh"
#include "apps/llama/weights.hpp"

namespace flywheel::llama {

/*  Embed -> [ ProjectNormed qkv -> Attend -> ProjectResidual -> GateUp -> ProjectResidual ] -> ProjectLogits
 * -> Sample one for each tile     a head        a tile         a tile        a tile            a tile
 *
 *  The part in brackets once for each layer. Repeating the graph writes a text: Sample leaves the next step's
 * input in the state. The memory and the weights must outlive the executable made of the graph.  */
struct DecodeGraph {
  Graph graph;
  Param<RunSettings> settings;
};

/// Products are split in tiles of rows: about one for each worker, and no smaller than pays for a task's
/// hand-over.
DecodeGraph build_decode_graph(const Runtime& runtime, const Config& config, const Weights& weights,
                               const DecodeMemory& memory);

}  // namespace flywheel::llama
