#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <map>
#include <string>

#include "apps/llama/commands.hpp"
#include "apps/llama/files/error.hpp"

namespace {

using namespace flywheel;
using namespace flywheel::llama;

constexpr int kFailed = 1;
constexpr int kWrongInput = 2;

constexpr const char* kExamples =
    "Examples:\n"
    "  llama generate --prompt \"JULIET:\" --tokens 100\n"
    "  llama generate --model ~/Llama-3.2-1B --prompt \"Once upon a time\" --greedy\n"
    "  llama info\n";

void add_setup(CLI::App& command, Setup& setup) {
  static const std::map<std::string, Target> targets{
      {"auto", Target::automatic}, {"gpu", Target::gpu}, {"cpu", Target::cpu}};
  command.add_option("--model", setup.model,
                     "Hugging Face model folder (default: the shipped one, or FLYWHEEL_MODEL)");
  command
      .add_option_function<std::string>(
          "--device", [&setup](const std::string& name) { setup.target = targets.at(name); },
          "auto, gpu or cpu")
      ->check(CLI::IsMember({"auto", "gpu", "cpu"}))
      ->default_str("auto");
  command
      .add_option("--context", setup.context,
                  "Positions to have room for (default: the model's, at most 4096)")
      ->check(CLI::PositiveNumber);
}

void add_generate(CLI::App& app, Setup& setup, TextRequest& request) {
  CLI::App& command = *app.add_subcommand("generate", "Write a text");
  add_setup(command, setup);
  command.add_option("--prompt", request.prompt, "How the text begins")
      ->default_str("ROMEO: and a line break");
  command.add_option("--tokens", request.tokens, "Tokens to write (default: 256)")
      ->check(CLI::PositiveNumber);
  command.add_option("--seed", request.sampling.seed, "The same seed writes the same text")
      ->capture_default_str();
  command
      .add_option("--temperature", request.sampling.temperature,
                  "0 takes the likeliest token, 1 the model's odds")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("--top-k", request.sampling.top_k, "Choose among the k likeliest tokens; 0: all")
      ->capture_default_str();
  command
      .add_option("--top-p", request.sampling.top_p,
                  "Choose among the likeliest tokens of this joint probability")
      ->capture_default_str();
  command.add_flag_callback(
      "--greedy", [&request] { request.sampling.temperature = 0; }, "Always the likeliest token");
  command.add_flag_callback(
      "--ignore-end", [&request] { request.stop_at_end = false; }, "Write on after an end-of-text token");
  command.add_flag("--json", request.json, "Print one JSON object in the end");
  command.callback([&] { generate_text(setup, request); });
}

void add_logits(CLI::App& app, Setup& setup, std::vector<std::uint32_t>& ids) {
  CLI::App& command = *app.add_subcommand("logits", "Print the likeliest tokens after each of some ids");
  add_setup(command, setup);
  command.add_option("--ids", ids, "Token ids, such as 17,4,99")->required()->delimiter(',');
  command.callback([&] { print_logits(setup, ids); });
}

void add_info(CLI::App& app, Setup& setup) {
  CLI::App& command = *app.add_subcommand("info", "Print what the model is");
  add_setup(command, setup);
  command.callback([&] { print_info(setup); });
}

int run(int argc, char** argv) {
  CLI::App app("Text from a Llama, through one resident kernel");
  app.footer(kExamples);
  app.require_subcommand(1);
  Setup setup;
  TextRequest request;
  request.sampling = {.temperature = 0.8f, .top_p = 0.95f, .top_k = 50, .reserved = 0, .seed = 1623};
  std::vector<std::uint32_t> ids;
  add_generate(app, setup, request);
  add_logits(app, setup, ids);
  add_info(app, setup);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  }
  return 0;
}

int complain(const std::string& what, int code) {
  std::fprintf(stderr, "llama: %s\n", what.c_str());
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const CLI::ParseError& error) {
    return complain(std::string(error.what()) + "; llama --help and llama generate --help tell what there is",
                    kWrongInput);
  } catch (const ModelError& error) {
    return complain(error.what(), kWrongInput);
  } catch (const RequestError& error) {
    return complain(error.what(), kWrongInput);
  } catch (const DeviceError& error) {
    return complain(error.what(), kWrongInput);
  } catch (const std::exception& error) {
    return complain(error.what(), kFailed);
  }
}
