// The exceptions of the library. Each message says what happened, to which object, and what to do next.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "../../runtime/base/status.hpp"

namespace flywheel {

/// Base class of all exceptions that the library throws.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A graph, task or argument that cannot work. Graph or Runtime::load() finds it before anything runs.
class GraphError : public Error {
 public:
  using Error::Error;
};

/// A limit of Options was reached; the message names the option.
class CapacityError : public Error {
 public:
  using Error::Error;
};

/// A CUDA call failed, there is no usable GPU, or the CUDA context is lost.
class DeviceError : public Error {
 public:
  using Error::Error;
};

/// The engine could not launch the kernel, but the device still works.
class LaunchRefused : public DeviceError {
 public:
  using DeviceError::DeviceError;
};

/// The program broke a rule of the interface: it submitted after shutdown, passed a handle of another graph, and so on.
class UsageError : public Error {
 public:
  using Error::Error;
};

/// A run failed or was cancelled.
class RunError : public Error {
 public:
  RunError(std::uint32_t code, const std::string& message) : Error(message), code_(code) {}

  /// The reason; Status::task_failed if it is a code of the program's own.
  Status status() const { return code_ >= kUserStatus ? Status::task_failed : static_cast<Status>(code_); }
  /// The code that the task gave to block.fail(); 0 if the reason is another one.
  std::uint32_t user_code() const { return code_ >= kUserStatus ? code_ - kUserStatus : 0; }

 private:
  std::uint32_t code_;
};

}  // namespace flywheel
