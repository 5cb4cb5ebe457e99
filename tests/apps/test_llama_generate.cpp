// Generator, and the program's answers to wrong input.
#include "catch.hpp"
#include "llama_program_support.hpp"
#include "llama_run_support.hpp"

namespace llama {
namespace {

const std::vector<std::uint32_t> kPrompt{50, 47, 200};

Request greedy(std::uint32_t tokens) { return {.prompt = kPrompt, .tokens = tokens, .sampling = {}, .stop_at_end = false}; }

TEST_CASE("greedy text is the likeliest token after each position") {
  Runtime runtime = cpu_runtime();
  PortableGenerator generator(runtime, kModelFolder);
  const auto tokens = write_tokens(generator, greedy(40));
  REQUIRE(tokens.size() == 40);
  CHECK(write_tokens(generator, greedy(40)) == tokens);
  std::vector<std::uint32_t> ids = kPrompt;
  ids.insert(ids.end(), tokens.begin(), tokens.end() - 1);
  const auto logits = generator.logits(ids);
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto& l = logits[kPrompt.size() - 1 + i];
    CHECK(tokens[i] == static_cast<std::uint32_t>(std::max_element(l.begin(), l.end()) - l.begin()));
  }
}

TEST_CASE("a seed names a text, whoever works on it") {
  Request request = greedy(60);
  request.sampling = {.temperature = 1, .top_p = 0.95f, .top_k = 50, .seed = 9};
  std::vector<std::vector<std::uint32_t>> texts;
  for (const std::uint32_t workers : {1u, 3u}) {
    Runtime runtime = cpu_runtime(workers);
    PortableGenerator generator(runtime, kModelFolder);
    texts.push_back(write_tokens(generator, request));
  }
  CHECK(texts[0] == texts[1]);
  Runtime runtime = cpu_runtime();
  PortableGenerator generator(runtime, kModelFolder);
  request.sampling.seed = 10;
  CHECK(write_tokens(generator, request) != texts[0]);
}

TEST_CASE("a text may fill the context to its end") {
  Runtime runtime = cpu_runtime();
  PortableGenerator generator(runtime, kModelFolder, 70);
  CHECK(generator.context() == 70);
  CHECK(write_tokens(generator, greedy(68)).size() == 68);
}

TEST_CASE("requests that cannot be served say why") {
  Runtime runtime = cpu_runtime();
  PortableGenerator generator(runtime, kModelFolder, 64);
  const auto error_of = [&](const Request& request) { return request_error_of([&] { write_tokens(generator, request); }); };
  const auto prompt = [](std::vector<std::uint32_t> ids) { return Request{ids, 1, {}, true}; };
  CHECK(mentions(error_of(prompt({})), {"no tokens"}));
  CHECK(mentions(error_of(prompt({1024})), {"1024", "0 to 1023"}));
  CHECK(mentions(error_of(prompt(std::vector<std::uint32_t>(65, 1))), {"65 tokens", "64", "shorten"}));
  CHECK(mentions(error_of(greedy(63)), {"context of 64", "at most 62"}));
  CHECK(mentions(error_of(greedy(0)), {"1 or more"}));
  Request request = greedy(1);
  request.sampling.top_p = 0;
  CHECK(mentions(error_of(request), {"top-p"}));
  request.sampling = {.temperature = -1};
  CHECK(mentions(error_of(request), {"temperature"}));
  CHECK(mentions(request_error_of([&] { PortableGenerator(runtime, kModelFolder, 513); }), {"513", "512"}));
  CHECK(write_tokens(generator, greedy(2)).size() == 2);
}

TEST_CASE("what a callback throws ends the run, and the next text is whole") {
  Runtime runtime = cpu_runtime();
  PortableGenerator generator(runtime, kModelFolder);
  const auto tokens = write_tokens(generator, greedy(10));
  int seen = 0;
  CHECK_THROWS_AS(generator.generate(greedy(400),
                                     [&](std::uint32_t) {
                                       if (++seen == 3) throw std::out_of_range("enough");
                                     }),
                  std::out_of_range);
  CHECK(write_tokens(generator, greedy(10)) == tokens);
}

TEST_CASE("models whose weights do not fit their config are refused") {
  const TempFolder folder;
  const auto model = folder.path() / "model";
  std::filesystem::copy(kModelFolder, model);
  Runtime runtime = cpu_runtime();
  const auto error_with = [&](const char* key, int value) {
    nlohmann::json config = read_json(kModelFolder / "config.json");
    config[key] = value;
    folder.write("model/config.json", config.dump());
    return model_error_of([&] { PortableGenerator(runtime, model); });
  };
  CHECK(mentions(error_with("num_hidden_layers", 7), {"model.layers.6", "no tensor"}));
  CHECK(mentions(error_with("vocab_size", 1000), {"model.embed_tokens.weight", "[1024, 256]", "[1000, 256]"}));
  CHECK(mentions(error_with("intermediate_size", 577), {"intermediate_size", "multiple of 8"}));
}

std::string times(int count, const std::string& text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

nlohmann::json json_of_program(const std::string& arguments) {
  return nlohmann::json::parse(ask_program(arguments, "2>/dev/null").text);
}

TEST_CASE("the program writes several texts at once, each as alone with a seed of its own") {
  const std::string generate = "generate --device cpu --tuned --json --tokens 12";
  const nlohmann::json several = json_of_program(generate + " --seed 5 --prompt ROMEO: --prompt 'The king' --prompt ROMEO:");
  REQUIRE(several.at("texts").size() == 3);
  const nlohmann::json first = json_of_program(generate + " --seed 5 --prompt ROMEO:");
  const nlohmann::json last = json_of_program(generate + " --seed 7 --prompt ROMEO:");
  CHECK(several["texts"][0]["tokens"] == first.at("tokens"));
  CHECK(several["texts"][1]["text"].get<std::string>().starts_with("The king"));
  CHECK(several["texts"][2]["tokens"] == last.at("tokens"));
  CHECK(several["texts"][2]["text"] == last.at("text"));
  CHECK(several["texts"][2]["seed"] == 7);
  CHECK(first["tokens"] != last["tokens"]);
}

TEST_CASE("the program shows several texts one below the other") {
  const Answer answer = ask_program("generate --device cpu --tuned --tokens 3 --prompt ROMEO: --prompt JULIET:", "2>&1");
  INFO(answer.text);
  CHECK(answer.code == 0);
  const std::size_t first = answer.text.find("--- text 1 of 2\nROMEO:"),
                    second = answer.text.find("\n--- text 2 of 2\nJULIET:");
  CHECK(first == 0);
  CHECK(second != std::string::npos);
  CHECK(mentions(answer.text, {"6 tokens of 2 texts in "}));
}

TEST_CASE("the program takes prompts from a file, as many as there are, by either decode") {
  const TempFolder folder;
  folder.write("prompts.txt", "ROMEO:\n\nJULIET:\nROMEO:" + times(8, "\nThe king") + "\n");
  const std::string given = " --device cpu --json --tokens 6 --seed 5 --prompts " + (folder.path() / "prompts.txt").string();
  const nlohmann::json one = json_of_program("generate --device cpu --tuned --json --tokens 6 --seed 7 --prompt ROMEO:");
  for (const std::string how : {"generate --tuned", "generate --tuned --places 2", "generate"}) {
    INFO(how);
    const nlohmann::json texts = json_of_program(how + given).at("texts");
    REQUIRE(texts.size() == 11);
    CHECK(texts[1].at("prompt") == "JULIET:");
    CHECK(texts[2].at("prompt") == "ROMEO:");
    CHECK(texts[10].at("seed") == 15);
    CHECK(texts[10].at("text").get<std::string>().starts_with("The king"));
    if (how != "generate") CHECK(texts[2].at("tokens") == one.at("tokens"));
  }
}

TEST_CASE("the program answers wrong input with one sentence and exit code 2") {
  check_refused("generate --model /nonexistent", {"/nonexistent"});
  check_refused("generate --device tpu", {"--device"});
  check_refused("generate --device cpu --tokens 600", {"600", "512"});
  check_refused("generate --device cpu --top-p 1.5", {"top-p"});
  check_refused("generate --device cpu --context 1000", {"1000", "512"});
  check_refused("generate --device cpu --prompt \"$(yes word | head -n 800)\"", {"shorten the prompt"});
  check_refused("generate --device cpu --tuned --prompt a --prompt b --tokens 600", {"text 1 of 2", "600", "512"});
  check_refused("generate --device cpu --tuned --places 3", {"--places", "3"});
  check_refused("generate --device cpu --places 2", {"--places", "one text at a time", "--tuned"});
  check_refused("generate --device cpu --prompts /nonexistent", {"--prompts /nonexistent", "cannot be read"});
  check_refused("generate --device cpu --prompts /dev/null", {"--prompts /dev/null", "no prompt"});
  check_refused("generate --device cpu --tuned --prompt a b", {"not expected: b"});
  check_refused("logits --device cpu --ids 5000", {"5000", "1023"});
}

TEST_CASE("the program refuses a model of too many heads, and one nested too deep") {
  const TempFolder folder;
  const auto model = folder.path() / "model";
  std::filesystem::copy(kModelFolder, model);
  nlohmann::json config = read_json(kModelFolder / "config.json");
  for (const auto& [heads, kv_heads] : {std::pair(65537, 1), std::pair(65536, 65536)}) {
    config.update({{"num_attention_heads", heads}, {"num_key_value_heads", kv_heads}, {"head_dim", 8}});
    folder.write("model/config.json", config.dump());
    for (const char* tuned : {"", " --tuned"})
      check_refused("generate --device cpu --model " + model.string() + tuned, {"num_attention_heads", "65535"});
  }
  folder.write("model/tokenizer.json", "{\"a\":" + times(20'000, "[") + times(20'000, "]") + "}");
  check_refused("generate --device cpu --model " + model.string(), {"tokenizer.json", "nested"});
}

TEST_CASE("the program refuses a truncated model") {
  const TempFolder folder;
  const auto model = folder.path() / "model";
  std::filesystem::copy(kModelFolder, model);
  std::filesystem::resize_file(model / "model.safetensors", 1'000'000);
  check_refused("generate --device cpu --model " + model.string(), {"model.safetensors"});
}

TEST_CASE("the program tells how long a text took") {
  const Answer answer = ask_program("generate --device cpu --tokens 5");
  CHECK(answer.code == 0);
  CHECK(mentions(answer.text, {"5 tokens in ", "tokens/s", "CPU"}));
}

}  // namespace
}  // namespace llama
