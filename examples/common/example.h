// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

/// \file
/// What the examples share: one way to take options and one meaning of exit codes.
namespace lockstep {
class Device;
}

namespace example {

/// Exit codes of every example, those of the `lockstep` command line.
enum ExitCode : int {
  kDone = 0,
  kDifferent = 1,  ///< a result is wrong, or a verification failed
  kUsage = 2,
  kBadInput = 3,     ///< a data file is missing or damaged
  kUnavailable = 4,  ///< the device that was asked for is not there, or cannot do this
  kInternal = 5,
};

struct Options {
  std::string device;            ///< as Device::open takes it; empty = LOCKSTEP_DEVICE or auto
  std::filesystem::path output;  ///< folder for traces and results; empty = none are written
  std::filesystem::path data;    ///< folder of input files
};

/// Parses `--device`, `--out` and `--data`, runs `body` and turns errors into messages on stderr
/// and exit codes.
int run(int argc, char** argv, const std::string& description,
        const std::filesystem::path& default_data, const std::function<int(const Options&)>& body);

/// The line that every example begins with: which device it is.
void print_device(const lockstep::Device& device);

/// Values on standard output and, with --out, in a file that a later run can be compared with.
/// One number a line, 9 significant digits.
void write_values(const Options& options, const std::string& name,
                  const std::vector<float>& values);

}  // namespace example
