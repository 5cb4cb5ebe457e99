// One decode step as a task graph: a token goes in, the next one comes out.
#pragma once

#include <flywheel/flywheel.hpp>

#include "apps/llama/checkpoint/weights.hpp"
#include "apps/llama/decode/step.cuh"
#include "apps/llama/portable/memory.hpp"

namespace llama {

using namespace flywheel;

/*  Embed -> [ ProjectNormed qkv -> Attend -> ProjectResidual -> GateUp -> ProjectResidual ] -> ProjectLogits
 * -> Sample one for each tile     a head        a tile         a tile        a tile            a tile
 *
 *  The part in brackets once for each layer. Repeating the graph writes a text: Sample leaves the next step's
 * input in the state. The memory and the weights must outlive the executable made of the graph.  */
struct PortableGraph {
  Graph graph;
  Param<RunSettings> settings;
};

/// Products are split in tiles of rows: about one for each worker, and no smaller than pays for a task's
/// hand-over.
PortableGraph build_portable_graph(const Runtime& runtime, const Config& config, const Weights& weights,
                                   const PortableMemory& memory);

/// Shared memory for block.scratch() that the tasks need.
std::uint32_t portable_scratch_bytes(const Config& config, int context);

}  // namespace llama
