// How products are cut: each tile, and each step of it, belongs to one task.
#include "host/gemm/product_plan.hpp"
#include "support/internals.hpp"

#include <set>

#include "catch.hpp"
#include "runtime/gemm/product_record.hpp"
#include "support/seed.hpp"

using namespace flywheel;
using namespace flywheel::testing;

TEST_CASE("product plan: the tasks of any product cover it once") {
  FLYWHEEL_TEST_SEED(seed);
  Random random(seed);
  for (int round = 0; round < 300; ++round) {
    const auto draw = [&](std::uint32_t most) { return 1 + static_cast<std::uint32_t>(random() % most); };
    const ProductShape shape{draw(5000), draw(5000), draw(3000)};
    const std::uint32_t workers = draw(140);
    ProductOptions options;
    if (round % 3 == 0) options.splits = draw(8);
    options.alone = round % 2;
    const ProductPlan plan = plan_product(shape, workers, kGemmScratchBytes, options);
    ProductRecord record{};
    record.left.rows = plan.transposed ? shape.columns : shape.rows;
    record.right.rows = plan.transposed ? shape.rows : shape.columns;
    record.depth = shape.depth;
    cut_product(record, plan, workers);
    CHECK(plan.parts_each <= kMostPartsEach);
    CHECK((plan.splits == 1 || plan.parts_each == 1));
    std::set<std::uint32_t> parts;
    std::set<std::pair<std::uint32_t, std::uint32_t>> corners;
    for (std::uint32_t task = 0; task < record.tasks(); ++task) {
      CHECK(record.part_of(task, 0) < record.parts());  // none is empty
      for (std::uint32_t j = 0; j < record.parts_each; ++j)
        if (record.part_of(task, j) < record.parts()) CHECK(parts.insert(record.part_of(task, j)).second);
    }
    REQUIRE(parts.size() == record.parts());
    std::uint32_t steps = 0;
    for (std::uint32_t part = 0; part < record.parts(); ++part) {
      const TilePlace place = record.place(part);
      steps += place.steps;
      CHECK(place.steps > 0);
      CHECK(place.row < record.left.rows);
      CHECK(place.column < record.right.rows);
      corners.insert({place.row, place.column});
    }
    CHECK(corners.size() == record.tiles());
    CHECK(steps == record.steps * record.tiles());
  }
}

TEST_CASE("product plan: a large product keeps all workers, and a product of few rows has tiles of few columns") {
  const ProductPlan large = plan_product({4096, 4096, 4096}, 132, kGemmScratchBytes, {});
  CHECK(large.tile_columns == 256);
  CHECK(large.parts_each == 4);
  const ProductPlan few = plan_product({16, 4096, 14336}, 132, kGemmScratchBytes, {});
  CHECK(few.transposed);
  CHECK(few.tile_columns == 16);
  CHECK(few.splits > 1);
}

TEST_CASE("product plan: beside other work a product takes large tiles, whole ones and several a task") {
  const ProductPlan plan = plan_product({1000, 2048, 2048}, 132, kGemmScratchBytes, {.alone = false});
  CHECK(plan.tile_columns == 256);
  CHECK(plan.splits == 1);
  CHECK(plan.parts_each == 4);
}
