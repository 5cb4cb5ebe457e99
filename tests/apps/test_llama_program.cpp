// The program `llama` and its arguments: what it says of those that cannot be served, and what it does if it is told nothing.
#include "llama_program_support.hpp"

namespace llama {
namespace {

constexpr const char* kNoGpu = "CUDA_VISIBLE_DEVICES= FLYWHEEL_TARGET=gpu";

std::string bench(const std::string& more) { return "bench --device cpu --model apps/llama/model " + more; }

}  // namespace

TEST_CASE("program: a number out of range is told with the range") {
  check_refused("generate --tokens 0", {"--tokens: must be 1 or more, not 0"});
  check_refused("generate --tokens many", {"--tokens: must be 1 or more, not many"});
  check_refused("generate --workers 0", {"--workers: must be 1 or more, not 0"});
  check_refused("generate --context 0", {"--context: must be 1 or more, not 0"});
  check_refused("generate --temperature -1", {"--temperature: must be 0 or more, not -1"});
  check_refused("generate --temperature nan", {"--temperature: must be 0 or more, not nan"});
  check_refused("generate --seed -1", {"--seed: must be 0 or more, not -1"});
  check_refused("generate --device cpu --temperature inf", {"the temperature must be", "finite"});
  check_refused("generate --tokens 4294967296", {"--tokens = 4294967296"});
  check_refused("logits --ids 1 --context -3", {"--context: must be 1 or more, not -3"});
  check_refused("bench --runs -1", {"--runs: must be 0 or more, not -1"});
  check_refused("soak --length 0", {"--length: must be 1 or more, not 0"});
}

TEST_CASE("program: a complaint leads to the help of the command that was used") {
  check_refused("bench --batch 3", {"llama bench --help tells"}, "generate");
  check_refused("soak --length 4294967296", {"--length = 4294967296", "llama soak --help tells"}, "generate");
  check_refused("generate --what", {"--what", "llama generate --help tells"});
  check_refused("logits", {"--ids", "llama logits --help tells"}, "generate");
}

TEST_CASE("program: a command that there is not is named, with those that there are") {
  const std::string_view all = "choose generate, chat, logits, info, bench or soak";
  check_refused("foo", {"there is no command 'foo'", all, "llama --help"});
  check_refused("--tokens 3", {"there is no command '--tokens'", all});
  check_refused("", {"there is no command", all});
  CHECK(ask_program("--help").code == 0);
  CHECK(mentions(ask_program("bench --help", "").text, {"78 for 1 to 4 texts, 52 for more"}));
}

TEST_CASE("program: what the library refuses is told in the program's words") {
  for (const char* const command : {"generate", "generate --tuned", "bench --model apps/llama/model"})
    check_refused(std::string(command) + " --device cpu --workers 100000", {"--workers is 100000", "at most 1024"},
                  "Options::");
  check_refused(bench("--pages 1"), {"--pages is 1", "choose 2 to 16"}, "Options::");
  check_refused(bench("--pace -1"), {"--pace is -1", "0 for no limit"}, "Options::");
}

TEST_CASE("program: memory that no machine has") {
  const TempFolder folder;
  std::filesystem::copy(kModelFolder, folder.path(), std::filesystem::copy_options::recursive);
  nlohmann::json config = read_json(kModelFolder / "config.json");
  config.update({{"num_hidden_layers", 1 << 18}, {"intermediate_size", 1 << 20}});
  folder.write("config.json", config.dump());
  const std::string with_model = " --device cpu --model " + folder.path().string();
  for (const std::string command : {"generate --tuned", "bench --no-peers", "soak"})
    check_refused(command + with_model, {"no memory for", "lower --context, or take a smaller model"}, "Options",
                  "ASAN_OPTIONS=allocator_may_return_null=1");
}

TEST_CASE("program: without a GPU who asked for one is told") {
  for (const char* const command : {"generate", "generate --tuned", "bench --model apps/llama/model"}) {
    check_refused(command, {"cannot run on a GPU", "Unset FLYWHEEL_TARGET"}, "Target::", kNoGpu);
    check_refused(std::string(command) + " --device gpu", {"cannot run on a GPU", "Use --device auto"},
                  "Target::", "CUDA_VISIBLE_DEVICES=");
  }
}

TEST_CASE("program: a word in the environment that means nothing is told") {
  const std::pair<std::string, std::string> words[] = {
      {"FLYWHEEL_TARGET", "tpu"}, {"FLYWHEEL_LOG", "eror"}, {"FLYWHEEL_MODE", "train"}};
  for (const auto& [name, word] : words)
    for (const char* const command : {"generate", "generate --tuned", "bench --model apps/llama/model"})
      check_refused(command, {name + " is '" + word + "'"}, "", "CUDA_VISIBLE_DEVICES= " + name + "=" + word);
}

TEST_CASE("program: a model's file in place of its folder is told, and an empty FLYWHEEL_MODEL names none") {
  const std::string file = kModelFolder / "model.safetensors";
  for (const char* const command : {"generate", "info", "bench"})
    check_refused(std::string(command) + " --device cpu --model " + file, {file, "is a file", "name the folder"});
  check_refused("generate --device cpu", {file, "is a file", "name the folder"}, "", "FLYWHEEL_MODEL=" + file);
  CHECK(ask_program("generate --device cpu --tokens 1", "2>/dev/null", "FLYWHEEL_MODEL=").code == 0);
}

TEST_CASE("program: bench and soak refuse positions that the model was not made for") {
  check_refused(bench("--runs 1 --tokens 8 --context 4294967290"), {"--context 4294967290 and --tokens 8", "512"});
  check_refused(bench("--tokens 4294967290 --context 10"), {"--context 10 and --tokens 4294967290", "512"});
  check_refused("soak --device cpu --model apps/llama/model --tokens 40 --length 10 --context 4294967290",
                {"--context 4294967290 and --length 10", "512"});
  check_refused(bench("--portable-check 4294967290"), {"--portable-check 4294967290", "512"});
  check_refused(bench("--portable-context 4294967290"), {"--portable-context 4294967290", "512"});
  check_refused(bench("--context 32 1024"), {"--context 1024", "512"});
}

TEST_CASE("program: bench refuses peers without kernels, folders that are not there, and models that are not") {
  check_refused(bench("--peer-shape 0 4"), {"0 blocks an SM", "1 to 3", "--peer-shape"});
  check_refused(bench("--peer-shape 1 65"), {"65 pages", "0 to 64", "--peer-shape"});
  check_refused(bench("--trace /nonexistent/trace.json"), {"--trace", "the folder /nonexistent does not exist"});
  check_refused(bench("--schedule /nonexistent/schedule"), {"--schedule", "the folder /nonexistent does not exist"});
  check_refused("bench --device cpu --model /nonexistent", {"/nonexistent"}, "filesystem error");
}

TEST_CASE("program: bench tells of a folder for results that cannot be made before it measures") {
  const Answer answer = ask_program(bench("--runs 1 --tokens 8 --out /dev/null/below/rows.json"));
  INFO(answer.text);
  CHECK(answer.code == 1);
  CHECK(mentions(answer.text, {"cannot create /dev/null/below", "--out"}));
  CHECK_FALSE(mentions(answer.text, {"tasks for"}));
}

TEST_CASE("program: bench measures a small model from where it has room, if it is not told where") {
  const Answer answer = ask_program(bench("--runs 1 --tokens 8"), "2>/dev/null");
  INFO(answer.text);
  CHECK(answer.code == 0);
  CHECK(mentions(answer.text, {"decode.model.b1.c32"}));
  CHECK_FALSE(mentions(answer.text, {"decode.model.b1.c1024"}));
}

TEST_CASE("program: output that cannot be written is a failure") {
  const std::string generate = "generate --device cpu --tokens 3";
  for (const std::string& command : {generate, generate + " --json", std::string("info --device cpu"), std::string("--help")}) {
    const Answer answer = ask_program(command, "2>&1 >/dev/full");
    INFO(command << ": " << answer.text);
    CHECK(answer.code == 1);
    CHECK(mentions(answer.text, {"cannot write all of the output"}));
  }
}

}  // namespace llama
