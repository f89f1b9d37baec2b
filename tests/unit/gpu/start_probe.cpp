// SPDX-License-Identifier: Apache-2.0
// Starts the plugin named by its argument and prints what came of it, one item a line: code,
// native code, call, message, then the device count and what opening device 0 says.
#include <lockstep/backend.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  void* file = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (file == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 2;
  }
  const auto query =
      reinterpret_cast<lockstep_backend_query_function>(dlsym(file, "lockstep_backend_query"));
  lockstep_error error;
  std::memset(&error, 0, sizeof error);
  error.struct_size = sizeof error;
  lockstep_host host{};
  host.struct_size = sizeof host;
  host.abi_min = LOCKSTEP_BACKEND_ABI_MIN;
  host.abi_max = LOCKSTEP_BACKEND_ABI_MAX;
  if (argc > 2 && std::strcmp(argv[2], "newer-host") == 0) host.abi_min = host.abi_max = 99000;
  const lockstep_backend* backend = query(&host, &error);
  if (backend == nullptr) {
    std::printf("query %d\n%s\n", error.code, error.message);
    return 0;
  }
  std::uint32_t count = 0;
  std::printf("before %d\n", backend->device_count(&count, nullptr));
  const lockstep_code code = backend->initialize(&error);
  std::printf("%d\n%lld\n%s\n%s\n", code, static_cast<long long>(error.native_code), error.call,
              error.message);
  std::printf("native name [%s]\n", error.native_name);
  std::printf("again %d\n", backend->initialize(nullptr));
  const lockstep_code counted = backend->device_count(&count, &error);
  std::printf("count %d %u\n", counted, count);
  lockstep_device* device = nullptr;
  std::printf("open %d\n", backend->device_open(0, &device, &error));
  if (count > 0) {
    lockstep_device_info info;
    std::memset(&info, 0, sizeof info);
    info.struct_size = sizeof info;
    const lockstep_code described = backend->device_info(0, &info, &error);
    std::printf("info %d [%s] [%s] [%s]\n%s\n", described, info.name, info.arch, info.driver,
                backend->capabilities(0));
  }
  if (code == LOCKSTEP_OK) {
    std::fflush(stdout);
    const pid_t child = fork();
    if (child == 0) {
      const lockstep_code in_child = backend->device_count(&count, &error);
      std::printf("forked %d\n%s\n", in_child, error.message);
      std::fflush(stdout);
      _exit(0);
    }
    waitpid(child, nullptr, 0);
  }
  backend->stream_destroy(nullptr);
  backend->event_destroy(nullptr);
  backend->module_destroy(nullptr);
  backend->graph_destroy(nullptr);
  backend->graph_exec_destroy(nullptr);
  return 0;
}
