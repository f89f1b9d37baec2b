// SPDX-License-Identifier: Apache-2.0
#include "enqueue.h"

namespace lockstep::gpu {

void init_record(lockstep_record& record, lockstep_record_kind kind, std::uint32_t name,
                 const lockstep_device* device, std::uint64_t stream) {
  init_call(record, kind, name, device, stream);
  std::memset(reinterpret_cast<char*>(&record) + record.struct_size, 0,
              sizeof record - record.struct_size);
  record.struct_size = sizeof record;
}

void finish(lockstep_stream* stream, void* begun, bool recorded, Result result,
            const lockstep_record& record, bool makes_node) {
  CaptureBinding binding;
  if (result == kSuccess && may_capture(stream)) {
    binding = bind_capture(stream, &record, makes_node);
  }
  if (!recorded) return;
  std::uint32_t flags = 0;
  if (result != kSuccess) flags |= LOCKSTEP_RECORD_FAILED;
  if (binding.captured) flags |= LOCKSTEP_RECORD_CAPTURED;
  recorder().end(begun, flags, binding.graph, binding.node);
}

}  // namespace lockstep::gpu
