// SPDX-License-Identifier: Apache-2.0
#include "cupti_subscriber.h"

#include <array>
#include <cstdlib>
#include <dlfcn.h>
#include <glob.h>
#include <stdexcept>
#include <vector>

namespace bench {
namespace {

constexpr int kDriverDomain = 1;
constexpr std::uint32_t kLaunchKernel = 307;
constexpr int kEnter = 0;

struct CallbackData {
  int site;
  const char* function;
  const void* parameters;
  void* result;
  const char* symbol;
  void* context;
  std::uint32_t context_uid;
  std::uint64_t* correlation_data;
  std::uint32_t correlation;
};
struct LaunchParameters {
  void* function;
  unsigned grid[3], block[3], shared;
  void* stream;
  void** arguments;
  void** extra;
};
using Callback = void (*)(void*, int, std::uint32_t, const void*);
using Subscribe = int (*)(void**, Callback, void*);
using Unsubscribe = int (*)(void*);
using EnableCallback = int (*)(std::uint32_t, void*, int, std::uint32_t);

struct Kept {
  const char* symbol = nullptr;
  LaunchParameters launch{};
  int result = 0;
};
// Launches are made by one thread: that of the benchmark.
std::array<Kept, 4096> g_kept;
std::uint64_t g_launches = 0;

void keep(void*, int, std::uint32_t, const void* data) {
  const auto& call = *static_cast<const CallbackData*>(data);
  Kept& kept = g_kept[g_launches % g_kept.size()];
  if (call.site == kEnter) {
    kept.symbol = call.symbol;
    kept.launch = *static_cast<const LaunchParameters*>(call.parameters);
  } else {
    kept.result = *static_cast<const int*>(call.result);
    ++g_launches;
  }
}

std::vector<std::string> candidates() {
  if (const char* named = std::getenv("LOCKSTEP_CUPTI_LIBRARY")) return {named};
  std::vector<std::string> paths;
  const char* const patterns[] = {"/usr/local/cuda/extras/CUPTI/lib64/libcupti.so*",
                                  "/usr/local/cuda/lib64/libcupti.so*",
                                  "/usr/local/cuda/targets/*/lib/libcupti.so*",
                                  "/usr/local/cuda-1*/extras/CUPTI/lib64/libcupti.so*",
                                  "/usr/local/lib/python3*/*-packages/nvidia/*/lib/libcupti.so*",
                                  "/usr/lib/python3*/*-packages/nvidia/*/lib/libcupti.so*",
                                  "/opt/*/lib/python3*/site-packages/nvidia/*/lib/libcupti.so*"};
  for (const char* pattern : patterns) {
    glob_t found{};
    if (glob(pattern, 0, nullptr, &found) == 0 && found.gl_pathc > 0) {
      paths.emplace_back(found.gl_pathv[0]);
    }
    globfree(&found);
  }
  for (const char* name : {"libcupti.so.13", "libcupti.so.12", "libcupti.so"}) {
    paths.emplace_back(name);
  }
  return paths;
}

}  // namespace

CuptiSubscriber::CuptiSubscriber() {
  for (const std::string& path : candidates()) {
    if (load(path)) return;
  }
}

bool CuptiSubscriber::load(const std::string& path) {
  const auto say = [&](const std::string& what) {
    words_ += (words_.empty() ? "" : "; ") + path + ": " + what;
    return false;
  };
  library_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library_ == nullptr) return say(dlerror());
  const auto subscribe = reinterpret_cast<Subscribe>(dlsym(library_, "cuptiSubscribe"));
  if (subscribe == nullptr || dlsym(library_, "cuptiEnableCallback") == nullptr ||
      dlsym(library_, "cuptiUnsubscribe") == nullptr) {
    return say("no CUPTI");
  }
  const int result = subscribe(&subscriber_, keep, nullptr);
  if (result != 0) {
    subscriber_ = nullptr;
    return say("cuptiSubscribe answers " + std::to_string(result));
  }
  words_ = path;
  return true;
}

CuptiSubscriber::~CuptiSubscriber() {
  if (!usable()) return;
  reinterpret_cast<Unsubscribe>(dlsym(library_, "cuptiUnsubscribe"))(subscriber_);
}

void CuptiSubscriber::enable(bool on) {
  const auto call = reinterpret_cast<EnableCallback>(dlsym(library_, "cuptiEnableCallback"));
  const int result = call(on ? 1 : 0, subscriber_, kDriverDomain, kLaunchKernel);
  if (result != 0) {
    throw std::runtime_error("cuptiEnableCallback answers " + std::to_string(result));
  }
}

std::uint64_t CuptiSubscriber::launches() const { return g_launches; }

}  // namespace bench
