// SPDX-License-Identifier: Apache-2.0
#include "robust/robust_test.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <sys/mount.h>

#include "unit/record/probe_environment.h"

namespace lockstep::testing {
namespace {

void prepare(ProcessOptions& options) {
  for (const auto& [name, value] : probe_environment()) options.environment.emplace(name, value);
  for (const char* name : {"LOCKSTEP_TRACE", "LOCKSTEP_TRACE_OWNER", "LOCKSTEP_TRACE_FORCE",
                           "LOCKSTEP_RECORD_DIR", "LOCKSTEP_HOST_FAIL", "LOCKSTEP_HOST_DEVICES",
                           "LOCKSTEP_DEVICE", "NO_COLOR", "CLICOLOR_FORCE"}) {
    options.environment.emplace(name, std::nullopt);
  }
}

}  // namespace

ProcessResult robust_program(const std::vector<std::string>& arguments, ProcessOptions options) {
  prepare(options);
  std::vector<std::string> argv = {LOCKSTEP_ROBUST_PROGRAM};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return run(argv, options);
}

ProcessResult lockstep_cli(const std::vector<std::string>& arguments, ProcessOptions options) {
  prepare(options);
  std::vector<std::string> argv = {std::string(LOCKSTEP_TEST_BIN_DIR) + "/lockstep"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return run(argv, options);
}

std::vector<std::string> recorded(const std::string& output,
                                  const std::vector<std::string>& arguments) {
  std::vector<std::string> argv = {"record", "-o", output, "--", LOCKSTEP_ROBUST_PROGRAM};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return argv;
}

std::string all_of(const ProcessResult& result) {
  return "exit code " + std::to_string(result.exit_code) + (result.timed_out ? ", HANGS" : "") +
         "\n--- out\n" + result.out + "--- err\n" + result.err;
}

SmallDisk::SmallDisk(const std::string& bytes) {
  std::filesystem::create_directory(path());
  const std::string size = "size=" + bytes;
  if (mount("lockstep-test", path().c_str(), "tmpfs", 0, size.c_str()) != 0) {
    problem_ = std::string("this user cannot mount a small file system: ") + std::strerror(errno);
  }
}

SmallDisk::~SmallDisk() {
  if (mounted()) umount2(path().c_str(), MNT_DETACH);
}

void SmallDisk::make_read_only() {
  if (mount(nullptr, path().c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr) != 0) {
    throw std::runtime_error(std::string("remount: ") + std::strerror(errno));
  }
}

}  // namespace lockstep::testing
