// SPDX-License-Identifier: Apache-2.0
#include "src/record/record_folder.h"

#include <lockstep/error.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "recorder/layout.h"

namespace lockstep::record {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kPrefix = "lockstep-record-";

[[noreturn]] void fail(const std::string& what, int error, const char* hint = "") {
  ErrorContext context;
  context.native_code = error;
  context.call = "write";
  throw Error(ErrorCode::kInputOutput, what + ": " + std::strerror(error) + hint, context);
}

/// Memory, where the system has it: the rings are written at every launch.
fs::path parent_folder() {
  if (access("/dev/shm", W_OK | X_OK) == 0) return "/dev/shm";
  const char* chosen = secure_getenv("TMPDIR");
  return chosen == nullptr || *chosen == '\0' ? "/tmp" : chosen;
}

/// One that is half made belongs to a recording that begins, or was killed while it did.
bool is_old(const struct stat& status) {
  constexpr std::chrono::hours kOld{1};
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return now - std::chrono::seconds(status.st_mtim.tv_sec) > kOld;
}

/// Nobody holds the lock of a folder whose recording was killed.
bool is_left_behind(const fs::path& folder) {
  struct stat status {};
  if (lstat(folder.c_str(), &status) != 0 || !S_ISDIR(status.st_mode) ||
      status.st_uid != geteuid()) {
    return false;
  }
  const int hub = open((folder / "hub").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (hub < 0) return is_old(status);
  struct stat hub_status {};
  const bool complete = fstat(hub, &hub_status) == 0 &&
                        hub_status.st_size == static_cast<off_t>(sizeof(recorder::Hub));
  const bool left = (complete || is_old(status)) && flock(hub, LOCK_EX | LOCK_NB) == 0;
  close(hub);
  return left;
}

void remove_left_behind(const fs::path& parent) {
  std::error_code error;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().native().rfind(kPrefix, 0) != 0) continue;
    std::error_code ignored;  // tidying up: what cannot be removed does no harm
    if (is_left_behind(entry->path())) fs::remove_all(entry->path(), ignored);
  }
}

}  // namespace

RecordFolder make_record_folder() {
  const fs::path parent = parent_folder();
  remove_left_behind(parent);
  std::string name = (parent / kPrefix).string() + "XXXXXX";
  if (mkdtemp(name.data()) == nullptr) {
    fail("cannot make a folder in " + parent.string(), errno,
         "; recording needs /dev/shm, or a folder in TMPDIR, that can be written");
  }
  RecordFolder folder;
  folder.path = name;
  const std::string path = name + "/hub";
  folder.hub = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  // Locked before it is complete: a complete one that is not locked was left behind. Programs whose
  // rings are full look whether it is locked, too.
  const bool made = folder.hub >= 0 && flock(folder.hub, LOCK_EX | LOCK_NB) == 0 &&
                    ftruncate(folder.hub, sizeof(recorder::Hub)) == 0;
  if (!made) {
    const int error = errno;
    if (folder.hub >= 0) close(folder.hub);
    std::error_code ignored;
    fs::remove_all(folder.path, ignored);
    fail("cannot make " + path, error);
  }
  return folder;
}

}  // namespace lockstep::record
