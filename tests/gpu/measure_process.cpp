// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure.h"
#include "support/process.h"

// Processes: which devices are visible, forks, ends, contexts that are lost or not current.
namespace measure {
namespace {

using namespace cuda_facts;  // NOLINT: the vocabulary of these programs

// In a child, so that the driver is started under the environment in question.
std::string in_child(const std::function<std::string()>& body) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    const std::string text = body();
    const bool written = write(ends[1], text.data(), text.size()) >= 0;
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char buffer[512];
  for (ssize_t count = 0; (count = read(ends[0], buffer, sizeof buffer)) > 0;) {
    text.append(buffer, static_cast<std::size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) text += " killed by signal " + std::to_string(WTERMSIG(status));
  return text;
}

std::string count_of_devices() {
  const CUresult started = cuInit(0);
  int count = -1;
  const CUresult counted = cuDeviceGetCount(&count);
  return list(started) + "/" + (counted == CUDA_SUCCESS ? list(count) : "-");
}

std::string visible_devices() {
  // The first device's UUID, from a child: this process must not start the driver.
  unsetenv("CUDA_VISIBLE_DEVICES");
  const std::string uuid = in_child([] {
    CUuuid bytes{};
    if (cuInit(0) != CUDA_SUCCESS || cuDeviceGetUuid(&bytes, 0) != CUDA_SUCCESS) {
      return std::string();
    }
    char text[64];
    char* to = text + std::snprintf(text, sizeof text, "GPU-");
    for (int i = 0; i < 16; ++i) {
      const bool dash = i == 4 || i == 6 || i == 8 || i == 10;
      to +=
          std::snprintf(to, 4, dash ? "-%02x" : "%02x", static_cast<unsigned char>(bytes.bytes[i]));
    }
    return std::string(text);
  });
  std::string text = "not set: " + in_child(count_of_devices);
  for (const std::string& value :
       {std::string(), std::string("-1"), std::string("0"), std::string("1,0"), std::string("0,,1"),
        std::string("1,1"), std::string("99"), std::string("0,99,1"), std::string("abc"), uuid,
        uuid.substr(0, 12), "0," + uuid, std::string("MIG-00000000-0000-0000-0000-000000000000")}) {
    setenv("CUDA_VISIBLE_DEVICES", value.c_str(), 1);
    const std::string shown = value == uuid                 ? "GPU-<uuid>"
                              : value == uuid.substr(0, 12) ? "GPU-<8 hex>"
                              : value == "0," + uuid        ? "0,GPU-<uuid>"
                                                            : value;
    text += "; '" + shown + "': " + in_child(count_of_devices);
  }
  return text;
}

std::string after_a_fork() {
  const std::string before = in_child(count_of_devices);
  const Driver& driver = Driver::get();
  const std::string after = in_child([&] {
    int count = 0;
    CUdeviceptr address = 0;
    return list(cuInit(0), cuDeviceGetCount(&count), cuMemAlloc(&address, 16),
                driver.launch(nullptr));
  });
  return "forked before cuInit: " + before +
         "; after: init, count, allocate, launch in the child " + after +
         "; launch in the parent " + list(driver.launch(nullptr));
}

CUdeviceptr g_memory = 0;
CUstream g_stream = nullptr;

std::string exit_with_live_objects() {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    std::atexit([] {
      const CUresult freed = cuMemFree(g_memory), destroyed = cuStreamDestroy(g_stream);
      CUcontext context = nullptr;
      std::fprintf(stderr, "%d %d %d", freed, destroyed, cuCtxGetCurrent(&context));
    });
    const Driver& driver = Driver::get();
    g_memory = driver.x;
    g_stream = make_stream();
    driver.launch(g_stream);
    std::exit(3);
  }
  close(ends[1]);
  char buffer[256] = "";
  const ssize_t count = read(ends[0], buffer, sizeof buffer - 1);
  int status = 0;
  waitpid(child, &status, 0);
  return "free, stream destroy, current context in a handler registered before cuInit: " +
         std::string(buffer, static_cast<std::size_t>(std::max<ssize_t>(count, 0))) +
         ", exit code " + list(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}

std::string without_the_context() {
  const Driver& driver = Driver::get();
  CUstream s = make_stream();
  CUevent event = make_event();
  const CUcontext other = other_context();
  float host = 0;
  std::string text;
  for (const bool nothing : {true, false}) {
    if (!nothing && other == nullptr) {
      text += "; another device's: not asked, there is one device";
      break;
    }
    cuCtxSetCurrent(nothing ? nullptr : other);
    text += nothing ? "nothing current: " : "; another device's current: ";
    text += list(driver.launch(s), cuGraphLaunch(driver.other_exec, s),
                 cuMemcpyHtoDAsync(driver.x, &host, 4, s), cuMemsetD8Async(driver.y, 0, 4, s),
                 cuEventRecord(event, s), cuStreamWaitEvent(s, event, 0), cuStreamQuery(s) % 600,
                 cuStreamSynchronize(s));
    text += ", allocate " + list([] {
              CUdeviceptr address = 0;
              return cuMemAlloc(&address, 16);
            }());
  }
  cuCtxSetCurrent(driver.context);
  return text;
}

std::string lost_context() {
  const Driver& driver = Driver::get();
  if (simulated()) return "not asked: a bad address is bad for the whole process there";
  CUstream s = make_stream();
  CUevent event = make_event();
  float factor = 1;
  int count = 1;
  CUdeviceptr nowhere = 16;
  void* arguments[] = {&factor, &nowhere, &nowhere, &count};
  const CUresult launched =
      cuLaunchKernel(driver.saxpy, 1, 1, 1, 1, 1, 1, 0, s, arguments, nullptr);
  const CUresult waited = cuStreamSynchronize(s);
  CUdeviceptr address = 0;
  std::string text = "launch, wait " + list(launched, waited);
  text +=
      "; then wait, launch, allocate, free, record, query, context " +
      list(cuStreamSynchronize(s), driver.launch(s), cuMemAlloc(&address, 16), cuMemFree(driver.y),
           cuEventRecord(event, s), cuEventQuery(event), cuCtxSynchronize());
  text += "; stream destroy " + list(cuStreamDestroy(s));
  // The simulated driver has no reset.
  using Reset = CUresult (*)(CUdevice);
  if (const auto reset =
          reinterpret_cast<Reset>(dlsym(RTLD_DEFAULT, "cuDevicePrimaryCtxReset_v2"))) {
    text += "; reset of the primary context " + list(reset(driver.device)) +
            ", allocate after it " + list(cuMemAlloc(&address, 16));
  }
  return text;
}

}  // namespace

std::vector<Question> process_questions() {
  return {
      {"DEV-04", "`CUDA_VISIBLE_DEVICES`: code of cuInit / devices", visible_devices},
      {"PLUG-05", "calls after the driver's own exit handlers", exit_with_live_objects},
      {"PLUG-07", "use after a fork", after_a_fork},
      {"context", "own stream: launch, graph launch, copy, set, record, wait, query, synchronise",
       without_the_context},
      {"lost", "a kernel that writes to a bad address", lost_context},
  };
}

}  // namespace measure
