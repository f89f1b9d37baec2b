// SPDX-License-Identifier: Apache-2.0
#include "crashes.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <dlfcn.h>
#include <execinfo.h>
#include <string_view>
#include <ucontext.h>
#include <unistd.h>

namespace hsa_sim {
namespace {

std::string_view file_of(const Dl_info& info) {
  const std::string_view path = info.dli_fname == nullptr ? "" : info.dli_fname;
  return path.substr(path.rfind('/') + 1);
}

// abort(), std::terminate() and memcpy() end a process on behalf of somebody.
bool acts_for_others(std::string_view file) {
  for (const std::string_view prefix :
       {"libc.so", "libc-", "libstdc++.", "libgcc_s.", "ld-linux"}) {
    if (file.substr(0, prefix.size()) == prefix) return true;
  }
  return false;
}

// Not what a signal handler may do by the book (dladdr takes the loader's lock): the process is
// lost anyway, and whoever runs it has a time limit.
void say_where(int number, siginfo_t*, void* context) {
  const auto* const machine = static_cast<const ucontext_t*>(context);
  auto* const at = reinterpret_cast<void*>(machine->uc_mcontext.gregs[REG_RIP]);
  std::array<void*, 64> frames{};
  const int count = backtrace(frames.data(), static_cast<int>(frames.size()));
  // The frames above the fault are this function and the kernel's trampoline.
  int first = 0;
  for (int i = 0; i < count; ++i) {
    if (frames[static_cast<std::size_t>(i)] == at) first = i;
  }
  std::string_view culprit, caller;
  std::string_view entered;  // the culprit's outermost function that has a name
  for (int i = first; i < count; ++i) {
    Dl_info info{};
    if (dladdr(frames[static_cast<std::size_t>(i)], &info) == 0) continue;
    const std::string_view file = file_of(info);
    if (culprit.empty()) {
      if (acts_for_others(file)) continue;
      culprit = file;
    } else if (file != culprit) {
      caller = file;
      break;
    }
    if (info.dli_sname != nullptr) entered = info.dli_sname;
  }
  char line[512];
  const auto width = [](std::string_view text) { return static_cast<int>(text.size()); };
  if (entered.empty()) entered = "a function without a name";
  if (caller.empty()) caller = "nobody known";
  const int length = std::snprintf(
      line, sizeof line, "\nhsa_sim: signal %d in %.*s, called as %.*s by %.*s\n", number,
      width(culprit), culprit.data(), width(entered), entered.data(), width(caller), caller.data());
  const auto bytes = std::min(static_cast<std::size_t>(length), sizeof line - 1);
  (void)!write(STDERR_FILENO, line, bytes);
  // The handler is gone by SA_RESETHAND: the process ends by this signal, as it would have.
  raise(number);
}

}  // namespace

void name_crashes() {
  // The first call loads the unwinder, which allocates.
  std::array<void*, 2> frames{};
  backtrace(frames.data(), static_cast<int>(frames.size()));
  struct sigaction action {};
  action.sa_sigaction = say_where;
  action.sa_flags = SA_SIGINFO | static_cast<int>(SA_RESETHAND) | SA_NODEFER;
  for (const int number : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) {
    sigaction(number, &action, nullptr);
  }
}

}  // namespace hsa_sim
