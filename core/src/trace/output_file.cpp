// SPDX-License-Identifier: Apache-2.0
#include "src/trace/output_file.h"

#include <lockstep/error.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>
#include <zstd.h>

namespace lockstep {
namespace {

std::atomic<unsigned> next_temporary{0};

constexpr mode_t kFileMode = 0666;  // less the process's umask

}  // namespace

struct OutputFile::Impl {
  std::filesystem::path path;   ///< the place asked for, links followed
  std::filesystem::path aside;  ///< where it is written meanwhile, "" when in place
  int file = -1;
  bool force = false;
  bool sync = false;

  Error error(std::string_view doing, int reason) const {
    std::string hint;
    if (reason == EEXIST) {
      hint = " (to have it replaced: --force, or LOCKSTEP_TRACE_FORCE=1 beside LOCKSTEP_TRACE)";
    }
    ErrorContext context;
    context.where = path.string();
    context.call = "write";
    context.native_code = reason;
    return Error(
        ErrorCode::kInputOutput,
        fmt::format("cannot {} {}: {}{}", doing, path.string(), std::strerror(reason), hint),
        context);
  }

  /// Out of the way of a program that writes to a standard output that it was started without: it
  /// would write into this file.
  void leave_standard_numbers() {
    if (file < 0 || file > STDERR_FILENO) return;
    const int moved = ::fcntl(file, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int reason = errno;
    ::close(file);
    file = moved;
    errno = reason;
  }

  void open(Mode mode) {
    struct stat status = {};
    const bool exists = ::stat(path.c_str(), &status) == 0;
    if (exists && !S_ISREG(status.st_mode)) {
      // /dev/null, a pipe: there is nothing to replace, and renaming over it would destroy it.
      file = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
      leave_standard_numbers();
      if (file < 0) throw error("write", errno);
      return;
    }
    if (exists && !force) throw error("create", EEXIST);
    if (exists) {
      std::error_code ignored;  // a link that leads nowhere is written to as it stands
      const auto followed = std::filesystem::canonical(path, ignored);
      if (!ignored) path = followed;
    }
    if (mode == Mode::kAside) {
      aside = path.parent_path() /
              fmt::format(".{}.{}.{}.tmp", path.filename().string(), ::getpid(), next_temporary++);
      sync = true;
    } else if (exists && ::unlink(path.c_str()) != 0 && errno != ENOENT) {
      // A new file: whoever reads the old one keeps reading the old one.
      throw error("replace", errno);
    }
    const std::filesystem::path& place = mode == Mode::kAside ? aside : path;
    file = ::open(place.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kFileMode);
    leave_standard_numbers();
    if (file < 0) {
      const int reason = errno;
      aside.clear();
      throw error("create", reason);
    }
  }

  void publish() {
    if (aside.empty()) return;
    int result = 0;
    if (force) {
      result = ::rename(aside.c_str(), path.c_str());
    } else {
      result = ::renameat2(AT_FDCWD, aside.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE);
      if (result != 0 && (errno == EINVAL || errno == ENOSYS)) {
        // File systems without that flag: a link is never made over an existing file.
        result = ::link(aside.c_str(), path.c_str());
        if (result == 0) ::unlink(aside.c_str());
      }
    }
    if (result != 0) throw error("create", errno);
    aside.clear();
  }

  ~Impl() {
    if (file >= 0) ::close(file);
    if (!aside.empty()) ::unlink(aside.c_str());
  }
};

OutputFile::OutputFile(const std::filesystem::path& path, Mode mode, bool force)
    : impl_(std::make_unique<Impl>()) {
  impl_->path = path;
  impl_->force = force;
  impl_->open(mode);
}
OutputFile::~OutputFile() = default;

void OutputFile::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(impl_->file, bytes.data(), bytes.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      throw impl_->error("write", errno);
    }
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

void OutputFile::finish() {
  if (impl_->sync && ::fsync(impl_->file) != 0 && errno != EINVAL && errno != EROFS) {
    throw impl_->error("write", errno);
  }
  const int result = ::close(impl_->file);
  impl_->file = -1;
  if (result != 0 && errno != EINTR) throw impl_->error("write", errno);
  impl_->publish();
}

struct ZstdFrames::Impl {
  ZSTD_CCtx* context = ZSTD_createCCtx();
  std::vector<char> out;
  ~Impl() { ZSTD_freeCCtx(context); }
};

ZstdFrames::ZstdFrames(int level) : impl_(std::make_unique<Impl>()) {
  if (impl_->context == nullptr) throw Error(ErrorCode::kOutOfMemory, "no memory to compress");
  if (level < ZSTD_minCLevel() || level > ZSTD_maxCLevel()) {
    throw Error(ErrorCode::kInvalidArgument,
                fmt::format("compression level {}: zstd has {} to {}", level, ZSTD_minCLevel(),
                            ZSTD_maxCLevel()));
  }
  ZSTD_CCtx_setParameter(impl_->context, ZSTD_c_compressionLevel, level);
  ZSTD_CCtx_setParameter(impl_->context, ZSTD_c_checksumFlag, 1);
}
ZstdFrames::~ZstdFrames() = default;

std::string_view ZstdFrames::frame(std::string_view text) {
  impl_->out.resize(ZSTD_compressBound(text.size()));
  const std::size_t size = ZSTD_compress2(impl_->context, impl_->out.data(), impl_->out.size(),
                                          text.data(), text.size());
  if (ZSTD_isError(size) != 0) {
    throw Error(ErrorCode::kInternal, fmt::format("cannot compress: {}", ZSTD_getErrorName(size)));
  }
  return {impl_->out.data(), size};
}

}  // namespace lockstep
