// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>

#include "device.h"
#include "enqueue.h"
#include "launch.h"
#include "memory.h"

// Copies and sets: what they are, which driver call they take, and enqueuing them.
namespace lockstep::gpu {
namespace {

const char* const kDirections[] = {"any direction", "host to device", "device to host",
                                   "device to device", "host to host"};

std::uint64_t to_number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

struct Place {
  bool device = false;
  int ordinal = -1;
};
Place place_of(const void* address) {
  const PointerFacts facts = facts_of(address);
  return {is_device_side(facts.memory_kind), facts.device};
}

lockstep_code check_pitches(const Copy& copy, lockstep_error* error) {
  const auto bad = [&](std::uint64_t pitch, std::uint64_t slice, const char* side) {
    if (copy.height > 1 && pitch < copy.width) {
      return std::string(side) + " pitch " + std::to_string(pitch) + " is smaller than the width " +
             std::to_string(copy.width);
    }
    if (copy.depth > 1 && (slice < pitch * copy.height || slice % pitch != 0)) {
      return std::string(side) + " slice pitch " + std::to_string(slice) +
             " has to be a multiple of the pitch that holds all rows";
    }
    return std::string();
  };
  std::string problem = bad(copy.source_pitch, copy.source_slice_pitch, "the source");
  if (problem.empty()) {
    problem = bad(copy.destination_pitch, copy.destination_slice_pitch, "the destination");
  }
  if (problem.empty()) return LOCKSTEP_OK;
  return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "copy", problem);
}

// Rows and planes that are contiguous on both sides need no pitched call.
Copy folded(Copy copy) {
  if (copy.height > 1 && copy.source_pitch == copy.width && copy.destination_pitch == copy.width) {
    const std::uint64_t plane = copy.width * copy.height;
    if (copy.depth == 1 ||
        (copy.source_slice_pitch == plane && copy.destination_slice_pitch == plane)) {
      copy.width = plane * copy.depth;
      copy.height = copy.depth = 1;
    }
  }
  return copy;
}

}  // namespace

std::uint32_t direction_of(bool source_is_device, bool destination_is_device) {
  if (source_is_device) return destination_is_device ? LOCKSTEP_COPY_DTOD : LOCKSTEP_COPY_DTOH;
  return destination_is_device ? LOCKSTEP_COPY_HTOD : LOCKSTEP_COPY_HTOH;
}

Call call_for(std::uint32_t direction, std::uint64_t height, std::uint64_t depth, bool peer) {
  if (depth > 1) return peer ? Call::kCopy3DPeer : Call::kCopy3D;
  if (height > 1) return peer ? Call::kCopy3DPeer : Call::kCopy2D;
  if (peer) return Call::kCopyPeer;
  switch (direction) {
    case LOCKSTEP_COPY_HTOD:
      return Call::kCopyHostToDevice;
    case LOCKSTEP_COPY_DTOH:
      return Call::kCopyDeviceToHost;
    case LOCKSTEP_COPY_DTOD:
      return Call::kCopyDeviceToDevice;
    default:
      return Call::kCopyAny;
  }
}

lockstep_code plan_copy(const lockstep_copy_desc* desc, bool capturing, PlannedCopy* plan,
                        lockstep_error* error) {
  Copy& copy = plan->copy;
  copy.source = to_number(desc->source);
  copy.destination = to_number(desc->destination);
  copy.width = desc->width;
  copy.height = desc->height;
  copy.depth = desc->depth;
  const auto or_packed = [](std::uint64_t pitch, std::uint64_t packed) {
    return pitch != 0 ? pitch : packed;
  };
  copy.source_pitch = or_packed(desc->source_pitch, copy.width);
  copy.destination_pitch = or_packed(desc->destination_pitch, copy.width);
  copy.source_slice_pitch = or_packed(desc->source_slice_pitch, copy.source_pitch * copy.height);
  copy.destination_slice_pitch =
      or_packed(desc->destination_slice_pitch, copy.destination_pitch * copy.height);
  plan->empty = copy.width == 0 || copy.height == 0 || copy.depth == 0;
  if (!plan->empty) {
    if (const lockstep_code code = check_pitches(copy, error)) return code;
  }
  const Place from = place_of(desc->source);
  const Place to = place_of(desc->destination);
  plan->direction = direction_of(from.device, to.device);
  // Null pointers, which an empty copy may have, say nothing about a direction.
  const bool null_sided = desc->source == nullptr || desc->destination == nullptr;
  if (plan->empty && null_sided && desc->expected_direction != LOCKSTEP_COPY_NONE) {
    plan->direction = desc->expected_direction;
  }
  if (desc->expected_direction > LOCKSTEP_COPY_HTOH) {
    return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "copy", "unknown expected_direction");
  }
  if (desc->expected_direction != LOCKSTEP_COPY_NONE &&
      desc->expected_direction != plan->direction) {
    return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "copy",
                std::string("the copy was declared ") + kDirections[desc->expected_direction] +
                    ", but its pointers make it " + kDirections[plan->direction]);
  }
  copy.source_side = from.device ? Side::kDevice : Side::kHost;
  copy.destination_side = to.device ? Side::kDevice : Side::kHost;
  const int source_device = desc->source_device >= 0 ? desc->source_device : from.ordinal;
  const int destination_device =
      desc->destination_device >= 0 ? desc->destination_device : to.ordinal;
  const bool peer = plan->direction == LOCKSTEP_COPY_DTOD && source_device >= 0 &&
                    destination_device >= 0 && source_device != destination_device;
  if (peer) {
    plan->device = source_device;
    plan->peer_device = destination_device;
    copy.source_device = source_device;
    copy.destination_device = destination_device;
    copy.source_context = context_of(source_device);
    copy.destination_context = context_of(destination_device);
    if (copy.source_context == nullptr || copy.destination_context == nullptr) {
      return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "copy",
                  "both devices of a peer copy have to be open");
    }
  }
  const Copy flat = folded(copy);
  plan->call = call_for(plan->direction, flat.height, flat.depth, peer);
  if (peer && capturing && driver().traits().peer_call_illegal_in_capture) {
    plan->call = flat.height > 1 || flat.depth > 1 ? Call::kCopy3D : Call::kCopyAny;
  }
  return LOCKSTEP_OK;
}

void fill_copy(lockstep_record& record, const PlannedCopy& plan) {
  auto& to = record.of.copy;
  if (plan.device >= 0) record.device = plan.device;
  to.direction = plan.direction;
  to.peer_device = plan.peer_device;
  to.width = plan.empty ? 0 : plan.copy.width;
  to.height = plan.empty ? 1 : plan.copy.height;
  to.depth = plan.empty ? 1 : plan.copy.depth;
  to.source = plan.copy.source;
  to.source_pitch = plan.copy.source_pitch;
  to.source_slice_pitch = plan.copy.source_slice_pitch;
  to.destination = plan.copy.destination;
  to.destination_pitch = plan.copy.destination_pitch;
  to.destination_slice_pitch = plan.copy.destination_slice_pitch;
}

lockstep_code copy(lockstep_stream* stream, const lockstep_copy_desc* desc, lockstep_error* error) {
  ContextScope scope(stream->context);
  const bool capturing = is_capturing(stream);
  PlannedCopy plan;
  if (const lockstep_code code = plan_copy(desc, capturing, &plan, error)) return code;
  const auto fill = [&](lockstep_record& record) { fill_copy(record, plan); };
  if (plan.empty) {
    record_only(stream, LOCKSTEP_RECORD_MEMCPY, name_of(plan.call), fill);
    return LOCKSTEP_OK;
  }
  const Copy flat = folded(plan.copy);
  const Result result = enqueue(stream, LOCKSTEP_RECORD_MEMCPY, name_of(plan.call), true, fill,
                                [&] { return driver().copy(flat, plan.call, native_of(stream)); });
  return result == kSuccess
             ? LOCKSTEP_OK
             : fail_native(error, plan.call, result,
                           std::string(kDirections[plan.direction]) + ", " +
                               std::to_string(plan.copy.width) + " × " +
                               std::to_string(plan.copy.height) + " × " +
                               std::to_string(plan.copy.depth) + " bytes on " + describe(stream));
}

lockstep_code plan_set(const lockstep_set_desc* desc, PlannedSet* plan, lockstep_error* error) {
  if (desc->value_size != 1 && desc->value_size != 2 && desc->value_size != 4) {
    return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "set",
                "value_size has to be 1, 2 or 4, not " + std::to_string(desc->value_size));
  }
  Set& plane = plan->plane;
  plane.destination = to_number(desc->destination);
  plane.width = desc->width;
  plane.height = desc->height;
  plane.value_size = desc->value_size;
  plane.value =
      desc->value_size == 4 ? desc->value : desc->value & ((1U << (8U * desc->value_size)) - 1U);
  const std::uint64_t row = desc->width * desc->value_size;
  plane.pitch = desc->pitch != 0 ? desc->pitch : row;
  plan->planes = desc->depth;
  plan->slice_pitch = desc->slice_pitch != 0 ? desc->slice_pitch : plane.pitch * desc->height;
  plan->empty = desc->width == 0 || desc->height == 0 || desc->depth == 0;
  if (!plan->empty) {
    const std::uint64_t unit = desc->value_size;
    if (plane.destination % unit != 0 || (desc->height > 1 && plane.pitch % unit != 0) ||
        (desc->depth > 1 && plan->slice_pitch % unit != 0)) {
      return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "set",
                  "address and pitches of a set of " + std::to_string(unit * 8) +
                      "-bit values have to be multiples of " + std::to_string(unit));
    }
    if (desc->height > 1 && plane.pitch < row) {
      return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "set",
                  "pitch " + std::to_string(plane.pitch) + " is smaller than a row of " +
                      std::to_string(row) + " bytes");
    }
  }
  const bool flat = plan->empty || desc->height == 1 || plane.pitch == row;
  const int size = desc->value_size == 1 ? 0 : desc->value_size == 2 ? 1 : 2;
  constexpr Call kFlat[] = {Call::kSet8, Call::kSet16, Call::kSet32};
  constexpr Call kPitched[] = {Call::kSet2D8, Call::kSet2D16, Call::kSet2D32};
  plan->call = flat ? kFlat[size] : kPitched[size];
  return LOCKSTEP_OK;
}

void fill_set(lockstep_record& record, const Set& set) {
  auto& to = record.of.set;
  to.destination = set.destination;
  to.pitch = set.pitch;
  to.width = set.width * set.value_size;
  to.height = set.height;
  to.value = set.value;
  to.value_size = set.value_size;
}

lockstep_code set(lockstep_stream* stream, const lockstep_set_desc* desc, lockstep_error* error) {
  PlannedSet plan;
  if (const lockstep_code code = plan_set(desc, &plan, error)) return code;
  ContextScope scope(stream->context);
  if (plan.empty) {
    Set nothing = plan.plane;
    nothing.width = 0;
    nothing.height = 1;
    record_only(stream, LOCKSTEP_RECORD_MEMSET, name_of(plan.call),
                [&](lockstep_record& record) { fill_set(record, nothing); });
    return LOCKSTEP_OK;
  }
  Set plane = plan.plane;
  for (std::uint64_t index = 0; index < plan.planes; ++index) {
    plane.destination = plan.plane.destination + index * plan.slice_pitch;
    const Result result = enqueue(
        stream, LOCKSTEP_RECORD_MEMSET, name_of(plan.call), true,
        [&](lockstep_record& record) { fill_set(record, plane); },
        [&] { return driver().set(plane, plan.call, native_of(stream)); });
    if (result != kSuccess) return fail_native(error, plan.call, result, describe(stream));
  }
  return LOCKSTEP_OK;
}

}  // namespace lockstep::gpu
