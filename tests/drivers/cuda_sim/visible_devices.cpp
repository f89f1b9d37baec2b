// SPDX-License-Identifier: Apache-2.0
#include "visible_devices.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <sstream>

#include "faults.h"

namespace cuda_sim {
namespace {

constexpr int kNoDevice = 100, kInvalidDevice = 101;
constexpr char kUuidPrefix[] = "GPU-";

std::string uuid_text(std::uint32_t device) {
  std::string text = kUuidPrefix;
  const std::string bytes = uuid_of(device);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(bytes[i]));
    text += digits;
  }
  return text;
}

std::optional<std::uint32_t> by_number(const std::string& entry, std::uint32_t count) {
  std::uint32_t number = 0;
  const char* end = entry.data() + entry.size();
  const auto [rest, failure] = std::from_chars(entry.data(), end, number);
  if (failure != std::errc() || rest != end || number >= count) return std::nullopt;
  return number;
}

// By the beginning of a uuid that only one device has.
std::optional<std::uint32_t> by_uuid(const std::string& entry, std::uint32_t count) {
  std::optional<std::uint32_t> found;
  for (std::uint32_t device = 0; device < count; ++device) {
    if (uuid_text(device).compare(0, entry.size(), entry) != 0) continue;
    if (found) return std::nullopt;
    found = device;
  }
  return found;
}

}  // namespace

const VisibleDevices& visible() {
  static const auto* const once = new VisibleDevices(
      read_visible_devices(std::getenv("CUDA_VISIBLE_DEVICES"), faults().devices()));
  return *once;
}

std::string uuid_of(std::uint32_t device) {
  std::string bytes = "simulated driver";
  // In the first bytes too: an abbreviated uuid tells devices apart.
  bytes[3] = bytes[15] = static_cast<char>(device);
  return bytes;
}

VisibleDevices read_visible_devices(const char* list, std::uint32_t count) {
  VisibleDevices visible;
  if (list == nullptr) {
    for (std::uint32_t device = 0; device < count; ++device) visible.devices.push_back(device);
  } else {
    std::istringstream entries(list);
    // The first entry decides how all are read.
    const bool uuids = std::string(list).rfind(kUuidPrefix, 0) == 0;
    for (std::string entry; std::getline(entries, entry, ',');) {
      const auto device = uuids ? by_uuid(entry, count) : by_number(entry, count);
      if (!device || (uuids && entry.size() <= sizeof kUuidPrefix - 1)) break;
      if (std::count(visible.devices.begin(), visible.devices.end(), *device) != 0) {
        visible.code = kInvalidDevice;
        return visible;
      }
      visible.devices.push_back(*device);
    }
  }
  if (visible.devices.empty()) visible.code = kNoDevice;
  return visible;
}

}  // namespace cuda_sim
