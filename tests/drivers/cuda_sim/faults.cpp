// SPDX-License-Identifier: Apache-2.0
#include "faults.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <unistd.h>

namespace cuda_sim {
namespace {

[[noreturn]] void bad_value(const char* variable, std::string_view value, const char* expected) {
  std::fprintf(stderr, "cuda_sim: %s='%.*s': expected %s\n", variable,
               static_cast<int>(value.size()), value.data(), expected);
  std::_Exit(2);
}

std::uint64_t number(const char* variable, std::string_view whole, std::string_view digits,
                     std::uint64_t low, std::uint64_t high, const char* expected) {
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (code != std::errc() || end != digits.data() + digits.size() || value < low || value > high) {
    bad_value(variable, whole, expected);
  }
  return value;
}

void read(const char* variable, std::uint64_t low, std::uint64_t high, const char* expected,
          std::uint64_t* value) {
  if (const char* text = std::getenv(variable)) {
    *value = number(variable, text, text, low, high, expected);
  }
}

}  // namespace

Faults& faults() {
  static auto* const instance = new Faults;
  return *instance;
}

Faults::Faults() {
  std::uint64_t devices = 1;
  read("CUDA_SIM_DEVICES", 0, 64, "the number of devices, 0 to 64", &devices);
  devices_ = static_cast<std::uint32_t>(devices);
  memory_bytes_ = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                  static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  std::uint64_t mebibytes = memory_bytes_ >> 20;
  read("CUDA_SIM_MEMORY_MB", 1, std::uint64_t{1} << 30, "MiB a device, at least 1", &mebibytes);
  memory_bytes_ = mebibytes << 20;
  read("CUDA_SIM_DELAY_US", 0, 60'000'000, "microseconds, at most a minute", &delay_us_);
  read("CUDA_SIM_OOM_BYTES", 1, UINT64_MAX, "a size in bytes", &out_of_memory_bytes_);
  read("CUDA_SIM_LOST_AT", 1, UINT64_MAX, "the number of a kernel, from 1", &lost_at_);
  if (const char* text = std::getenv("CUDA_SIM_FAIL")) parse_rules(text);
  if (const char* path = std::getenv("CUDA_SIM_LOG")) {
    log_file_ = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log_file_ < 0) bad_value("CUDA_SIM_LOG", path, "a file that can be written");
  }
}

void Faults::parse_rules(const std::string& text) {
  constexpr const char* kExpected = "NAME:N:CODE, several separated by commas";
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    const std::size_t first = item.find(':');
    const std::size_t second = first == item.npos ? item.npos : item.find(':', first + 1);
    if (second == item.npos || first == 0) bad_value("CUDA_SIM_FAIL", text, kExpected);
    auto rule = std::make_unique<Rule>();
    rule->name = item.substr(0, first);
    rule->number = number("CUDA_SIM_FAIL", text, item.substr(first + 1, second - first - 1), 1,
                          UINT64_MAX, kExpected);
    rule->code =
        static_cast<int>(number("CUDA_SIM_FAIL", text, item.substr(second + 1), 1, 999, kExpected));
    rules_.push_back(std::move(rule));
  }
}

bool Faults::next_kernel_is_lost() noexcept {
  return lost_at_ != 0 && kernels_.fetch_add(1) + 1 == lost_at_;
}

int Faults::enter(const char* name) noexcept {
  int code = 0;
  for (const auto& rule : rules_) {
    if (rule->name != "*" && rule->name != name) continue;
    if (rule->seen.fetch_add(1) + 1 == rule->number) code = rule->code;
  }
  return code;
}

void Faults::log(const char* name, int result) noexcept {
  if (log_file_ < 0) return;
  char line[160];
  const int length =
      std::snprintf(line, sizeof line, "%llu %s %d\n",
                    static_cast<unsigned long long>(calls_.fetch_add(1) + 1), name, result);
  // One write a line: lines of several threads and processes do not mix.
  if (write(log_file_, line, static_cast<std::size_t>(length)) != length) {
    std::fprintf(stderr, "cuda_sim: CUDA_SIM_LOG cannot be written: %s\n", std::strerror(errno));
    close(log_file_);
    log_file_ = -1;
  }
}

}  // namespace cuda_sim
