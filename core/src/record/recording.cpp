// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>
#include <lockstep/recording.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <sys/mman.h>
#include <thread>
#include <unistd.h>

#include "recorder/memory.h"
#include "src/record/record_folder.h"
#include "src/record/recorded_image.h"
#include "src/record/trace_name.h"

namespace lockstep {

namespace fs = std::filesystem;
using record::RecordedImage;

namespace {

[[noreturn]] void fail(const std::string& what, int error) {
  ErrorContext context;
  context.native_code = error;
  context.call = "write";
  throw Error(ErrorCode::kInputOutput, what + ": " + std::strerror(error), context);
}

[[noreturn]] void refuse_existing(const fs::path& file) {
  ErrorContext context;
  context.native_code = EEXIST;
  context.call = "write";
  context.where = file.string();
  throw Error(ErrorCode::kInputOutput,
              "the trace exists already: " + file.string() +
                  "; use another name, or replace it with --force",
              context);
}

}  // namespace

struct Recording::Impl {
  RecordingOptions options;
  fs::path folder;
  int hub_file = -1;  ///< locked
  recorder::Hub* hub = nullptr;
  std::vector<std::pair<std::string, std::string>> environment;
  std::set<std::string> known;  ///< names of images
  std::vector<std::unique_ptr<RecordedImage>> images;
  std::map<std::int64_t, bool> named;  ///< ranks whose first name is taken
  std::vector<RecordedFile> files;
  /// One trace that cannot be written costs the others nothing: it is told at the end, and once by
  /// poll().
  std::optional<Error> first_failure;
  std::size_t failures = 0;
  std::vector<RunningProcess> running;
  bool told = false;
  bool folder_lost = false;
  bool finished = false;

  explicit Impl(RecordingOptions given) : options(std::move(given)) {
    check_output();
    const record::RecordFolder made = record::make_record_folder();
    folder = made.path;
    hub_file = made.hub;
    hub = recorder::map_hub(folder.c_str());
    if (hub == nullptr) fail("cannot map the hub in " + folder.string(), errno);
    environment.emplace_back("LOCKSTEP_RECORD_DIR", folder.string());
  }

  ~Impl() {
    if (hub != nullptr) munmap(hub, sizeof(recorder::Hub));
    if (hub_file >= 0) close(hub_file);
    images.clear();
    std::error_code ignored;  // a destructor has nobody to tell; the folder is in memory
    if (!folder.empty()) fs::remove_all(folder, ignored);
  }

  void check_output() {
    if (!options.output.has_filename()) {
      throw Error(ErrorCode::kInvalidArgument,
                  "a recording needs the name of a file, e.g. out.jsonl");
    }
    std::error_code error;
    options.output = fs::absolute(options.output, error);
    if (error) fail("cannot find the folder of " + options.output.string(), error.value());
    const std::string folder_of_output = options.output.parent_path().string();
    if (!fs::is_directory(folder_of_output, error)) {
      throw Error(ErrorCode::kInvalidArgument,
                  "the folder of the trace does not exist: " + folder_of_output +
                      (error ? ": " + error.message() : std::string()));
    }
    // Ranks and further processes make files too, once the program runs: too late to refuse.
    if (!options.force) {
      const fs::path existing = record::existing_trace(options.output);
      if (!existing.empty()) refuse_existing(existing);
    }
    if (access(options.output.parent_path().c_str(), W_OK | X_OK) != 0) {
      fail("cannot write to " + options.output.parent_path().string(), errno);
    }
  }

  fs::path name_file(const recorder::Control& control) {
    const bool first = !std::exchange(named[control.rank], true);
    return record::trace_path(options.output, control.rank, first, control.pid, control.image);
  }

  void note(const Error& failure) {
    if (!first_failure) first_failure = failure;
  }

  void find_images() {
    std::vector<std::unique_ptr<RecordedImage>> fresh;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
      const fs::path& path = entry->path();
      if (path.extension() != ".image") continue;
      std::string name = path.filename().string();
      if (known.contains(name)) continue;
      auto image = RecordedImage::open(path);
      if (!image) continue;  // not complete yet
      known.insert(std::move(name));
      fresh.push_back(std::move(image));
    }
    if (error) lose_folder(error);
    std::sort(fresh.begin(), fresh.end(), [](const auto& left, const auto& right) {
      return left->created() < right->created();
    });
    for (auto& image : fresh) images.push_back(std::move(image));
  }

  /// Somebody has removed it: programs that have their rings go on being recorded.
  void lose_folder(std::error_code error) {
    if (folder_lost) return;
    folder_lost = true;
    ++failures;
    ErrorContext context;
    context.native_code = error.value();
    context.call = "write";
    note(Error(ErrorCode::kInputOutput,
               "programs that begin now are not recorded, as the folder of the recording cannot be "
               "read: " +
                   folder.string() + ": " + error.message(),
               context));
  }

  std::uint64_t drain() {
    find_images();
    std::uint64_t visited = 0;
    const auto namer = [this](const recorder::Control& control) { return name_file(control); };
    for (auto& image : images) {
      const bool alive = image->alive();
      visited += image->drain(namer, options.force);
      if (image->failure() != nullptr) note(*image->failure());
      if (!alive)
        complete(image, false);  // gives its memory back: there may be thousands of processes
    }
    std::erase(images, nullptr);
    return visited;
  }

  void complete(std::unique_ptr<RecordedImage>& image, bool runs) {
    if (runs) running.push_back({image->pid(), {}, {}});
    const auto namer = [this](const recorder::Control& control) { return name_file(control); };
    try {
      if (auto file = image->finish(namer, options.force, runs)) {
        if (runs) running.back().path = file->path;
        files.push_back(std::move(*file));
      }
    } catch (const Error& error) {
      ++failures;
      note(error);
    }
    if (runs) running.back().command = image->command();
    image->remove_files();
    image.reset();
  }

  /// Processes whose records are there and could not be read to the end. Until then they may have
  /// been incomplete, or memory short.
  void note_unreadable() {
    std::error_code ignored;  // told by find_images()
    for (fs::directory_iterator entry(folder, ignored), end; !ignored && entry != end;
         entry.increment(ignored)) {
      const fs::path& path = entry->path();
      std::error_code gone;
      if (path.extension() != ".image" || known.contains(path.filename().string()) ||
          fs::file_size(path, gone) == 0 || gone) {
        continue;
      }
      ++failures;
      ErrorContext context;
      context.call = "write";
      note(
          Error(ErrorCode::kInputOutput,
                "process " + path.stem().string() +
                    " is not recorded: its records cannot be mapped, or it uses another version of "
                    "Lockstep than this one",
                context));
    }
  }

  /// Children of the program that are about to end, too.
  void wait_for_the_last() {
    constexpr std::chrono::milliseconds kGrace{200};
    const auto end = std::chrono::steady_clock::now() + kGrace;
    do {
      drain();
      const bool left = std::any_of(images.begin(), images.end(),
                                    [](const auto& image) { return image->runs(); });
      if (!left) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    } while (std::chrono::steady_clock::now() < end);
  }

  void complete_all() {
    find_images();
    for (auto& image : images) complete(image, image->runs());
    images.clear();
  }

  void finish() {
    wait_for_the_last();
    find_images();
    note_unreadable();
    complete_all();
    complete_all();  // some may have begun meanwhile
    // Who begins now is told that it is not recorded.
    std::error_code ignored;  // the destructor tries again
    fs::remove_all(folder, ignored);
    if (files.empty() && failures == 0) write_empty();
    std::stable_partition(files.begin(), files.end(),
                          [this](const RecordedFile& file) { return file.path == options.output; });
  }

  void write_empty() {
    TraceInfo header;
    header.producer = "lockstep 0.1";
    header.command = options.command;
    TraceWriterOptions writer_options;
    writer_options.force = options.force;
    TraceWriter writer(options.output, header, writer_options);
    writer.finish();
    files.push_back(RecordedFile{});
    files.back().path = options.output;
  }
};

Recording::Recording(RecordingOptions options)
    : impl_(std::make_unique<Impl>(std::move(options))) {}

Recording::~Recording() = default;

const std::vector<std::pair<std::string, std::string>>& Recording::environment() const noexcept {
  return impl_->environment;
}

void Recording::poll(std::chrono::milliseconds wait) {
  if (impl_->finished) return;
  const std::uint32_t seen = impl_->hub->wake.load(std::memory_order_acquire);
  const std::uint64_t visited = impl_->drain();
  if (impl_->first_failure && !std::exchange(impl_->told, true)) throw *impl_->first_failure;
  if (visited == 0 && wait.count() > 0) {
    recorder::futex_wait(&impl_->hub->wake, seen,
                         static_cast<std::uint64_t>(wait.count()) * 1000000u);
  }
}

std::vector<RecordedFile> Recording::finish() {
  if (!impl_->finished) {
    impl_->finished = true;
    impl_->finish();
    if (impl_->first_failure) {
      const Error& first = *impl_->first_failure;
      std::string message = first.what();
      if (impl_->failures > 1) {
        message += "; traces that are not complete: " + std::to_string(impl_->failures);
      }
      throw Error(first.code(), message, first.context());
    }
  }
  return impl_->files;
}

const std::vector<RunningProcess>& Recording::running() const noexcept { return impl_->running; }

}  // namespace lockstep
