// SPDX-License-Identifier: Apache-2.0
#include "recorder/settings.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace lockstep::recorder {
namespace {

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;
constexpr std::uint64_t kDefaultMebibytes = 8;
constexpr std::uint64_t kMaximumMebibytes = std::uint64_t{1} << 20;

bool read_number(const char* text, std::uint64_t* number) noexcept {
  if (*text < '0' || *text > '9') return false;  // strtoull takes signs and blanks
  char* end = nullptr;
  errno = 0;
  *number = std::strtoull(text, &end, 10);
  return errno == 0 && *end == '\0';
}

/// A rank counts only where there is more than one: Slurm sets its variables for single programs.
std::int64_t find_rank() noexcept {
  static constexpr struct {
    const char* rank;
    const char* size;
  } kVariables[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                    {"PMIX_RANK", nullptr},
                    {"PMI_RANK", "PMI_SIZE"},
                    {"MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"},
                    {"RANK", "WORLD_SIZE"},
                    {"SLURM_PROCID", "SLURM_NTASKS"}};
  for (const auto& variable : kVariables) {
    const char* text = secure_getenv(variable.rank);
    std::uint64_t rank = 0;
    if (text == nullptr || !read_number(text, &rank) || rank > 0xffffffffu) continue;
    const char* size_text = variable.size != nullptr ? secure_getenv(variable.size) : nullptr;
    std::uint64_t size = 0;
    if (size_text != nullptr && read_number(size_text, &size) && size <= 1) continue;
    return static_cast<std::int64_t>(rank);
  }
  return -1;
}

}  // namespace

// Settings of whoever starts a program with elevated privileges are not its owner's: they could
// name any file or folder. secure_getenv leaves them out.
bool read_settings(Settings* settings, char* message, std::size_t capacity) noexcept {
  settings->ring_bytes = kDefaultMebibytes * kMebibyte;
  settings->rank = find_rank();
  settings->directory[0] = '\0';
  if (const char* text = secure_getenv("LOCKSTEP_TRACE_BUFFER_MB"); text != nullptr) {
    std::uint64_t mebibytes = 0;
    if (!read_number(text, &mebibytes) || mebibytes == 0 || mebibytes > kMaximumMebibytes) {
      std::snprintf(message, capacity,
                    "LOCKSTEP_TRACE_BUFFER_MB is '%.64s', which is not a whole number from 1 to "
                    "%llu: set it to the mebibytes that each launching thread may buffer, or "
                    "unset it for the default of %llu",
                    text, static_cast<unsigned long long>(kMaximumMebibytes),
                    static_cast<unsigned long long>(kDefaultMebibytes));
      return false;
    }
    settings->ring_bytes = mebibytes * kMebibyte;
  }
  if (const char* text = secure_getenv("LOCKSTEP_RECORD_DIR"); text != nullptr && *text != '\0') {
    if (std::strlen(text) >= sizeof(settings->directory)) {
      std::snprintf(message, capacity, "LOCKSTEP_RECORD_DIR is longer than %zu bytes",
                    sizeof(settings->directory) - 1);
      return false;
    }
    std::strcpy(settings->directory, text);
  }
  return true;
}

}  // namespace lockstep::recorder
