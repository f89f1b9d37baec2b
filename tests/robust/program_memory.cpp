// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "robust/program.h"

namespace lockstep::robust {

int allocate_everything(const Arguments&) {
  const Device device = Device::open("host");
  Stream stream = device.create_stream();
  const Kernel add = device.compile(kSource, {.kernels = {"add"}}).kernel("add");
  const auto plain = device.allocate<int>(64);
  const auto pinned = device.allocate_pinned<int>(64);
  const auto ordered = device.allocate_async<int>(64, stream);
  // Outlives the copies that are on their way when an allocation fails and all this is unwound.
  static std::vector<int> own(64, 3);
  const auto registered = device.register_host<int>(own);
  std::iota(pinned.span().begin(), pinned.span().end(), 0);
  stream.copy(plain, pinned);
  stream.copy(ordered, registered);
  // Memory that a graph allocates for itself, at each launch.
  const GraphExec exec = stream
                             .capture([&](StreamRef& s) {
                               const auto scratch = device.allocate_async<int>(1, s);
                               s.fill(scratch, 1);
                               s.launch(add, {}, scratch, 1);
                               s.copy(plain.subview(0, 1), BufferView<const int>(scratch));
                             })
                             .instantiate();
  for (int i = 0; i < 3; ++i) exec.launch(stream);
  std::vector<int> result(64);
  stream.copy_and_wait(result, plain);
  std::printf("%d %d\n", result[0], result[63]);
  return result[0] == 2 && result[63] == 63 ? 0 : 1;
}

int tell_environment(const Arguments&) {
  const std::vector<Device> all = Device::all();
  const auto devices = std::count_if(all.begin(), all.end(), [](const Device& candidate) {
    return candidate.backend() == "host";
  });
  const Device device = Device::open("host");
  const Stream stream = device.create_stream();
  const Kernel add = device.compile(kSource, {.kernels = {"add"}}).kernel("add");
  const auto value = device.allocate<int>(1);
  stream.fill(value, 0);
  stream.launch(add, {}, value, 5);
  std::vector<int> result(1);
  stream.copy_and_wait(result, value);
  std::printf("devices %d, value %d\n", static_cast<int>(devices), result[0]);
  return 0;
}

}  // namespace lockstep::robust
