// SPDX-License-Identifier: Apache-2.0
#include "settings.h"

#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>
#include <unistd.h>

#include "error.h"

namespace lockstep::hostrt {
namespace {

std::uint64_t parse(const char* variable, std::string_view whole, std::string_view digits,
                    std::uint64_t low, std::uint64_t high, const char* expected) {
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (code != std::errc() || end != digits.data() + digits.size() || value < low || value > high) {
    throw Error(Native::kInvalidValue,
                std::string(variable) + "='" + std::string(whole) + "': expected " + expected);
  }
  return value;
}

}  // namespace

Settings read_settings() {
  Settings settings;
  if (const char* text = secure_getenv("LOCKSTEP_HOST_DEVICES")) {
    settings.devices = static_cast<std::uint32_t>(
        parse("LOCKSTEP_HOST_DEVICES", text, text, 1, 64, "the number of host devices, 1 to 64"));
  }
  settings.memory_bytes = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                          static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  if (const char* text = secure_getenv("LOCKSTEP_HOST_MEMORY_MB")) {
    settings.memory_bytes = parse("LOCKSTEP_HOST_MEMORY_MB", text, text, 1, std::uint64_t{1} << 30,
                                  "MiB of memory a device, at least 1")
                            << 20;
  }
  if (const char* text = secure_getenv("LOCKSTEP_HOST_FAIL")) {
    constexpr std::string_view kPrefix = "alloc:";
    std::string_view rest = text;
    const bool known = rest.starts_with(kPrefix);
    rest.remove_prefix(known ? kPrefix.size() : rest.size());
    settings.fail_allocation = parse("LOCKSTEP_HOST_FAIL", text, rest, 1, UINT64_MAX,
                                     "alloc:N, N counting allocations from 1");
  }
  return settings;
}

}  // namespace lockstep::hostrt
