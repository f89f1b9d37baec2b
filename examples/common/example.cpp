// SPDX-License-Identifier: Apache-2.0
#include "example.h"

#include <lockstep/error.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <stdexcept>

namespace example {
namespace {

ExitCode exit_code(lockstep::ErrorCode code) {
  switch (code) {
    case lockstep::ErrorCode::kUnavailable:
    case lockstep::ErrorCode::kDeviceLost:
    case lockstep::ErrorCode::kIncompatiblePlugin:
      return kUnavailable;
    case lockstep::ErrorCode::kMismatch:
      return kDifferent;
    case lockstep::ErrorCode::kInvalidFile:
    case lockstep::ErrorCode::kTruncatedFile:
    case lockstep::ErrorCode::kInputOutput:
      return kBadInput;
    default:
      return kInternal;
  }
}

}  // namespace

int run(int argc, char** argv, const std::string& description,
        const std::filesystem::path& default_data, const std::function<int(const Options&)>& body) {
  Options options;
  options.data = default_data;
  CLI::App app(description);
  app.add_option("--device", options.device,
                 "host, cuda:0, hip:0 or auto (default: LOCKSTEP_DEVICE, else auto)");
  app.add_option("--out", options.output, "folder for traces and results");
  if (!default_data.empty()) app.add_option("--data", options.data, "folder of the input files");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUsage;
  }
  try {
    if (!options.output.empty()) std::filesystem::create_directories(options.output);
    return body(options);
  } catch (const lockstep::Error& error) {
    std::cerr << argv[0] << ": " << error.what() << '\n';
    // A text that names no device at all is a mistake in the call, not a device that is missing.
    const bool no_device = error.code() == lockstep::ErrorCode::kInvalidArgument &&
                           error.context().call == "Device::open";
    return no_device ? kUsage : exit_code(error.code());
  } catch (const std::exception& error) {
    std::cerr << argv[0] << ": " << error.what() << '\n';
    return kInternal;
  }
}

void write_values(const Options& options, const std::string& name,
                  const std::vector<float>& values) {
  if (options.output.empty()) return;
  std::ofstream file(options.output / (name + ".txt"));
  file << std::setprecision(9);
  for (const float value : values) file << value << '\n';
  file.flush();
  if (!file)
    throw std::runtime_error("cannot write " + (options.output / (name + ".txt")).string());
}

}  // namespace example
