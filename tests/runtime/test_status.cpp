// Every status says what happened and what to do about it.
#include "runtime/base/status.hpp"
#include "support/internals.hpp"

#include <set>
#include <string>

#include "catch.hpp"

using namespace flywheel;

constexpr Status kLast = Status::grid_sync_alone;

TEST_CASE("every status of the library has its own words and a remedy") {
  std::set<std::string> texts;
  for (std::uint32_t code = 1; code <= static_cast<std::uint32_t>(kLast); ++code) {
    INFO("status " << code);
    const StatusText text = describe(static_cast<Status>(code));
    CHECK_FALSE(std::string(text.what).empty());
    CHECK_FALSE(std::string(text.remedy).empty());
    texts.insert(text.what);
  }
  CHECK(texts.size() == static_cast<std::size_t>(kLast));
  CHECK(std::string(describe(Status::ok).what) == "ok");
}

TEST_CASE("a code of the program's own is told from those of the library") {
  CHECK(static_cast<std::uint32_t>(kLast) < kUserStatus);
  const std::string own = describe(static_cast<Status>(kUserStatus + 5)).what;
  CHECK(own.find("own code") != std::string::npos);
  for (std::uint32_t code = 0; code <= static_cast<std::uint32_t>(kLast); ++code)
    CHECK(own != describe(static_cast<Status>(code)).what);
}
