// Exceptions. Each message says what happened, to what, and what to do next.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "../../runtime/base/status.hpp"

namespace flywheel {

/// Base of everything the library throws.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A graph, task or argument that cannot work: found by Graph or Runtime::load() before anything runs.
class GraphError : public Error {
 public:
  using Error::Error;
};

/// A limit of Options was reached; the message names the option.
class CapacityError : public Error {
 public:
  using Error::Error;
};

/// CUDA said no, there is no usable GPU, or the context died.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// The engine could not start the kernel, but the device lives.
class LaunchRefused : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// The interface was used against its rules (after shutdown, with handles of another graph, ...).
class UsageError : public Error {
 public:
  using Error::Error;
};

/// A run did not end well.
class RunError : public Error {
 public:
  RunError(std::uint32_t code, const std::string& message) : Error(message), code_(code) {}

  /// The library's reason; Status::task_failed for a code of the program's own.
  Status status() const { return code_ >= kUserStatus ? Status::task_failed : static_cast<Status>(code_); }
  /// The code given to block.fail(), if that was the reason.
  std::uint32_t user_code() const { return code_ >= kUserStatus ? code_ - kUserStatus : 0; }

 private:
  std::uint32_t code_;
};

}  // namespace flywheel
