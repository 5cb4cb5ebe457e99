// `llama chat`: conversations by a scripted input, and what it says of those that it cannot have.
#include "llama_program_support.hpp"

namespace llama {
namespace {

struct Talk {
  int code;
  std::string answers, status;
};

/// `input`: as printf takes it.
Talk talk(const std::string& input, const std::string& arguments) {
  const TempFolder folder;
  const std::string status = (folder.path() / "status").string(), script = (folder.path() / "script").string();
  std::system(("printf '" + input + "' >" + script).c_str());
  const Answer answer = ask_program("chat --device cpu " + arguments, "<" + script + " 2>" + status);
  std::ifstream stream(status);
  return {answer.code, answer.text, {std::istreambuf_iterator<char>(stream), {}}};
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("chat program: each line has an answer and a status, and the same seed gives the same conversation") {
  const std::string input = "Good morrow, Juliet\\n\\n  \\nWhat say you\\n";
  const Talk first = talk(input, "--tokens 12 --seed 7"), second = talk(input, "--tokens 12 --seed 7");
  INFO(first.answers << first.status);
  CHECK(first.code == 0);
  CHECK_FALSE(first.answers.empty());
  CHECK(first.answers == second.answers);
  CHECK(count_of(first.status, " tokens read, ") == 2);
  CHECK(count_of(first.status, " written, ") == 2);
  CHECK(first.status.find("> ") == std::string::npos);
  CHECK(talk(input, "--tokens 12 --seed 8").answers != first.answers);
}

TEST_CASE("chat program: the conversation goes on, /new begins it anew, and /quit ends") {
  const std::string again = talk("Who is there\\n/new\\nWho is there\\n/quit\\nWho is there\\n", "--tokens 8 --greedy").answers;
  const std::string once = talk("Who is there", "--tokens 8 --greedy").answers;
  CHECK(again == once + once);
  const Talk on = talk("Who is there\\nWho is there\\n", "--tokens 8 --greedy");
  CHECK(on.answers.starts_with(once));
  CHECK(on.answers.size() > once.size());
  CHECK(count_of(on.status, "[") == 2);
  CHECK(talk("", "").code == 0);
}

TEST_CASE("chat program: a system message, a template of one's own and the tuned decode") {
  CHECK(talk("Hello\\n", "--tokens 8 --greedy --system 'A street in Verona.'").answers !=
        talk("Hello\\n", "--tokens 8 --greedy").answers);
  CHECK(talk("Hello\\n", "--tokens 4 --tuned --greedy").code == 0);
  const TempFolder folder;
  const auto file = folder.write("chat.jinja", "{% for m in messages %}{{ m.content }}\n{% endfor %}");
  const Talk own = talk("To be, or not to be\\n", "--tokens 4 --greedy --template " + file.string());
  CHECK(own.code == 0);
  CHECK(own.status.find("[") != std::string::npos);
}

TEST_CASE("chat program: an answer ends before a stop text") {
  const std::string whole = talk("Speak\\n", "--tokens 60 --seed 3").answers;
  const Talk cut = talk("Speak\\n", "--tokens 60 --seed 3 --stop '\\n'");
  INFO(whole);
  CHECK(count_of(cut.answers, "\n") == 1);
  CHECK(whole.starts_with(cut.answers.substr(0, cut.answers.size() - 1)));
}

TEST_CASE("chat program: a conversation that fills the context is told, and goes on without its last message") {
  std::string longer = "word";
  for (int i = 0; i < 60; ++i) longer += " word";
  const Talk full = talk("Hello\\n" + longer + "\\nHello\\n", "--tokens 4 --context 48");
  INFO(full.status);
  CHECK(full.code == 0);
  CHECK(mentions(full.status, {"the context holds 48", "--context", "/new begins anew", "taken back"}));
  CHECK(count_of(full.status, " tokens read, ") == 2);
}

TEST_CASE("chat program: a template that refuses is told, and the program goes on") {
  const TempFolder folder;
  const auto file = folder.write("chat.jinja", "{{ raise_exception('no talk') if 'no' in messages[0].content else 'yes' }}");
  const Talk refused = talk("no\\nyea\\n", "--tokens 2 --template " + file.string());
  CHECK(refused.code == 0);
  CHECK(mentions(refused.status, {"refuses the conversation: no talk", "taken back", " tokens read, "}));
}

TEST_CASE("chat program: what cannot be had is refused") {
  check_refused("chat --device cpu --template /nonexistent", {"/nonexistent", "is missing or no file"});
  check_refused("chat --device cpu --temperature inf", {"the temperature must be"});
  check_refused("chat --tokens 0", {"--tokens: must be 1 or more, not 0"});
  check_refused("chat --device cpu --context 4096", {"a context of 4096 positions"});
  const TempFolder folder;
  std::filesystem::copy(kModelFolder, folder.path(), std::filesystem::copy_options::recursive);
  folder.write("tokenizer_config.json", "{}");
  check_refused("chat --device cpu --model " + folder.path().string(),
                {"tokenizer_config.json", "has no \"chat_template\"", "--template FILE"});
  const auto broken = folder.write("broken.jinja", "{% if %}");
  check_refused("chat --device cpu --template " + broken.string(), {"broken.jinja: line 1 of the chat template"});
}

}  // namespace llama
