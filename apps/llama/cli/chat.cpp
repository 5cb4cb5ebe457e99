#include "apps/llama/cli/chat.hpp"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>

#include "apps/llama/chat/answer.hpp"
#include "apps/llama/chat/conversation.hpp"
#include "apps/llama/checkpoint/find_model.hpp"
#include "apps/llama/cli/terminal.hpp"

namespace llama {
namespace {

using Clock = std::chrono::steady_clock;

/// Leaves the decode where an answer ends by a stop text.
struct Stopped {};

/// How an answer went.
struct Pace {
  std::size_t read = 0, written = 0;
  Clock::time_point begin = Clock::now(), first = begin, last = begin;

  void count() {
    last = Clock::now();
    if (written++ == 0) first = last;
  }
  void print() const {
    std::fprintf(stderr, "[%zu tokens read, %.0f/s; %zu written, %.0f/s]\n", read, rate(read, first - begin), written,
                 rate(written > 1 ? written - 1 : 0, last - first));
  }
  static double rate(std::size_t tokens, std::chrono::duration<double> time) {
    return static_cast<double>(tokens) / std::max(time.count(), 1e-9);
  }
};

/// "\n" and "\t" as the characters that they stand for, which a shell makes hard to type.
std::string with_escapes(const std::string& text) {
  std::string all;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char next = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : ' ';
    const bool is_escape = next == 'n' || next == 't' || next == '\\';
    all += !is_escape ? text[i] : next == 'n' ? '\n' : next == 't' ? '\t' : '\\';
    i += is_escape;
  }
  return all;
}

/// A line of the input as valid UTF-8, without what another system puts at its end.
std::string clean(std::string line) {
  if (line.ends_with('\r')) line.pop_back();
  Utf8Stream stream;
  line = stream.push(line);
  return line + stream.finish();
}

bool is_blank(const std::string& line) { return line.find_first_not_of(" \t") == line.npos; }

class Chat {
 public:
  Chat(const Setup& setup, const ChatRequest& request)
      : request_(request),
        format_(ChatFormat::load(find_model(setup.model), request.template_file)),
        session_(setup),
        has_prompt_(isatty(STDIN_FILENO) != 0 && isatty(STDERR_FILENO) != 0) {
    for (const std::string& stop : request.stops) stops_.push_back(with_escapes(stop));
    if (stops_.empty()) stops_.push_back(format_.next_turn(session_.tokenizer, std::time(nullptr)));
    session_.generator->check({{.prompt = {0}, .tokens = 1, .sampling = request.sampling}});
    begin_anew();
  }

  void run() {
    for (std::string line; read(line);) {
      if (line == "/quit") return;
      if (line == "/new") begin_anew();
      else if (!is_blank(line)) answer(line);
    }
  }

 private:
  bool read(std::string& line) const {
    if (has_prompt_) std::fputs("> ", stderr);
    if (!std::getline(std::cin, line)) {
      if (has_prompt_) std::fputs("\n", stderr);
      return false;
    }
    line = clean(std::move(line));
    return true;
  }

  void begin_anew() {
    messages_.clear();
    answers_ = 0;
    if (!request_.system.empty()) messages_.push_back({"system", clean(request_.system)});
  }

  void answer(const std::string& line) {
    messages_.push_back({"user", line});
    try {
      const auto prompt = format_.tokens(session_.tokenizer, messages_, std::time(nullptr));
      if (has_room(prompt.size())) return messages_.push_back({"assistant", written(prompt)});
    } catch (const jinja::Refusal& refusal) {
      complain(std::string("the chat template refuses the conversation: ") + refusal.what());
    }
    messages_.pop_back();
  }

  static void complain(const std::string& what) {
    std::fprintf(stderr, "llama: %s; the last message is taken back: write another, or /new begins anew\n", what.c_str());
  }

  bool has_room(std::size_t prompt) const {
    const auto context = static_cast<std::size_t>(session_.generator->context());
    if (prompt > 0 && prompt <= context) return true;
    if (prompt == 0) complain("the chat template writes nothing for this conversation");
    else
      complain("the conversation has " + std::to_string(prompt) + " tokens, and the context holds " + std::to_string(context) +
               " (a larger --context may hold more)");
    return false;
  }

  /// Writes an answer to the prompt, on stdout too.
  std::string written(const std::vector<std::uint32_t>& prompt) {
    Request request{
        .prompt = prompt, .tokens = session_.tokens_behind(prompt.size(), request_.tokens), .sampling = request_.sampling};
    request.sampling.seed += answers_++;
    AnswerText text(stops_);
    Decoder decoder(session_.tokenizer);
    Pace pace{.read = prompt.size()};
    Terminal terminal;
    terminal.begin("", request.tokens);
    try {
      session_.generator->generate(request, [&](std::uint32_t token) {
        pace.count();
        terminal.add(text.push(decoder.push(static_cast<int>(token))));
        if (text.has_stopped()) throw Stopped();
      });
    } catch (const Stopped&) {}
    const std::string rest = text.push(decoder.finish());
    terminal.end(rest + text.finish() + "\n");
    pace.print();
    return text.text();
  }

  const ChatRequest& request_;
  ChatFormat format_;
  Session session_;
  std::vector<std::string> stops_;
  std::vector<Message> messages_;
  std::uint64_t answers_ = 0;  // of this conversation
  bool has_prompt_;
};

}  // namespace

void chat(const Setup& setup, const ChatRequest& request) { Chat(setup, request).run(); }

}  // namespace llama
