// A template is somebody else's program: what it cannot do, what it is told, and that it ends.
#include "catch.hpp"
#include "llama_chat_support.hpp"

namespace llama {
namespace {

std::string times(int count, const std::string& text) {
  std::string all;
  for (int i = 0; i < count; ++i) all += text;
  return all;
}

std::string error_of(const std::string& source, const nlohmann::ordered_json& with = nlohmann::ordered_json::object(),
                     std::uint64_t steps = jinja::kUsualSteps) {
  return model_error_of([&] { rendered(source, with, steps); });
}

void check_told(const std::string& source, std::initializer_list<std::string_view> words) {
  const std::string error = error_of(source);
  INFO(source.substr(0, 100) << " -> " << error);
  CHECK(mentions(error, {"chat.jinja: line", "of the chat template"}));
  CHECK(mentions(error, words));
}

void check_ends(const std::string& source) {
  constexpr std::uint64_t kSteps = 2'000'000;  // a sixteenth of the usual, which only takes longer
  const std::string error = error_of(source, nlohmann::ordered_json::object(), kSteps);
  INFO(source << " -> " << error);
  CHECK(mentions(error, {"chat.jinja: line 1", "takes more steps", "shorten the conversation"}));
}

}  // namespace

TEST_CASE("chat template: what is wrong is told with its line and a remedy") {
  check_told("a\n\n{{ 1 | bogus }}", {"line 3", "the filter 'bogus'", "mend the template, or name another with --template"});
  check_told("{% include 'x' %}", {"line 1", "{% include %}", "for, if, set, macro, call"});
  check_told("{% if true %}\nx", {"line 2", "expects {% endif %}", "the end of the template"});
  check_told("{{ nothing.name }}", {"'nothing' is undefined", "has no attribute 'name'"});
  check_told("{{ 'a' is odd2 }}", {"the test 'odd2'"});
  check_told("{{ dict(**5) }}", {"unpacks an integer"});
  check_told("{% call 5 %}{% endcall %}", {"without a call of a macro"});
  check_told("{{ 'a\n }}", {"a string without its end"});
  check_told("{{ \xff }}", {"the byte 255"});
  check_told("{{ 99999999999999999999 }}", {"too large"});
  check_told("{% for x in [1] recursive %}{% endfor %}", {"recursive loop"});
  check_told("{{ [].append(1) }}", {"'append', which would change a list"});
  check_told("{{ 'a'.split('b', many=1) }}", {"'split' has no argument 'many'"});
}

TEST_CASE("chat template: numbers beyond 64 bits are told") {
  check_told("{{ 9223372036854775807 + 1 }}", {"an integer beyond 64 bits"});
  check_told("{{ 2 ** 63 }}", {"an integer beyond 64 bits"});
  check_told("{{ -9223372036854775807 - 2 }}", {"an integer beyond 64 bits"});
  check_told("{{ (-9223372036854775807 - 1) // -1 }}", {"an integer beyond 64 bits"});
  CHECK(rendered("{{ (-9223372036854775807 - 1) % -1 }}{{ 1 ** 9223372036854775807 }}") == "01");
}

TEST_CASE("chat template: one that would never end, or fill the memory, ends") {
  check_ends(
      "{% for a in range(99999) %}{% for b in range(99999) %}{% for c in range(99999) %}{% endfor %}{% endfor %}{% endfor %}");
  check_ends("{% set n = namespace(t='aaaaaaaa') %}{% for i in range(99) %}{% set n.t = n.t ~ n.t %}{% endfor %}");
  check_ends("{{ ('a' * 100000).replace('a', 'b' * 1000000) }}");
  check_ends("{{ 'a' * 9223372036854775807 }}");
  check_ends("{% set n = namespace(l=[1]) %}{% for i in range(99) %}{% set n.l = n.l + n.l %}{% endfor %}");
  check_ends("{% set n = namespace(l=[1]) %}{% for i in range(90) %}{% set n.l = [n.l, n.l] %}{% endfor %}{{ n.l }}");
  CHECK(mentions(error_of("{% for i in range(1000) %}{% endfor %}", {}, 500), {"takes more steps"}));
}

TEST_CASE("chat template: what is nested too deep is told") {
  check_told("{{ " + times(20'000, "(") + "1" + times(20'000, ")") + " }}", {"deeper than 128 levels"});
  check_told("{{ " + times(20'000, "[") + times(20'000, "]") + " }}", {"deeper than 128 levels"});
  check_told("{{ " + times(20'000, "-") + "1 }}", {"deeper than 128 levels"});
  check_told("{{ " + times(20'000, "not ") + "1 }}", {"deeper than 128 levels"});
  check_told("{{ a" + times(20'000, ".a") + " }}", {"deeper than 128 levels"});
  check_told("{{ 1" + times(20'000, "+1") + " }}", {"deeper than 128 levels"});
  check_told("{{ 1" + times(20'000, "|abs") + " }}", {"deeper than 128 levels"});
  check_told(times(2'000, "{% if true %}"), {"deeper than 64 levels"});
  check_told("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", {"too deep"});
  check_told("{% set n = namespace(l=[]) %}{% for i in range(200) %}{% set n.l = [n.l] %}{% endfor %}",
             {"deeper than 100 levels"});
  check_told(std::string(300'000, 'x'), {"longer than 256 KiB"});
  check_told("{{ " + std::string(1000, 'x') + " }}", {"more than 256 characters"});
}

TEST_CASE("chat template: zero bytes and bytes that are no UTF-8 stay what they are") {
  const std::string odd("a\0b\xff\xc3", 5);
  CHECK(rendered(odd) == odd);
  const jinja::Names names{{"odd", odd}};
  const auto text_of = [&](const std::string& source) { return ChatTemplate(source, "t").render(names, kNow); };
  CHECK(text_of("{{ odd }}{{ odd|length }}{{ odd[3] }}") == odd + "5\xff");
  CHECK(text_of("{{ odd[::-1] }}") == std::string("\xc3\xff"
                                                  "b\0a",
                                                  5));
  CHECK(text_of("{{ odd|trim|upper }}") == std::string("A\0B\xff\xc3", 5));
  CHECK(text_of("{{ odd|tojson }}") == "\"a\\u0000b\xff\xc3\"");
}

TEST_CASE("chat template: macros that outlive their scope, and namespaces that hold themselves") {
  check_told(
      "{% set n = namespace() %}{% for i in [1] %}{% macro f() %}{{ i }}{% endmacro %}{% set n.f = f %}{% endfor %}{{ n.f() }}",
      {"the macro 'f' outside of where it is defined"});
  CHECK(rendered("{% set n = namespace() %}{% set n.me = [n] %}{{ n.me[0].me|length }}") == "1");
}

TEST_CASE("chat template: a refusal is its own message") {
  try {
    rendered("{{ raise_exception('no ' ~ 1) }}");
    FAIL("it did not refuse");
  } catch (const jinja::Refusal& refusal) {
    CHECK(std::string(refusal.what()) == "no 1");
  }
}

}  // namespace llama
