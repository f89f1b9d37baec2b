// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>

#include <exception>
#include <fmt/format.h>

#include "exit_code.h"
#include "verbs.h"

namespace lockstep::cli {
namespace {

int exit_code_of(const Error& error) {
  switch (error.code()) {
    case ErrorCode::kNotFound:
    case ErrorCode::kInvalidFile:
    case ErrorCode::kTruncatedFile:
    case ErrorCode::kMismatch:         // slices that do not belong together
    case ErrorCode::kInvalidArgument:  // what a file holds cannot be: a graph with a cycle
      return kUnreadable;
    case ErrorCode::kInputOutput:  // of an output it is not the input's fault
      return error.context().call == "write" ? kInternal : kUnreadable;
    case ErrorCode::kUnavailable:
    case ErrorCode::kIncompatiblePlugin:
    case ErrorCode::kNotSupported:
      return kNotAvailable;
    default:
      return kInternal;
  }
}

/// What was printed before a failure is worth having; that it cannot be printed is not news then.
void flush_quietly(Console& console) {
  try {
    console.flush();
  } catch (const Failure&) {
  } catch (const BrokenPipe&) {
  }
}

int run(int argc, const char* const* argv) {
  Invocation invocation;
  try {
    invocation = parse_command_line(argc, argv);
  } catch (const Failure& failure) {
    Console().error(failure.what());
    return failure.code();
  }
  Console console(invocation.common.color);
  const auto fail = [&](int code, const std::string& message) {
    flush_quietly(console);
    console.error(message);
    return code;
  };
  try {
    const int code = std::visit(
        [&](const auto& options) { return run_verb(console, invocation.common, options); },
        invocation.verb);
    console.flush();
    return code;
  } catch (const BrokenPipe&) {
    return kBrokenPipe;
  } catch (const Failure& failure) {
    return fail(failure.code(), failure.what());
  } catch (const Error& error) {
    return fail(exit_code_of(error), error.what());
  } catch (const std::exception& error) {
    return fail(kInternal, fmt::format("{} (this is a defect of lockstep)", error.what()));
  }
}

}  // namespace
}  // namespace lockstep::cli

int main(int argc, char** argv) { return lockstep::cli::run(argc, argv); }
