#include "apps/llama/chat/render/functions.hpp"

#include <algorithm>
#include <iomanip>
#include <sstream>

#include "apps/llama/chat/values/arguments.hpp"
#include "apps/llama/chat/values/print.hpp"

namespace llama::jinja {
namespace {

constexpr std::int64_t kLongestRange = 100'000;  // that of Jinja's sandbox

struct FunctionCall {
  Budget& budget;
  const std::string& name;
  const Arguments& arguments;
  Surroundings& around;
};
using Function = Value (*)(const FunctionCall&);

Value raise(const FunctionCall& call) {
  const Given given(call.name, call.arguments, {"message"}, 1);
  throw Refusal(printed(call.budget, given.at(0)));
}

/// The local time.
Value time_text(const FunctionCall& call) {
  const std::string format = Given(call.name, call.arguments, {"format"}, 1).text(0);
  if (format.size() > 256) throw Problem("writes the time by a format of more than 256 characters");
  std::tm local{};
  localtime_r(&call.around.now, &local);
  std::ostringstream out;
  out.imbue(std::locale::classic());
  out << std::put_time(&local, format.c_str());
  return TextBuilder(call.budget).add(out.str()).take();
}

Value range(const FunctionCall& call) {
  const Given given(call.name, call.arguments, {"start", "stop", "step"}, 1);
  const bool has_begin = given.find(1) != nullptr;
  const std::int64_t begin = has_begin ? given.integer(0, 0) : 0, end = given.integer(has_begin ? 1 : 0, 0);
  const std::int64_t step = given.integer(2, 1);
  if (step == 0) throw Problem("counts by steps of zero");
  Values numbers;
  for (std::int64_t at = begin; step > 0 ? at < end : at > end;) {
    if (std::ssize(numbers) == kLongestRange) throw Problem("counts over a range of more than 100000 numbers");
    numbers.emplace_back(at);
    if (__builtin_add_overflow(at, step, &at)) break;
  }
  return make_list(call.budget, std::move(numbers));
}

std::vector<Entry> entries_of(const FunctionCall& call) {
  std::vector<Entry> entries;
  const Arguments unnamed{call.arguments.positional, {}};
  const Given given(call.name, unnamed, {"mapping"});
  if (given.find(0) && !given.at(0).is_dict())
    throw Problem("'" + call.name + "' takes a mapping, not " + kind_of(given.at(0)));
  if (given.find(0)) entries = given.at(0).dict().entries;
  for (const auto& [name, value] : call.arguments.named) entries.push_back({name, value});
  return entries;
}

Value dict(const FunctionCall& call) { return make_dict(call.budget, entries_of(call)); }

Value space(const FunctionCall& call) {
  call.budget.spend(8);
  Namespace& made = call.around.spaces.emplace_back();
  const Value all = dict(call);
  for (const auto& [key, value] : all.dict().entries) {
    if (!key.is_text()) throw Problem(std::string("names a member of a namespace by ") + kind_of(key));
    made.members.emplace_back(key.text(), value);
  }
  return &made;
}

struct NamedFunction {
  std::string_view name;
  Function function;
};
constexpr NamedFunction kFunctions[] = {
    {"raise_exception", raise}, {"strftime_now", time_text}, {"range", range}, {"dict", dict}, {"namespace", space}};

class BoundFunction final : public Callable {
 public:
  BoundFunction(const NamedFunction& named, Surroundings& around)
      : Callable(std::string(named.name)),
        function_(named.function),
        around_(around) {}

  Value call(Budget& budget, const Arguments& arguments) const override {
    return function_({budget, name(), arguments, around_});
  }

 private:
  Function function_;
  Surroundings& around_;
};

}  // namespace

Value function_of(const std::string& name, Surroundings& around) {
  const auto found = std::ranges::find(kFunctions, name, &NamedFunction::name);
  if (found == std::end(kFunctions)) return undefined("'" + name + "' is undefined");
  return std::shared_ptr<const Callable>(std::make_shared<const BoundFunction>(*found, around));
}

}  // namespace llama::jinja
