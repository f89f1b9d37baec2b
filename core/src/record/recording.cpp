// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>
#include <lockstep/recording.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <sys/mman.h>
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
    options.output = fs::absolute(options.output);
    if (!fs::is_directory(options.output.parent_path())) {
      throw Error(ErrorCode::kInvalidArgument, "the folder of the trace does not exist: " +
                                                   options.output.parent_path().string());
    }
    if (!options.force && fs::exists(options.output)) {
      throw Error(ErrorCode::kInputOutput, "the trace exists already: " + options.output.string() +
                                               "; use another name, or replace it with --force");
    }
    if (access(options.output.parent_path().c_str(), W_OK | X_OK) != 0) {
      fail("cannot write to " + options.output.parent_path().string(), errno);
    }
  }

  fs::path name_file(const recorder::Control& control) {
    const bool first = !std::exchange(named[control.rank], true);
    return record::trace_path(options.output, control.rank, first, control.pid, control.image);
  }

  void find_images() {
    std::vector<std::unique_ptr<RecordedImage>> fresh;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (entry.path().extension() != ".image") continue;
      std::string name = entry.path().filename().string();
      if (known.contains(name)) continue;
      auto image = RecordedImage::open(entry.path());
      if (!image) continue;  // not complete yet
      known.insert(std::move(name));
      fresh.push_back(std::move(image));
    }
    std::sort(fresh.begin(), fresh.end(), [](const auto& left, const auto& right) {
      return left->created() < right->created();
    });
    for (auto& image : fresh) images.push_back(std::move(image));
  }

  std::uint64_t drain() {
    find_images();
    std::uint64_t visited = 0;
    const auto namer = [this](const recorder::Control& control) { return name_file(control); };
    for (auto& image : images) {
      const bool alive = image->alive();
      visited += image->drain(namer, options.force);
      image->check();
      if (!alive) complete(image);  // gives its memory back: there may be thousands of processes
    }
    std::erase(images, nullptr);
    return visited;
  }

  void complete(std::unique_ptr<RecordedImage>& image) {
    const auto namer = [this](const recorder::Control& control) { return name_file(control); };
    if (auto file = image->finish(namer, options.force)) files.push_back(std::move(*file));
    image->remove_files();
    image.reset();
  }

  void finish() {
    find_images();
    for (auto& image : images) complete(image);
    images.clear();
    if (files.empty()) write_empty();
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
  if (impl_->drain() == 0 && wait.count() > 0) {
    recorder::futex_wait(&impl_->hub->wake, seen,
                         static_cast<std::uint64_t>(wait.count()) * 1000000u);
  }
}

std::vector<RecordedFile> Recording::finish() {
  if (!impl_->finished) {
    impl_->finished = true;
    impl_->finish();
  }
  return impl_->files;
}

}  // namespace lockstep
