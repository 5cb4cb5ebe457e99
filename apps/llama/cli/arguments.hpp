// What the program says of its arguments: which numbers an option takes, which commands there are, and which of its options
// chose what the library refuses.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>
#include <vector>

#include "apps/llama/decode/request.hpp"

namespace llama {

/// For an option that takes a number.
inline CLI::Validator at_least(int least) {
  const std::string range = std::to_string(least) + " or more";
  const auto refuse = [least, range](std::string& text) {
    double number = 0;
    const bool right = CLI::detail::lexical_cast(text, number) && number >= least;
    return right ? std::string() : "must be " + range + ", not " + text;
  };
  return CLI::Validator(refuse, "(" + range + ")");
}

inline std::vector<const CLI::App*> commands_of(const CLI::App& app) {
  return app.get_subcommands([](const CLI::App*) { return true; });
}

/// "generate, logits or info".
inline std::string names_of(const std::vector<const CLI::App*>& all) {
  std::string text;
  for (std::size_t i = 0; i < all.size(); ++i) text += (i == 0 ? "" : i + 1 < all.size() ? ", " : " or ") + all[i]->get_name();
  return text;
}

/// The first argument must be a command, or an option of the program such as --help. Throws RequestError.
inline void check_command(const CLI::App& app, int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  const std::vector<const CLI::App*> all = commands_of(app);
  const bool is_command = std::ranges::any_of(all, [&](const CLI::App* one) { return one->get_name() == first; });
  if (is_command || (!first.empty() && app.get_option_no_throw(first))) return;
  throw RequestError("there is no command" + (first.empty() ? "" : " '" + first + "'") + ": choose " + names_of(all) +
                     "; llama --help tells what they do");
}

/// Where the options of the command that was used are told.
inline std::string with_help(const CLI::App& app, const std::string& what) {
  const auto used = app.get_subcommands();
  return what + "; llama " + (used.empty() ? "" : used.front()->get_name() + " ") + "--help tells what there is";
}

/// What the library says of its options, in the words of the command that was used, if that has any of them.
inline std::string in_words_of_command(const CLI::App& app, std::string what) {
  static constexpr const char* kWords[][3] = {{"Options::workers", "--workers", ""},
                                              {"Options::tuning.operand_window", "--window", ""},
                                              {"Options::operand_pages", "--pages", ""},
                                              {"Options::tuning.operand_pace", "--pace", ""},
                                              {"Options::scratch_bytes =", "--context", "'s bytes of scratch memory ="},
                                              {"the sizes in Options", "--context", ", or take a smaller model"},
                                              {"Target::automatic", "--device", " auto"}};
  for (const auto& [of_library, option, value] : kWords) {
    const std::size_t at = what.find(of_library);
    if (at == std::string::npos || app.get_subcommands().empty()) continue;
    if (app.get_subcommands().front()->get_option_no_throw(option))
      what.replace(at, std::string(of_library).size(), std::string(option) + value);
  }
  return what;
}

}  // namespace llama
