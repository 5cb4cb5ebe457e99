#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <map>
#include <string>
#include <vector>

#include "apps/llama/checkpoint/error.hpp"
#include "apps/llama/cli/arguments.hpp"
#include "apps/llama/cli/chat.hpp"
#include "apps/llama/cli/commands.hpp"

namespace {

using namespace flywheel;
using namespace llama;

constexpr int kFailed = 1;
constexpr int kWrongInput = 2;

constexpr const char* kExamples =
    "Examples:\n"
    "  llama generate --prompt \"JULIET:\" --tokens 100\n"
    "  llama generate --model ~/Llama-3.2-1B --prompt \"Once upon a time\" --greedy\n"
    "  llama generate --tuned --greedy\n"
    "  llama generate --tuned --prompt \"ROMEO:\" --prompt \"JULIET:\"\n"
    "  llama generate --tuned --prompts lines.txt --places 64 --tokens 200\n"
    "  llama chat --stop '\\n\\n'\n"
    "  llama chat --model ~/Qwen3-0.6B --system \"Answer briefly.\"\n"
    "  llama info\n"
    "  llama bench --shape llama-3.2-1b --portable-check 32\n"
    "  llama soak --shape llama-3.2-1b --tokens 200000\n";

void add_device(CLI::App& command, Target& target, std::uint32_t& workers) {
  static const std::map<std::string, Target> targets{{"auto", Target::automatic}, {"gpu", Target::gpu}, {"cpu", Target::cpu}};
  command
      .add_option_function<std::string>(
          "--device", [&target](const std::string& name) { target = targets.at(name); }, "auto, gpu or cpu")
      ->check(CLI::IsMember({"auto", "gpu", "cpu"}))
      ->default_str("auto");
  command.add_option("--workers", workers, "Workers (default: one on each SM, or one for each hardware thread)")
      ->check(at_least(1));
}

void add_setup(CLI::App& command, Setup& setup) {
  command.add_option("--model", setup.model, "Hugging Face model folder (default: the shipped one, or FLYWHEEL_MODEL)");
  add_device(command, setup.target, setup.workers);
  command.add_option("--context", setup.context, "Positions to have room for (default: the model's, at most 4096)")
      ->check(at_least(1));
}

/// How a text or an answer is written.
void add_writing(CLI::App& command, Setup& setup, Sampling& sampling, std::uint32_t& tokens) {
  command.add_option("--tokens", tokens, "Tokens to write (default: 256)")->check(at_least(1));
  command.add_option("--seed", sampling.seed, "The same seed writes the same text; each further one has the next seed")
      ->check(at_least(0))
      ->capture_default_str();
  command.add_option("--temperature", sampling.temperature, "0 takes the likeliest token, 1 the model's odds")
      ->check(at_least(0))
      ->capture_default_str();
  command.add_option("--top-k", sampling.top_k, "Choose among the k likeliest tokens; 0: all")->capture_default_str();
  command.add_option("--top-p", sampling.top_p, "Choose among the likeliest tokens of this joint probability")
      ->capture_default_str();
  command.add_flag_callback(
      "--greedy", [&sampling] { sampling.temperature = 0; }, "Always the likeliest token");
  command.add_flag("--tuned", setup.tuned, "Use the compiled, tuned decode (bf16 models)");
}

void add_generate(CLI::App& app, Setup& setup, TextRequest& request) {
  CLI::App& command = *app.add_subcommand("generate", "Write a text");
  add_setup(command, setup);
  command.add_option("--prompt", request.prompts, "How the text begins; several times, for as many texts")
      ->allow_extra_args(false)
      ->default_str("ROMEO: and a line break");
  command.add_option("--prompts", request.prompt_file, "A file each line of which is the prompt of a text; empty ones are not");
  command.add_option("--places", request.places, "Texts that --tuned writes at once; others take the places of those that end")
      ->check(CLI::IsMember({1, 2, 4, 8, 16, 32, 64}))
      ->default_str("as many as there are, at most 8");
  add_writing(command, setup, request.sampling, request.tokens);
  command.add_flag_callback(
      "--ignore-end", [&request] { request.stop_at_end = false; }, "Write on after an end-of-text token");
  command.add_flag("--json", request.json, "Print one JSON object in the end");
  command.callback([&] { generate_text(setup, request); });
}

void add_chat(CLI::App& app, Setup& setup, ChatRequest& request) {
  CLI::App& command = *app.add_subcommand("chat",
                                          "Talk with a model by its chat template: a line of input is a message, /new "
                                          "begins anew, /quit ends. Text of special tokens in a message is just text");
  add_setup(command, setup);
  command.add_option("--system", request.system, "The message in front of the conversation");
  command.add_option("--template", request.template_file, "A file with the chat template, in place of the model's");
  command.add_option("--stop", request.stops, "A text that ends an answer, such as '\\n\\n'; several times, for as many")
      ->allow_extra_args(false)
      ->default_str("the user's next turn, where the template marks it by text");
  add_writing(command, setup, request.sampling, request.tokens);
  command.callback([&] { chat(setup, request); });
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

/// What is measured, and how the runtime streams operands.
void add_measured(CLI::App& command, Measured& what, Options& options) {
  auto* const shape = command.add_option(
      "--shape", what.shape,
      "Random weights of a published model's shape (llama-3.2-1b, ...) or of a config.json's sizes (FILE.json)");
  command.add_option("--model", what.model, "Hugging Face model folder")->excludes(shape);
  add_device(command, options.target, options.workers);
  command
      .add_option_function<std::uint32_t>(
          "--window", [&options](std::uint32_t kilobytes) { options.tuning.operand_window = kilobytes << 10; },
          "KB of operands under way to an SM at once (default: 78 for 1 to 4 texts, 52 for more)")
      ->check(CLI::Range(16, 256));
  command.add_option("--pace", options.tuning.operand_pace,
                     "Of the memory's rated speed, what a worker asks for (default: 1, its share; 0: no limit)");
  command.add_option("--pages", options.operand_pages, "Pages of 26 KB for operands (default: as many as fit)");
  command.add_flag_callback(
      "--no-bulk", [&options] { options.tuning.bulk_copies = false; }, "Fetch operands without bulk copies");
}

void add_peers(CLI::App& command, BenchRequest& request) {
  command.add_flag("--peers,!--no-peers", request.peers, "Measure the same bodies as one kernel an operation (default: yes)");
  command
      .add_option_function<std::vector<int>>(
          "--peer-shape",
          [&request](const std::vector<int>& two) {
            request.peer_shapes.assign(1, {two[0], two[1]});
          },
          "Blocks an SM (1 to 3) and pages (0 to 64) that each prefetches to L2 (default: the best of several)")
      ->expected(2);
}

void add_bench(CLI::App& app, Measured& what, BenchRequest& request, bool& right) {
  CLI::App& command = *app.add_subcommand("bench", "Measure the tuned decode beside its peers and the card's limit");
  add_measured(command, what, request.options);
  add_peers(command, request);
  command.add_option("--batch", request.batch, "Texts at once")
      ->check(CLI::IsMember({1, 2, 4, 8, 16, 32, 64}))
      ->capture_default_str();
  command.add_option("--context", request.contexts, "Positions to start from (default: 32 and 1024, where the model has room)");
  command.add_option("--prefill", request.prompts, "Lengths of prompts to measure, too, such as 128,2048")
      ->delimiter(',')
      ->check(at_least(1));
  command.add_option("--mixed", request.mixed, "Texts of random lengths to measure, too, through the places of --batch")
      ->check(at_least(1));
  command.add_option("--tokens", request.tokens, "Tokens of a run")->check(at_least(1))->capture_default_str();
  command.add_option("--runs", request.runs, "Runs that count; 0 measures nothing")->check(at_least(0))->capture_default_str();
  command.add_option("--portable-check", request.portable_check,
                     "First hold this many positions of each text against the portable tasks");
  command.add_option("--trace", request.trace, "Chrome JSON of a traced run of 8 tokens");
  command.add_option("--trace-prompt", request.prompt_trace, "Chrome JSON of a traced prompt, the first of --prefill");
  command.add_option("--schedule", request.schedule, "The schedule as text");
  command.add_option("--out", request.out, "Results (default: apps/llama/results/<gpu>.json, on a CPU none)");
  command.add_option("--portable-context", request.portable_contexts,
                     "First hold a few steps from each of these positions against the portable tasks, on random keys and "
                     "values");
  command.callback([&] { right = bench_decode(what, request); });
}

void add_soak(CLI::App& app, Measured& what, SoakRequest& request, Options& options, bool& right) {
  CLI::App& command = *app.add_subcommand("soak", "Write the same text for long, and see that it ends the same");
  add_measured(command, what, options);
  command.add_option("--tokens", request.tokens, "Tokens in all")->check(at_least(1))->capture_default_str();
  command.add_option("--context", request.start, "Position that each run starts from")->capture_default_str();
  command.add_option("--length", request.length, "Tokens of a run")->check(at_least(1))->capture_default_str();
  command.callback([&] { right = soak_decode(what, request, options); });
}

int run(int argc, char** argv) {
  CLI::App app("Text from a Llama, through one resident kernel");
  app.footer(kExamples);
  app.require_subcommand(1);
  Setup setup;
  TextRequest request;
  request.sampling = kUsualSampling;
  ChatRequest chat_request{.sampling = kUsualSampling};
  std::vector<std::uint32_t> ids;
  Measured what;
  BenchRequest bench;
  SoakRequest soak;
  Options options{.tuning = {.operand_window = kBestWindow}};
  bool right = true;
  add_generate(app, setup, request);
  add_chat(app, setup, chat_request);
  add_logits(app, setup, ids);
  add_info(app, setup);
  add_bench(app, what, bench, right);
  add_soak(app, what, soak, options, right);
  check_command(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    throw RequestError(with_help(app, error.what()));
  } catch (const Error& error) {
    const std::string what = in_words_of_command(app, error.what());
    if (what == error.what()) throw;
    throw RequestError(what);
  }
  return right ? 0 : kFailed;
}

/// A full disk shows here first: the text is buffered, and single writes are not checked.
void check_output() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw std::runtime_error("cannot write all of the output: free some space, or send it elsewhere");
}

int complain(const std::string& what, int code) {
  std::fprintf(stderr, "llama: %s\n", what.c_str());
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int code = run(argc, argv);
    check_output();
    return code;
  } catch (const ModelError& error) {
    return complain(error.what(), kWrongInput);
  } catch (const RequestError& error) {
    return complain(error.what(), kWrongInput);
  } catch (const DeviceError& error) {
    return complain(error.what(), kWrongInput);
  } catch (const UsageError& error) {  // of what the environment asks for
    return complain(error.what(), kWrongInput);
  } catch (const std::exception& error) {
    return complain(error.what(), kFailed);
  }
}
