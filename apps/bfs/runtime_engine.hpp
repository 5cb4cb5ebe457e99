// The engine on a runtime that somebody has started with the task types of this folder.
#pragma once

#include <flywheel/flywheel.hpp>

#include "apps/bfs/engine.hpp"

namespace bfs {

std::unique_ptr<Engine> make_engine(flywheel::Runtime rt);

}  // namespace bfs
