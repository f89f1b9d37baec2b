// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace bench {

/// A CUPTI subscriber that does as little as a recorder can: at each launch it keeps the kernel's
/// name, shape and stream, and the result. CUPTI is looked for when the program runs, and the few
/// declarations that are needed are our own: no header of NVIDIA's is used. One a process.
class CuptiSubscriber {
 public:
  /// Loads CUPTI and subscribes. Callbacks are off.
  CuptiSubscriber();
  ~CuptiSubscriber();
  CuptiSubscriber(const CuptiSubscriber&) = delete;
  CuptiSubscriber& operator=(const CuptiSubscriber&) = delete;

  bool usable() const { return subscriber_ != nullptr; }
  /// Which library is used, or each place that was tried and what it said.
  const std::string& words() const { return words_; }
  /// Callbacks for `cuLaunchKernel`, and nothing else.
  void enable(bool on);
  std::uint64_t launches() const;

 private:
  bool load(const std::string& path);

  void* library_ = nullptr;
  void* subscriber_ = nullptr;
  std::string words_;
};

}  // namespace bench
