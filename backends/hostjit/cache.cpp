// SPDX-License-Identifier: Apache-2.0
#include "cache.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <fstream>
#include <mutex>
#include <sstream>
#include <sys/auxv.h>
#include <sys/file.h>
#include <unistd.h>
#include <xxhash.h>

#include "hostjit.h"

namespace lockstep::hostjit {
namespace {

namespace fs = std::filesystem;

constexpr char kMagic[8] = {'L', 'S', 'J', 'I', 'T', '\0', '\0', '\1'};
constexpr std::size_t kTrailer = sizeof(std::uint64_t) * 2 + sizeof kMagic;
constexpr std::string_view kWork = "work.";
constexpr std::string_view kStack = "stack ";

std::uint64_t read_u64(std::span<const std::byte> bytes, std::size_t offset) {
  std::uint64_t value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

std::string hash_text(std::span<const std::byte> bytes) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx",
                static_cast<unsigned long long>(XXH3_64bits(bytes.data(), bytes.size())));
  return text;
}

// What stands between the shared object and the trailer; nothing when there is no such thing.
std::optional<std::string> sealed_list(std::span<const std::byte> image) {
  const std::uint64_t length = read_u64(image, image.size() - kTrailer);
  if (length > image.size() - kTrailer) return std::nullopt;
  const std::size_t begin = image.size() - kTrailer - length;
  return std::string(reinterpret_cast<const char*>(image.data()) + begin, length);
}

bool dependencies_unchanged(std::span<const std::byte> image) {
  const auto list = sealed_list(image);
  if (!list) return false;
  std::istringstream lines(*list);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(kStack)) continue;
    if (line.size() < 18) return false;
    const auto bytes = read_file(line.substr(17));
    if (!bytes || hash_text(*bytes) != line.substr(0, 16)) return false;
  }
  return true;
}

// Kernels run with the program's privileges: with elevated ones they do not come from a folder that
// the caller's environment names.
std::string wanted_folder() {
  if (const char* chosen = secure_getenv("LOCKSTEP_CACHE_DIR");
      chosen != nullptr && *chosen != '\0')
    return fs::absolute(chosen).string();
  if (const char* base = secure_getenv("XDG_CACHE_HOME"); base != nullptr && *base == '/')
    return std::string(base) + "/lockstep";
  if (const char* home = secure_getenv("HOME"); home != nullptr && *home == '/')
    return std::string(home) + "/.cache/lockstep";
  return {};
}

// Creates the folder where needed; returns why it cannot be used, or nothing.
std::string make_usable(const std::string& folder) {
  if (folder.empty()) {
    return getauxval(AT_SECURE) != 0
               ? "elevated privileges: the environment is not asked for a folder"
               : "neither LOCKSTEP_CACHE_DIR, XDG_CACHE_HOME nor HOME is set";
  }
  std::error_code error;
  fs::create_directories(folder + "/hostjit/locks", error);
  if (error) return folder + ": " + error.message();
  if (access((folder + "/hostjit").c_str(), W_OK | X_OK) != 0)
    return folder + ": " + std::strerror(errno);
  std::string probe = folder + "/hostjit/probe.XXXXXX";
  const int descriptor = mkostemp(probe.data(), O_CLOEXEC);
  if (descriptor < 0) return folder + ": " + std::strerror(errno);
  close(descriptor);
  unlink(probe.c_str());
  return {};
}

// Lives as long as the process.
struct PrivateFolder {
  std::mutex mutex;
  std::string path;
  pid_t owner = 0;

  ~PrivateFolder() {
    std::error_code ignored;
    if (!path.empty() && owner == getpid()) fs::remove_all(path, ignored);
  }
};

// Of programs that were killed while they compiled, which takes minutes at most.
void remove_abandoned_work(const std::string& folder) {
  constexpr std::chrono::hours kAbandoned{24};
  const auto now = fs::file_time_type::clock::now();
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;  // tidying up: what cannot be removed does no harm
    if (!entry->path().filename().native().starts_with(kWork)) continue;
    const auto changed = fs::last_write_time(entry->path(), ignored);
    if (!ignored && now - changed > kAbandoned) fs::remove_all(entry->path(), ignored);
  }
}

}  // namespace

bool has_seal_magic(std::span<const std::byte> image) noexcept {
  return image.size() > kTrailer + 4 && std::memcmp(image.data(), "\177ELF", 4) == 0 &&
         std::memcmp(image.data() + image.size() - sizeof kMagic, kMagic, sizeof kMagic) == 0;
}

bool has_valid_seal(std::span<const std::byte> image) {
  if (!has_seal_magic(image)) return false;
  const std::size_t hashed = image.size() - sizeof kMagic - sizeof(std::uint64_t);
  return XXH3_64bits(image.data(), hashed) == read_u64(image, hashed);
}

std::optional<std::vector<std::byte>> read_file(const std::string& path) {
  // A folder opens, and says that it has more bytes than there can be.
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return std::nullopt;
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return std::nullopt;
  const std::streamoff size = file.tellg();
  if (size < 0) return std::nullopt;
  std::vector<std::byte> bytes(static_cast<std::size_t>(size));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), size);
  if (!file) return std::nullopt;
  return bytes;
}

std::uint64_t sealed_stack_bytes(std::span<const std::byte> image) {
  const auto list = sealed_list(image);
  if (!list || !list->starts_with(kStack)) return 0;
  return std::strtoull(list->c_str() + kStack.size(), nullptr, 10);
}

void seal_image(const std::string& path, const std::vector<std::string>& dependencies,
                std::uint64_t stack_bytes) {
  auto bytes = read_file(path);
  if (!bytes) throw Error(ErrorCode::kNoStorage, path + ": the compiler wrote no image");
  std::string list = std::string(kStack) + std::to_string(stack_bytes) + "\n";
  for (const std::string& dependency : dependencies) {
    const auto header = read_file(dependency);
    // One that is gone already never has this hash again, for all that is known.
    list += (header ? hash_text(*header) : std::string(16, '-')) + " " + dependency + "\n";
  }
  const auto append = [&](const void* data, std::size_t size) {
    const auto* begin = static_cast<const std::byte*>(data);
    bytes->insert(bytes->end(), begin, begin + size);
  };
  append(list.data(), list.size());
  const std::uint64_t length = list.size();
  append(&length, sizeof length);
  const std::uint64_t hash = XXH3_64bits(bytes->data(), bytes->size());
  append(&hash, sizeof hash);
  append(kMagic, sizeof kMagic);
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file.write(reinterpret_cast<const char*>(bytes->data()),
             static_cast<std::streamsize>(bytes->size()));
  file.close();
  if (!file) throw Error(ErrorCode::kNoStorage, path + ": " + std::strerror(errno));
}

Cache Cache::open() {
  Cache cache;
  const std::string wanted = wanted_folder();
  const std::string problem = make_usable(wanted);
  if (problem.empty()) {
    cache.folder_ = wanted + "/hostjit";
    return cache;
  }
  static PrivateFolder fallback;
  const std::lock_guard lock(fallback.mutex);
  if (fallback.path.empty() || fallback.owner != getpid()) {
    const char* base = secure_getenv("TMPDIR");
    std::string folder =
        std::string(base != nullptr && *base == '/' ? base : "/tmp") + "/lockstep-hostjit.XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) {
      throw Error(ErrorCode::kNoStorage, "no place for compiled kernels: " + problem + "; " +
                                             folder + ": " + std::strerror(errno) +
                                             "; set LOCKSTEP_CACHE_DIR to a writable folder");
    }
    fallback.path = folder;
    fallback.owner = getpid();
    cache.note_ =
        "compiled kernels are not kept (" + problem + "); using " + folder + " for this process";
  }
  const std::string second = make_usable(fallback.path);
  if (!second.empty()) throw Error(ErrorCode::kNoStorage, second);
  cache.folder_ = fallback.path + "/hostjit";
  return cache;
}

std::optional<std::string> Cache::find(const std::string& key) const {
  const std::string path = folder_ + "/" + key + ".so";
  const auto image = read_file(path);
  if (!image || !has_valid_seal(*image) || !dependencies_unchanged(*image)) return std::nullopt;
  return path;
}

std::string Cache::publish(const std::string& file, const std::string& key) const {
  const std::string path = folder_ + "/" + key + ".so";
  std::error_code error;
  fs::rename(file, path, error);
  if (error) throw Error(ErrorCode::kNoStorage, path + ": " + error.message());
  return path;
}

Cache::Lock::Lock(const Cache& cache, const std::string& key)
    : descriptor_(::open((cache.folder_ + "/locks/" + key.substr(0, 2)).c_str(),
                         O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {
  // Where locks do not work, images are made twice: each is published whole all the same.
  while (descriptor_ >= 0 && flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
  }
}

Cache::Lock::~Lock() {
  if (descriptor_ < 0) return;
  // A child that the program forked meanwhile shares the lock: closing alone would leave it locked
  // for as long as that child lives.
  flock(descriptor_, LOCK_UN);
  close(descriptor_);
}

Cache::WorkFolder::WorkFolder(const Cache& cache)
    : path_(cache.folder_ + "/" + std::string(kWork) + "XXXXXX") {
  remove_abandoned_work(cache.folder_);
  if (mkdtemp(path_.data()) == nullptr)
    throw Error(ErrorCode::kNoStorage, path_ + ": " + std::strerror(errno));
}

Cache::WorkFolder::~WorkFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace lockstep::hostjit
