// SPDX-License-Identifier: Apache-2.0
#include "example.h"

#include <lockstep/device.h>
#include <lockstep/error.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <stdexcept>
#include <system_error>

namespace example {
namespace {

ExitCode exit_code(lockstep::ErrorCode code) {
  switch (code) {
    case lockstep::ErrorCode::kUnavailable:
    case lockstep::ErrorCode::kDeviceLost:
    case lockstep::ErrorCode::kIncompatiblePlugin:
    case lockstep::ErrorCode::kNotSupported:  // a device that cannot do what the example needs
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

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (!error && !std::filesystem::is_directory(folder)) {
    error = std::make_error_code(std::errc::not_a_directory);
  }
  if (error) {
    throw std::runtime_error("--out " + folder.string() +
                             ": the folder cannot be made: " + error.message());
  }
}

}  // namespace

int run(int argc, char** argv, const std::string& description,
        const std::filesystem::path& default_data, const std::function<int(const Options&)>& body) {
  const std::string program = std::filesystem::path(argv[0]).filename().string();
  const auto complain = [&](const std::string& what) {
    std::cerr << program << ": " << what << '\n';
  };
  Options options;
  options.data = default_data;
  CLI::App app(description);
  app.add_option("--device", options.device,
                 "host, cuda:0, hip:0 or auto (default: LOCKSTEP_DEVICE, else auto)");
  app.add_option("--out", options.output, "folder for traces and results");
  if (!default_data.empty()) app.add_option("--data", options.data, "folder of the input files");
  app.allow_extras();  // to name them in the order in which they were given
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    complain(std::string(error.what()) + "; --help lists the options");
    return kUsage;
  }
  if (const auto extras = app.remaining(); !extras.empty()) {
    complain("'" + extras.front() + "' was not expected; --help lists the options");
    return kUsage;
  }
  try {
    if (!options.output.empty()) make_folder(options.output);
    return body(options);
  } catch (const lockstep::Error& error) {
    complain(error.what());
    // A text that names no device at all is a mistake in the call, not a device that is missing.
    const bool no_device = error.code() == lockstep::ErrorCode::kInvalidArgument &&
                           error.context().call == "Device::open";
    return no_device ? kUsage : exit_code(error.code());
  } catch (const std::exception& error) {
    complain(error.what());
    return kInternal;
  }
}

void print_device(const lockstep::Device& device) {
  std::cout << "device " << device.id() << ": " << device.name() << ", " << device.arch() << '\n';
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
