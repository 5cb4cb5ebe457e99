// A conversation as a model reads it: where its template is found, which tokens come of it, and where an answer ends.
#include "apps/llama/chat/answer.hpp"
#include "apps/llama/chat/conversation.hpp"
#include "catch.hpp"
#include "llama_chat_support.hpp"

namespace llama {
namespace {

constexpr const char* kEnd = "<|endoftext|>";

const Tokenizer& shipped() {
  static const Tokenizer kTokenizer = Tokenizer::load(kModelFolder);
  return kTokenizer;
}

std::string decoded(const std::vector<std::uint32_t>& ids) {
  return shipped().decode(std::vector<int>(ids.begin(), ids.end()));
}

/// A folder with this tokenizer_config.json.
struct ModelFolder {
  explicit ModelFolder(const std::string& config) { folder.write("tokenizer_config.json", config); }
  std::string text(const std::filesystem::path& named = {}) const {
    return ChatFormat::load(folder.path(), named).text({{"user", "hello"}}, kNow);
  }
  std::string error(const std::filesystem::path& named = {}) const {
    return model_error_of([&] { text(named); });
  }
  TempFolder folder;
};

}  // namespace

TEST_CASE("chat: a template is found where Hugging Face has it") {
  CHECK(ModelFolder(R"({"chat_template": "{{ messages[0].content }}!"})").text() == "hello!");
  CHECK(ModelFolder(R"({"chat_template": [{"name": "tool_use", "template": "a"}, {"name": "default", "template": "b"}]})")
            .text() == "b");
  const ModelFolder both(R"({"chat_template": "config"})");
  both.folder.write("chat_template.jinja", "file");
  CHECK(both.text() == "file");
  CHECK(both.text(both.folder.write("mine.jinja", "mine")) == "mine");
}

TEST_CASE("chat: special tokens have names in the template, whichever way they are written") {
  const ModelFolder folder(R"({"bos_token": {"content": "<s>"}, "eos_token": "</s>", "pad_token": null,
                               "chat_template": "{{ bos_token }}{{ eos_token }}{{ pad_token is defined }}"})");
  CHECK(folder.text() == "<s></s>False");
}

TEST_CASE("chat: a model without a template is told, with the remedy") {
  CHECK(mentions(ModelFolder("{}").error(), {"tokenizer_config.json", "has no \"chat_template\"", "--template FILE"}));
  const TempFolder empty;
  const std::string error = model_error_of([&] { ChatFormat::load(empty.path()); });
  CHECK(mentions(error, {"tokenizer_config.json", "is not there", "--template FILE"}));
  CHECK(mentions(ModelFolder(R"({"chat_template": [{"name": "rag", "template": "a"}]})").error(),
                 {"\"default\"", "--template FILE"}));
  CHECK(mentions(ModelFolder(R"({"chat_template": 5})").error(), {"chat_template", "should be a string"}));
  CHECK(mentions(ModelFolder("{}").error("/nonexistent/chat.jinja"), {"/nonexistent/chat.jinja", "is missing or no file"}));
  CHECK(mentions(ModelFolder(R"({"chat_template": "{% bogus %}"})").error(), {"tokenizer_config.json: line 1", "bogus"}));
}

TEST_CASE("chat: special tokens come of the template alone") {
  const ModelFolder folder(
      R"({"eos_token": "<|endoftext|>", "chat_template": "{{ eos_token }}{{ messages[0].content }}{{ eos_token }}"})");
  const ChatFormat format = ChatFormat::load(folder.folder.path());
  const std::string typed = std::string("to") + kEnd + kEnd + "be<|endof";
  const auto ids = format.tokens(shipped(), {{"user", typed}}, kNow);
  CHECK(std::count(ids.begin(), ids.end(), 0u) == 2);
  CHECK((ids.front() == 0 && ids.back() == 0));
  CHECK(decoded(ids) == kEnd + typed + kEnd);
}

TEST_CASE("chat: guards change nothing but special tokens") {
  const std::string text = "To be, or not to be: caf\xc3\xa9\n";
  CHECK(shipped().guarded(text) == text);
  CHECK(shipped().encode_guarded(text) == shipped().encode_plain(text));
  CHECK(shipped().encode_guarded(kEnd) == std::vector<int>{0});
  CHECK(shipped().guarded("a\xff") == "a");
  const auto ids = shipped().encode_guarded(shipped().guarded(kEnd));
  CHECK(ids.size() > 1);
  CHECK(shipped().decode(ids) == kEnd);
}

TEST_CASE("chat: the shipped model's conversations are speeches") {
  const ChatFormat format = ChatFormat::load(kModelFolder);
  const std::vector<Message> messages{
      {"system", "Verona."}, {"user", " Who's there? "}, {"assistant", "I."}, {"user", "Speak"}};
  CHECK(format.text(messages, kNow) == "Verona.\n\nROMEO:\nWho's there?\n\nJULIET:\nI.\n\nROMEO:\nSpeak\n\nJULIET:\n");
  CHECK(format.next_turn(shipped(), kNow) == "\n\nROMEO:");
}

TEST_CASE("chat: where special tokens end an answer, or nothing does, no text stops it") {
  const auto next_turn = [](const std::string& source) {
    const TempFolder folder;
    return ChatFormat::load(folder.path(), folder.write("chat.jinja", source)).next_turn(shipped(), kNow);
  };
  CHECK(next_turn("{% for m in messages %}{{ m.content }}<|endoftext|>\n{% endfor %}") == "");
  CHECK(next_turn("{% for m in messages %}{{ m.content }}\n\n{% endfor %}") == "");
  CHECK(next_turn("{{ raise_exception('no') }}") == "");
  CHECK(next_turn("nothing") == "");
  CHECK(next_turn("{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}") == "\nuser:");
}

TEST_CASE("chat: an answer ends where a stop text begins, and nothing of that is shown") {
  AnswerText answer({"\n\nROMEO", "", "END"});
  CHECK(answer.push("To be\n") == "To be");
  CHECK(answer.push("\nR") == "");
  CHECK(answer.push("est, EN") == "\n\nRest, ");
  CHECK_FALSE(answer.has_stopped());
  CHECK(answer.push("DING") == "");
  CHECK(answer.has_stopped());
  CHECK(answer.push("more") == "");
  CHECK(answer.finish() == "");
  CHECK(answer.text() == "To be\n\nRest, ");
}

TEST_CASE("chat: what was held back comes in the end") {
  AnswerText answer({"END"});
  CHECK(answer.push("the EN") == "the ");
  CHECK(answer.finish() == "EN");
  CHECK(answer.text() == "the EN");
}

}  // namespace llama
