// Matrix products on CPU workers, and what is said of matrices that cannot be multiplied.
#include <flywheel/task.cuh>

#include "support/expect.hpp"
#include "support/gemm_bench.hpp"

using namespace flywheel;
using namespace flywheel::testing;

namespace {
Options cpu_options(std::uint32_t scratch_bytes = kGemmScratchBytes) {
  Options options;
  options.target = Target::cpu;
  options.workers = 2;
  options.scratch_bytes = scratch_bytes;
  return options;
}

/// Times what another product has left in the same place.
struct TimesOther {
  const float* other;
  std::uint32_t pitch;
  FLYWHEEL_TASK float operator()(float sum, int row, int column) const { return sum * other[row * pitch + column]; }
};

/// Makes a product of what a test has changed.
struct Offer {
  Runtime runtime;
  Buffer<Bf16> memory;
  Matrix<const Bf16> a, b;
  Matrix<Bf16> c;
  ProductOptions options{};

  explicit Offer(const Options& how = cpu_options())
      : runtime(start<Gemm<>>(how)),
        memory(runtime.allocate<Bf16>(4096)),
        a{memory.data(), 8, 16},
        b{memory.data(), 24, 16},
        c{memory.data() + 1024, 8, 24} {}
  void make() { Product(runtime, a, b, c, options); }
};
}  // namespace

TEST_CASE("product: CPU workers compute what sums in double say") {
  FLYWHEEL_TEST_SEED(seed);
  Runtime runtime = start<Gemm<AddPlace>, Gemm<JoinPlace>>(cpu_options());
  for (std::uint64_t round = 0; round < 8; ++round) {
    GemmBench<AddPlace>(runtime, GemmCase(mix(seed, round), 300, 200, false)).check();
    GemmBench<JoinPlace>(runtime, GemmCase(mix(seed, ~round), 300, 200, true)).check();
  }
}

TEST_CASE("product: matrices that do not fit are refused by name") {
  Offer offer;
  SECTION("lengths") {
    offer.b.columns = 8;
    check_says(error_of<UsageError>([&] { offer.make(); }), {"A 8 x 16 and B 24 x 8"});
  }
  SECTION("the size of C") {
    offer.c.columns = 23;
    check_says(error_of<UsageError>([&] { offer.make(); }), {"is 8 x 24, and C is 8 x 23"});
  }
  SECTION("no rows") {
    offer.a.rows = 0;
    check_says(error_of<UsageError>([&] { offer.make(); }), {"matrix A of a product is 0 x 16"});
  }
  SECTION("rows that overlap") {
    offer.c.pitch = 20;
    check_says(error_of<UsageError>([&] { offer.make(); }), {"matrix C of a product has a pitch of 20 and 24 columns"});
  }
  SECTION("rows that cannot be copied") {
    offer.b.pitch = 17;
    check_says(error_of<UsageError>([&] { offer.make(); }), {"multiples of 16 bytes (8 values)"});
  }
  SECTION("an address that cannot be copied from") {
    offer.a.values += 1;
    check_says(error_of<UsageError>([&] { offer.make(); }), {"matrix A of a product"});
  }
  SECTION("no memory") {
    offer.c.values = nullptr;
    check_says(error_of<GraphError>([&] { offer.make(); }), {"matrix C of a product is a null pointer"});
  }
  SECTION("tiles that there are not") {
    offer.options.tile_columns = 32;
    check_says(error_of<UsageError>([&] { offer.make(); }), {"16, 64, 128 or 256"});
  }
  SECTION("too many tiles") {
    offer.options.tiles_each = 17;
    check_says(error_of<UsageError>([&] { offer.make(); }), {"tiles_each is 17", "at most 16 tiles"});
  }
  SECTION("rounded sums that are to be added up") {
    offer.options.add = true;
    check_says(error_of<UsageError>([&] { offer.make(); }), {"ProductOptions::add", "Matrix<float>"});
  }
  SECTION("rounded sums whose parts are to be left") {
    offer.options.leave_parts = true;
    check_says(error_of<UsageError>([&] { offer.make(); }), {"ProductOptions::leave_parts", "Matrix<float>"});
  }
  SECTION("too many parts") {
    offer.options.splits = 65;
    check_says(error_of<UsageError>([&] { offer.make(); }), {"at most 64 parts"});
  }
}

TEST_CASE("product: too little scratch memory is told with the figure to set") {
  Offer offer(cpu_options(4096));
  check_says(error_of<CapacityError>([&] { offer.make(); }), {"set Options::scratch_bytes to flywheel::kGemmScratchBytes"});
}

TEST_CASE("product: one that follows another tile by tile finds what that has stored") {
  FLYWHEEL_TEST_SEED(seed);
  Runtime runtime = start<Gemm<>, Gemm<TimesOther>>(cpu_options());
  std::mt19937_64 random(seed);
  for (const std::uint32_t splits : {1u, 2u}) {
    const std::uint32_t m = 200 + random() % 200, n = 200 + random() % 200, k = 64 * splits;
    const auto a = runtime.upload(std::vector<Bf16>(std::size_t{m} * k, Bf16::nearest(1)));
    const auto b = runtime.upload(std::vector<Bf16>(std::size_t{n} * k, Bf16::nearest(2)));
    const auto c = runtime.allocate<float>(std::size_t{m} * n);
    const ProductOptions cut{.tile_columns = 64, .splits = splits};
    const Product first(runtime, Matrix{a.data(), m, k}, Matrix{b.data(), n, k}, Matrix{c.data(), m, n}, cut);
    const Product second(runtime, Matrix{a.data(), m, k}, Matrix{b.data(), n, k}, Matrix{c.data(), m, n}, cut);
    Graph graph;
    const auto stored = first.add_to(graph);
    std::uint32_t asked = 0;
    const auto nothing = [&](std::uint32_t i, std::uint32_t all) {
      CHECK(i == asked++);
      CHECK(all == second.part_tasks());
      return After{};
    };
    CHECK(second.add_each(graph, nothing, TimesOther{c.data(), n}, stored).size() == stored.size());
    CHECK(asked == second.part_tasks());
    runtime.submit(runtime.load(graph)).wait();
    REQUIRE(second.splits() == splits);
    const float product = 2.f * static_cast<float>(k);
    CHECK((c.read() == std::vector<float>(std::size_t{m} * n, product * product)));
  }
}

TEST_CASE("product: a batch has no sums of parts") {
  Offer offer;
  offer.options.splits = 1;
  CHECK(Product(offer.runtime, offer.a, offer.b, offer.c, offer.options).tasks().size() == 1);
  offer.a.columns = offer.b.columns = 128;
  offer.options.splits = 2;
  const Product split(offer.runtime, offer.a, offer.b, offer.c, offer.options);
  CHECK(split.splits() == 2);
  check_says(error_of<UsageError>([&] { (void)split.tasks(); }), {"use add_to(graph)"});
}
