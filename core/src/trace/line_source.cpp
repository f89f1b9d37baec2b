// SPDX-License-Identifier: Apache-2.0
#include "src/trace/line_source.h"

#include <lockstep/error.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <fcntl.h>
#include <fmt/format.h>
#include <optional>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>
#include <vector>
#include <zstd.h>

#include "src/trace/trace_decode.h"

namespace lockstep {
namespace {

constexpr std::size_t kChunk = std::size_t{256} << 10;
/// A definition of a large graph is a line of many megabytes; more than this is no trace.
constexpr std::size_t kLongestLine = std::size_t{256} << 20;
/// Frames of our own need 2 MiB; a hostile one may not ask for gigabytes.
constexpr int kLargestWindowLog = 27;
constexpr std::string_view kZstdMagic = "\x28\xb5\x2f\xfd";
constexpr std::string_view kSkippableMagicTail = "\x2a\x4d\x18";

bool is_zstd(std::string_view start) {
  return start.substr(0, 4) == kZstdMagic ||
         (start.size() >= 4 && (static_cast<unsigned char>(start[0]) & 0xf0u) == 0x50u &&
          start.substr(1, 3) == kSkippableMagicTail);
}

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

}  // namespace

struct LineSource::Impl {
  std::filesystem::path path;
  int file = -1;
  std::uint64_t lines = 0;
  std::uint64_t bytes_read = 0;

  std::unique_ptr<ZSTD_DCtx, FreeContext> zstd;
  std::vector<char> compressed;
  std::size_t compressed_begin = 0, compressed_end = 0;
  bool inside_frame = false;

  std::vector<char> text;  ///< text[begin, end) is not handed out yet
  std::size_t begin = 0, end = 0, searched = 0;
  bool at_end = false;
  bool cut_frame = false;

  bool regular = false;  ///< and read by position, so that it can be read twice at a time
  bool looked_ahead = false;
  std::uint64_t given = 0;  ///< lines that next() gave, from look_ahead() on
  std::unique_ptr<Impl> ahead;
  std::deque<std::string> kept;  ///< with their padding
  std::string current;           ///< the line of `kept` that next() gave last
  std::optional<Error> failure;  ///< of a line that next() has not come to yet
  std::optional<std::pair<std::uint64_t, Status>> last;  ///< line and kind of the end

  Impl() = default;
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  ~Impl() {
    if (file >= 0) ::close(file);
  }

  Error error(ErrorCode code, const std::string& what) const {
    ErrorContext context;
    context.where = fmt::format("{}:{}", path.string(), lines + 1);
    return Error(code, fmt::format("{}: {}", context.where, what), context);
  }

  std::size_t read_some(char* into, std::size_t size) {
    while (true) {
      const ssize_t count = regular ? ::pread(file, into, size, static_cast<off_t>(bytes_read))
                                    : ::read(file, into, size);
      if (count >= 0) {
        bytes_read += static_cast<std::uint64_t>(count);
        return static_cast<std::size_t>(count);
      }
      if (errno != EINTR) {
        throw error(ErrorCode::kInputOutput, fmt::format("cannot read: {}", std::strerror(errno)));
      }
    }
  }

  void open() {
    file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) {
      const int reason = errno;
      throw Error(reason == ENOENT ? ErrorCode::kNotFound : ErrorCode::kInputOutput,
                  fmt::format("cannot open {}: {}", path.string(), std::strerror(reason)));
    }
    struct stat status = {};
    if (::fstat(file, &status) == 0 && S_ISDIR(status.st_mode)) {
      throw Error(ErrorCode::kInputOutput,
                  fmt::format("cannot read {}: it is a folder", path.string()));
    }
    regular = S_ISREG(status.st_mode);
    begin_reading();
  }

  /// The same file, whatever its name leads to by now.
  std::unique_ptr<Impl> again() const {
    auto second = std::make_unique<Impl>();
    second->path = path;
    second->regular = true;
    second->file = ::fcntl(file, F_DUPFD_CLOEXEC, 0);
    if (second->file < 0) {
      throw error(ErrorCode::kInputOutput,
                  fmt::format("cannot read it a second time: {}", std::strerror(errno)));
    }
    second->begin_reading();
    return second;
  }

  void begin_reading() {
    // The first bytes tell the two forms apart; a pipe may deliver them one by one.
    compressed.resize(kChunk);
    while (compressed_end < 4) {
      const std::size_t count = read_some(compressed.data() + compressed_end, 4 - compressed_end);
      if (count == 0) break;
      compressed_end += count;
    }
    if (is_zstd({compressed.data(), compressed_end})) {
      zstd.reset(ZSTD_createDCtx());
      if (!zstd) throw error(ErrorCode::kOutOfMemory, "no memory to decompress");
      ZSTD_DCtx_setParameter(zstd.get(), ZSTD_d_windowLogMax, kLargestWindowLog);
      return;
    }
    text.resize(kChunk + kLinePadding);
    std::memcpy(text.data(), compressed.data(), compressed_end);
    end = compressed_end;
    compressed = {};
  }

  /// Makes room for a chunk behind `end`, moving what is left to the front.
  void make_room() {
    if (begin != 0) {
      std::memmove(text.data(), text.data() + begin, end - begin);
      end -= begin;
      searched -= begin;
      begin = 0;
    }
    if (end > kLongestLine) {
      throw error(ErrorCode::kInvalidFile,
                  fmt::format("a line of more than {} MiB: not a trace", kLongestLine >> 20));
    }
    const std::size_t wanted = end + kChunk + kLinePadding;
    if (text.size() < wanted) text.resize(end < kChunk ? wanted : 2 * end + kChunk + kLinePadding);
  }

  void fill() {
    make_room();
    if (!zstd) {
      const std::size_t count = read_some(text.data() + end, text.size() - kLinePadding - end);
      if (count == 0) at_end = true;
      end += count;
      return;
    }
    ZSTD_outBuffer out{text.data(), text.size() - kLinePadding, end};
    while (out.pos == end) {
      if (compressed_begin == compressed_end) {
        compressed_begin = 0;
        compressed_end = read_some(compressed.data(), compressed.size());
        if (compressed_end == 0) {
          at_end = true;
          cut_frame = inside_frame;
          return;
        }
      }
      ZSTD_inBuffer in{compressed.data(), compressed_end, compressed_begin};
      const std::size_t result = ZSTD_decompressStream(zstd.get(), &out, &in);
      compressed_begin = in.pos;
      if (ZSTD_isError(result) != 0) {
        throw error(ErrorCode::kInvalidFile, fmt::format("damaged zstd frame before byte {}: {}",
                                                         bytes_read, ZSTD_getErrorName(result)));
      }
      inside_frame = result != 0;
    }
    end = out.pos;
  }

  Status read_line(std::string_view& line) {
    while (true) {
      const void* feed =
          searched < end ? std::memchr(text.data() + searched, '\n', end - searched) : nullptr;
      if (feed != nullptr) {
        const auto at = static_cast<std::size_t>(static_cast<const char*>(feed) - text.data());
        line = std::string_view(text.data() + begin, at - begin);
        begin = searched = at + 1;
        ++lines;
        return Status::kLine;
      }
      searched = end;
      if (at_end) return begin == end && !cut_frame ? Status::kEnd : Status::kCut;
      fill();
    }
  }

  Status look_ahead(std::string_view& line) {
    if (last) return last->second;
    if (!looked_ahead) given = lines;
    looked_ahead = true;
    if (regular && !ahead) {
      ahead = again();
      while (ahead->lines < given && ahead->read_line(line) == Status::kLine) {
      }
    }
    Impl& from = ahead ? *ahead : *this;
    const Status status = from.read_line(line);
    if (status != Status::kLine) {
      last.emplace(from.lines, status);
    } else if (!ahead) {
      std::string& copy = kept.emplace_back();
      copy.reserve(line.size() + kLinePadding);
      copy.append(line).append(kLinePadding, '\0');
      line = std::string_view(copy.data(), line.size());
    }
    return status;
  }

  Status next_after_look(std::string_view& line) {
    if (!kept.empty()) {
      current = std::move(kept.front());
      kept.pop_front();
      line = std::string_view(current.data(), current.size() - kLinePadding);
      ++given;
      return Status::kLine;
    }
    if (failure) throw *failure;
    if (last && given >= last->first) return last->second;
    const Status status = read_line(line);
    if (status == Status::kLine) ++given;
    return status;
  }
};

LineSource::LineSource(const std::filesystem::path& path) : impl_(std::make_unique<Impl>()) {
  impl_->path = path;
  impl_->open();
}
LineSource::~LineSource() = default;

LineSource::Status LineSource::next(std::string_view& line) {
  Impl& s = *impl_;
  return s.looked_ahead ? s.next_after_look(line) : s.read_line(line);
}

LineSource::Status LineSource::look_ahead(std::string_view& line) {
  try {
    return impl_->look_ahead(line);
  } catch (const Error& error) {
    if (!impl_->ahead) impl_->failure = error;
    throw;
  }
}

std::string_view LineSource::cut_text() const noexcept {
  return {impl_->text.data() + impl_->begin, impl_->end - impl_->begin};
}

std::uint64_t LineSource::lines_read() const noexcept {
  return impl_->looked_ahead ? impl_->given : impl_->lines;
}

}  // namespace lockstep
