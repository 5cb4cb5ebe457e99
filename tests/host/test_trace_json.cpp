// Traces as files for browsers.
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "catch.hpp"
#include "host/trace/trace.hpp"
#include "support/internals.hpp"
#include "support/made_trace.hpp"

using namespace flywheel;
using namespace flywheel::testing;
using Json = nlohmann::json;
using Role = TraceRole;

namespace {

// The spans of a trace file, by name.
Json boxes(const Trace& trace) {
  Json found = Json::object();
  const Json file = Json::parse(trace.chrome_json());
  for (const Json& event : file.at("traceEvents"))
    if (event.at("ph") == "X") found[event.at("name").get<std::string>()] = event;
  return found;
}

}  // namespace

TEST_CASE("an empty trace is a file without boxes") {
  CHECK(boxes(Trace()).empty());
  CHECK(boxes(MadeTrace(2).trace()).empty());
}

TEST_CASE("the file for browsers has a process, a named line for each role, and a box for each span") {
  MadeTrace made(4);
  made.wait(3, 1, 6, 500, 1250);
  made.body(3, 1, 7, 2000, 1234567, 40);
  made.gate(0, 8, 2001, 1);
  const Json file = Json::parse(made.trace().chrome_json());
  std::set<std::string> names;
  for (const Json& event : file.at("traceEvents")) {
    CHECK(event.at("pid") == 0);
    if (event.at("name") == "process_name") names.insert(event.at("args").at("name").get<std::string>());
    if (event.at("name") != "thread_name") continue;
    names.insert(event.at("args").at("name").get<std::string>());
    if (event.at("args").at("name") == "worker 3 compute") CHECK(event.at("tid") == 14);
  }
  CHECK(names.size() == 1 + 4 * kTraceRoles);
  for (const char* name : {"flywheel", "worker 0 control", "worker 1 load", "worker 2 store", "worker 3 compute"})
    CHECK(names.count(name) == 1);
}

TEST_CASE("a box tells when, how long, where and what") {
  MadeTrace made(4);
  made.wait(3, 1, 6, 500, 1250);
  made.body(3, 1, 7, 2000, 1234567, 40);
  made.gate(0, 8, 2001, 1);
  const Json found = boxes(made.trace());
  REQUIRE(found.size() == 3);
  const Json& body = found.at("task 1 (Mul)");
  CHECK(body.at("ts") == 1.5);
  CHECK(body.at("dur") == 1234.567);
  CHECK(body.at("tid") == 14);
  CHECK(body.at("cat") == "body");
  CHECK(body.at("args") == Json{{"task", 1}, {"pass", 7}, {"kib", 40}});
  const Json& wait = found.at("wait for tasks: task 1 (Mul)");
  CHECK(wait.at("ts") == 0.0);
  CHECK(wait.at("dur") == 1.25);
  CHECK(wait.at("tid") == 12);
  CHECK(found.at("gate").at("dur") == 0.001);
}

TEST_CASE("boxes nest in the file when their spans do") {
  MadeTrace made(1);
  made.moments(0, Role::compute, {0, 0}, {3'000'000, 1'000'000});  // a third of a ns a tick
  made.body(0, 1, 0, 0, 0);
  for (std::uint32_t i = 1; i < 20; ++i) {
    made.inputs(0, 0, i, 100 * i + 1, 43);
    made.body(0, 0, i, 100 * i, 44);  // ends with its inputs
  }
  const auto ns = [](const Json& number) { return std::llround(number.get<double>() * 1000); };
  long long body_end = 0, checked = 0;
  const Json file = Json::parse(made.trace().chrome_json());
  for (const Json& event : file.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    const long long end = ns(event.at("ts")) + ns(event.at("dur"));
    if (event.at("cat") == "body") body_end = end;
    if (event.at("cat") == "inputs") CHECK((end == body_end && ++checked));
  }
  CHECK(checked == 19);
}

TEST_CASE("any name survives the way through the file") {
  const std::string names[] = {"a \"quoted\" one",
                               "back\\slash\\",
                               "two\nlines\r\n\tand a tab",
                               "Größe λ 任务 🚀",
                               std::string("nul\0 and \x01", 10),
                               "</script>",
                               ""};
  for (const std::string& name : names) {
    MadeTrace made(1);
    made.names[0] = name;
    made.body(0, 0, 0, 0, 10);
    made.inputs(0, 0, 0, 0, 5);
    const Json found = boxes(made.trace());
    CHECK(found.contains(name));
    CHECK(found.contains("inputs: " + name));
  }
}

TEST_CASE("a name that is no UTF-8 still makes a file that can be read") {
  MadeTrace made(1);
  made.names[0] = "bad \xff\xfe byte";
  made.body(0, 0, 0, 0, 10);
  CHECK(boxes(made.trace()).contains("bad \xEF\xBF\xBD\xEF\xBF\xBD byte"));
}
