// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <thread>
#include <unistd.h>

#include "crashes.h"

namespace hsa_sim {
namespace {

[[noreturn]] void bad_value(const char* variable, std::string_view value, const char* expected) {
  std::fprintf(stderr, "hsa_sim: %s='%.*s' makes no sense; expected is %s\n", variable,
               static_cast<int>(value.size()), value.data(), expected);
  std::fflush(stderr);
  _exit(2);
}

std::uint64_t number(const char* variable, std::string_view text, std::uint64_t least,
                     std::uint64_t most, const char* expected) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most) {
    bad_value(variable, text, expected);
  }
  return value;
}

void read(const char* variable, std::uint64_t least, std::uint64_t most, const char* expected,
          std::uint64_t* to) {
  if (const char* text = std::getenv(variable)) {
    *to = number(variable, text, least, most, expected);
  }
}

// Numbers of EF_AMDGPU_MACH_AMDGCN_*.
struct KnownArchitecture {
  const char* name;
  const char* features;
  std::uint32_t mach;
  std::uint32_t wave_size;
};
constexpr KnownArchitecture kKnown[] = {
    {"gfx906", ":sramecc+:xnack-", 0x2f, 64},
    {"gfx908", ":sramecc+:xnack-", 0x30, 64},
    {"gfx90a", ":sramecc+:xnack-", 0x3f, 64},
    {"gfx942", ":sramecc+:xnack-", 0x4c, 64},
    {"gfx1030", "", 0x36, 32},
    {"gfx1100", "", 0x41, 32},
    {"gfx1101", "", 0x46, 32},
};

}  // namespace

Settings& settings() {
  static auto* const instance = new Settings;
  return *instance;
}

void complain(const std::string& what) noexcept {
  std::fprintf(stderr, "hsa_sim: %s\n", what.c_str());
  settings().log("complaint " + what);
}

Settings::Settings() {
  std::uint64_t devices = 1;
  read("HSA_SIM_DEVICES", 0, 16, "the number of GPUs, 0 to 16", &devices);
  devices_ = static_cast<std::uint32_t>(devices);
  const char* isa = std::getenv("HSA_SIM_ISA");
  parse_architectures(isa != nullptr ? isa : "gfx90a");
  std::uint64_t mebibytes = 4096;
  read("HSA_SIM_MEMORY_MB", 1, std::uint64_t{1} << 20, "MiB a GPU, 1 to 1048576", &mebibytes);
  memory_bytes_ = mebibytes << 20;
  read("HSA_SIM_DELAY_US", 0, 60'000'000, "microseconds, at most a minute", &delay_us_);
  read("HSA_SIM_DELAY_BARRIERS_US", 0, 60'000'000, "microseconds, at most a minute",
       &delay_barriers_us_);
  read("HSA_SIM_OOM_BYTES", 1, UINT64_MAX, "a size in bytes", &out_of_memory_bytes_);
  read("HSA_SIM_LOST_AT", 1, UINT64_MAX, "the number of a kernel, from 1", &lost_at_);
  if (const char* text = std::getenv("HSA_SIM_FAIL")) parse_rules(text);
  std::uint64_t names_crashes = 0;
  read("HSA_SIM_NAME_CRASHES", 0, 1, "0 or 1", &names_crashes);
  if (names_crashes != 0) name_crashes();
  if (const char* path = std::getenv("HSA_SIM_LOG")) {
    log_file_ = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log_file_ < 0) bad_value("HSA_SIM_LOG", path, "a file that can be written");
  }
}

void Settings::parse_architectures(const std::string& text) {
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    const auto* const known =
        std::find_if(std::begin(kKnown), std::end(kKnown),
                     [&](const KnownArchitecture& candidate) { return item == candidate.name; });
    if (known == std::end(kKnown)) {
      bad_value("HSA_SIM_ISA", text, "gfx906, gfx908, gfx90a, gfx942, gfx1030, gfx1100 or gfx1101");
    }
    architectures_.push_back({known->name,
                              std::string("amdgcn-amd-amdhsa--") + known->name + known->features,
                              known->mach, known->wave_size});
  }
  if (architectures_.empty()) bad_value("HSA_SIM_ISA", text, "an architecture");
}

void Settings::parse_rules(const std::string& text) {
  constexpr const char* kExpected = "NAME:N:CODE, several separated by commas";
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    const std::size_t first = item.find(':');
    const std::size_t second = first == item.npos ? item.npos : item.find(':', first + 1);
    if (second == item.npos || first == 0) bad_value("HSA_SIM_FAIL", text, kExpected);
    auto rule = std::make_unique<Rule>();
    rule->name = item.substr(0, first);
    rule->number = number("HSA_SIM_FAIL", item.substr(first + 1, second - first - 1), 1, UINT64_MAX,
                          kExpected);
    rule->status =
        static_cast<int>(number("HSA_SIM_FAIL", item.substr(second + 1), 1, 65535, kExpected));
    rules_.push_back(std::move(rule));
  }
}

const Architecture& Settings::architecture(std::uint32_t device) const noexcept {
  return architectures_[std::min<std::size_t>(device, architectures_.size() - 1)];
}

bool Settings::next_kernel_is_lost() noexcept {
  return lost_at_ != 0 && kernels_.fetch_add(1) + 1 == lost_at_;
}

namespace {
void sleep_us(std::uint64_t time) {
  if (time > 0) std::this_thread::sleep_for(std::chrono::microseconds(time));
}
}  // namespace

void Settings::delay() const noexcept { sleep_us(delay_us_); }
void Settings::delay_barrier() const noexcept { sleep_us(delay_barriers_us_); }

int Settings::enter(const char* name) noexcept {
  int status = 0;
  for (const auto& rule : rules_) {
    if (rule->name != "*" && rule->name != name) continue;
    if (rule->seen.fetch_add(1) + 1 == rule->number) status = rule->status;
  }
  return status;
}

void Settings::log(const std::string& line) noexcept {
  if (log_file_ < 0) return;
  const std::string whole = line + '\n';
  // One write a line: lines of several threads and processes do not mix.
  if (write(log_file_, whole.data(), whole.size()) != static_cast<ssize_t>(whole.size())) {
    std::fprintf(stderr, "hsa_sim: HSA_SIM_LOG cannot be written: %s\n", std::strerror(errno));
    close(log_file_);
    log_file_ = -1;
  }
}

}  // namespace hsa_sim
