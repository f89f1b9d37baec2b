// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>

#include <cinttypes>
#include <cstdio>
#include <fstream>

#include "robust/program.h"

namespace lockstep::robust {
namespace {

/// Peak of the memory this process has used, in KiB.
std::uint64_t peak_kib() {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("VmHWM:", 0) == 0) return std::stoull(line.substr(6));
  }
  return 0;
}

/// Forgets the peak up to now.
std::uint64_t begin_measuring() {
  std::ofstream("/proc/self/clear_refs") << 5;
  return peak_kib();
}

int tell(std::uint64_t before) {
  const std::uint64_t peak = peak_kib();
  std::printf("%" PRIu64 "\n", peak > before ? peak - before : 0);
  return 0;
}

}  // namespace

int record_many(const Arguments& arguments) {
  const std::uint64_t count = std::stoull(arguments.at(0));
  const Device device = Device::open("host");
  const Stream stream = device.create_stream();
  const Kernel add = device.compile(kSource, {.kernels = {"add"}}).kernel("add");
  const auto value = device.allocate<int>(1);
  stream.launch(add, {}, value, 1);
  stream.synchronize();
  const std::uint64_t before = begin_measuring();
  for (std::uint64_t i = 1; i < count; ++i) {
    stream.launch(add, {}, value, 1);
    if (i % 1024 == 0) stream.synchronize();
  }
  stream.synchronize();
  return tell(before);
}

int write_many(const Arguments& arguments) {
  const std::uint64_t count = std::stoull(arguments.at(1));
  const std::uint64_t before = begin_measuring();
  TraceInfo info;
  info.producer = "robust_program";
  TraceWriter writer(arguments.at(0), info);
  LaunchTraceEntry kernel, copy;
  kernel.grid_y = kernel.grid_z = kernel.block_y = kernel.block_z = 1;
  kernel.block_x = 256;
  copy.kind = OperationKind::kMemcpy;
  copy.name = "hostMemcpyAsync";
  copy.memcpy_kind = MemcpyKind::kHtoD;
  for (std::uint64_t i = 0; i < count; ++i) {
    LaunchTraceEntry& entry = i % 8 == 7 ? copy : kernel;
    if (i % 8 == 7) {
      copy.memcpy_byte_size = 4 * (1 + i % 1000);
      copy.extent = {copy.memcpy_byte_size, 1, 1};
    } else {
      kernel.name = "layer_" + std::to_string(i % 24);
      kernel.grid_x = 1 + static_cast<std::uint32_t>(i % 61);
    }
    entry.stream_index = static_cast<std::uint32_t>(i % 3);
    entry.semantic_hash = 0;
    writer.write(entry);
  }
  writer.finish();
  return tell(before);
}

int compare_many(const Arguments& arguments) {
  const std::uint64_t before = begin_measuring();
  const DiffReport report = diff_files(arguments.at(0), arguments.at(1));
  if (!report.equal) return 1;
  return tell(before);
}

}  // namespace lockstep::robust
