// SPDX-License-Identifier: Apache-2.0
#pragma once

// The folder of images that all processes of a user share, and the seal at the end of each image by
// which a torn, damaged or outdated file is known.
//
// An image is an ELF shared object followed by: a list of the headers it was compiled from ("hash
// path" lines) that begins with "stack" and the bytes that its frames need there, u64 length of
// that list, u64 XXH3 of all bytes before this field, magic "LSJIT\0\0\1".

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep::hostjit {

// True when the seal is there and right.
bool has_valid_seal(std::span<const std::byte> image);
bool has_seal_magic(std::span<const std::byte> image) noexcept;

// Reads a whole file; nullopt when it cannot be read.
std::optional<std::vector<std::byte>> read_file(const std::string& path);

// Of an image with a valid seal; 0 when it was made before that was asked for.
std::uint64_t sealed_stack_bytes(std::span<const std::byte> image);

// Appends the seal. `dependencies` are headers outside our own folders.
void seal_image(const std::string& path, const std::vector<std::string>& dependencies,
                std::uint64_t stack_bytes);

class Cache {
 public:
  // Finds and creates the folder. Throws Error(kNoStorage) when not even a private one is had.
  static Cache open();

  // Path of the image when it is whole and its headers are unchanged.
  std::optional<std::string> find(const std::string& key) const;

  // Moves a sealed file into the cache in one step; returns its path.
  std::string publish(const std::string& file, const std::string& key) const;

  // Held while one image is made, so that processes that want the same one wait for the first.
  class Lock {
   public:
    Lock(const Cache& cache, const std::string& key);
    ~Lock();
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    int descriptor_;
  };

  // A new empty folder on the cache's file system, removed with everything in it. Making one
  // removes those that killed programs have left for more than a day.
  class WorkFolder {
   public:
    explicit WorkFolder(const Cache& cache);
    ~WorkFolder();
    WorkFolder(const WorkFolder&) = delete;
    WorkFolder& operator=(const WorkFolder&) = delete;
    const std::string& path() const { return path_; }

   private:
    std::string path_;
  };

  // Why a private folder is used, the first time in a process; else empty.
  const std::string& note() const { return note_; }

 private:
  std::string folder_;
  std::string note_;
};

}  // namespace lockstep::hostjit
