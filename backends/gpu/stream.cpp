// SPDX-License-Identifier: Apache-2.0
#include "stream.h"

#include <array>
#include <map>
#include <mutex>
#include <string>

#include "enqueue.h"

namespace lockstep::gpu {
namespace {

// Native streams that were met, so that two handles of one have one identity. A handle may be given
// again to another stream: the driver's own unique number, where it has one, tells them apart.
struct Met {
  std::uint64_t identity = 0;
  std::uint64_t unique = 0;
  bool unique_known = false;
  bool non_blocking = true;
};
struct Registry {
  std::mutex mutex;
  std::map<Handle, Met> streams;
  std::map<Context, std::uint64_t> contexts;  // foreign ones, numbered from 1
};
Registry& registry() {
  static Registry* const instance = new Registry;
  return *instance;
}

bool takes_part_in_a_capture(Handle native) {
  CaptureInfo info;
  return driver().capture_info(native, &info) == kSuccess &&
         info.status != LOCKSTEP_CAPTURE_NOT_CAPTURING;
}

// Identity of a native stream, reported to the host when it is new. A stream that captures is not
// asked for its number and its flags, since asking invalidates the capture (measured on CUDA): it
// is taken for the one that was met at this handle, and a new one for non-blocking, which a stream
// that captures has to be wherever the legacy stream is used.
Met meet(const lockstep_device* device, Handle native, Context context, bool fresh) {
  Met seen;
  if (fresh || !takes_part_in_a_capture(native)) {
    seen.unique_known = driver().stream_unique_id(native, &seen.unique);
    // A driver that cannot tell leaves the assumption standing.
    if (driver().stream_is_non_blocking(native, &seen.non_blocking) != kSuccess) {
      seen.non_blocking = true;
    }
  }
  Registry& all = registry();
  std::uint64_t context_number = 0;
  {
    std::lock_guard lock(all.mutex);
    Met& known = all.streams[native];
    const bool other = known.unique_known && seen.unique_known && known.unique != seen.unique;
    // A stream that was made just now is another one whatever was met there: the owner of a
    // borrowed one destroys it without telling us.
    if (known.identity != 0 && !other && !fresh) {
      if (seen.unique_known) known.unique = seen.unique;
      known.unique_known = known.unique_known || seen.unique_known;
      return known;
    }
    seen.identity = recorder().next_id();
    known = seen;
    if (context != device->context) {
      std::uint64_t& number = all.contexts[context];
      if (number == 0) number = all.contexts.size();
      context_number = number;
    }
  }
  recorder().define_stream(seen.identity, device->ordinal, context_number,
                           seen.non_blocking ? 0 : 1);
  return seen;
}

void forget(Handle native) {
  Registry& all = registry();
  std::lock_guard lock(all.mutex);
  all.streams.erase(native);
}

constexpr std::size_t kTrackedDevices = 64;
// The calling thread's per-thread stream of each device.
thread_local std::array<std::uint64_t, kTrackedDevices> t_per_thread{};

}  // namespace

std::uint64_t identity_of(const lockstep_stream* stream) {
  if (stream->origin != lockstep_stream::Origin::kPerThread) return stream->identity;
  std::uint64_t& mine =
      t_per_thread[static_cast<std::size_t>(stream->device->ordinal) % kTrackedDevices];
  if (mine == 0) {
    mine = recorder().next_id();
    recorder().define_stream(mine, stream->device->ordinal, 0, 1);
  }
  return mine;
}

std::string describe(const lockstep_stream* stream) {
  switch (stream->origin) {
    case lockstep_stream::Origin::kLegacy:
      return "the legacy stream";
    case lockstep_stream::Origin::kPerThread:
      return "the per-thread stream " + std::to_string(identity_of(stream));
    default:
      break;
  }
  char handle[32];
  std::snprintf(handle, sizeof handle, " (%p)", native_of(stream));
  return "stream " + std::to_string(stream->identity) + handle;
}

lockstep_code stream_create(lockstep_device* device, const lockstep_stream_desc* desc,
                            lockstep_stream** stream, lockstep_error* error) {
  if ((desc->flags & ~static_cast<std::uint32_t>(LOCKSTEP_STREAM_NON_BLOCKING)) != 0) {
    return fail(error, LOCKSTEP_E_NOT_SUPPORTED, "stream_create", "an unknown stream flag is set");
  }
  ContextScope scope(device->context);
  const bool non_blocking = (desc->flags & LOCKSTEP_STREAM_NON_BLOCKING) != 0;
  Handle native = nullptr;
  const Result result = driver().stream_create(non_blocking, desc->priority, &native);
  if (result != kSuccess) return fail_native(error, Call::kStreamCreate, result);
  auto* made = new lockstep_stream;
  made->device = device;
  made->native = native;
  made->context = device->context;
  made->non_blocking = non_blocking;
  made->priority = desc->priority;
  made->identity = meet(device, native, device->context, true).identity;
  add_stream(made);
  *stream = made;
  return LOCKSTEP_OK;
}

lockstep_code stream_special(lockstep_device* device, std::uint32_t which, lockstep_stream** stream,
                             lockstep_error* error) {
  if (which != LOCKSTEP_STREAM_LEGACY && which != LOCKSTEP_STREAM_PER_THREAD) {
    return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "stream_special",
                "which has to be legacy (1) or per-thread (2), not " + std::to_string(which));
  }
  const bool legacy = which == LOCKSTEP_STREAM_LEGACY;
  const Traits& traits = driver().traits();
  auto* made = new lockstep_stream;
  made->device = device;
  made->context = device->context;
  made->native = legacy ? traits.legacy_stream : traits.per_thread_stream;
  made->origin = legacy ? lockstep_stream::Origin::kLegacy : lockstep_stream::Origin::kPerThread;
  made->known_to_others = !legacy;  // the legacy stream never captures
  if (legacy) {
    std::uint64_t fresh = recorder().next_id();
    std::uint64_t known = 0;
    if (device->legacy_identity.compare_exchange_strong(known, fresh)) {
      recorder().define_stream(fresh, device->ordinal, 0, 2);
      known = fresh;
    }
    made->identity = known;
  }
  *stream = made;
  return LOCKSTEP_OK;
}

lockstep_code stream_from_native(lockstep_device* device, void* native, lockstep_stream** stream,
                                 lockstep_error* error) {
  const Traits& traits = driver().traits();
  if (native == nullptr || native == traits.legacy_stream) {
    return stream_special(device, LOCKSTEP_STREAM_LEGACY, stream, error);
  }
  if (native == traits.per_thread_stream) {
    return stream_special(device, LOCKSTEP_STREAM_PER_THREAD, stream, error);
  }
  ContextScope scope(device->context);
  Context context = nullptr;
  const Result found = driver().stream_context(native, &context);
  if (found != kSuccess) return fail_native(error, Call::kStreamContext, found);
  auto* made = new lockstep_stream;
  made->device = device;
  made->native = native;
  made->context = context;
  made->origin = lockstep_stream::Origin::kBorrowed;
  made->known_to_others = true;
  const Met met = meet(device, native, context, false);
  made->non_blocking = met.non_blocking;
  made->identity = met.identity;
  add_stream(made);
  *stream = made;
  return LOCKSTEP_OK;
}

void stream_destroy(lockstep_stream* stream) {
  if (stream == nullptr) return;
  if (usable()) {
    forget_stream(stream);
    ContextScope scope(stream->context);
    remove_stream(stream);
    if (stream->origin == lockstep_stream::Origin::kOwn) {
      forget(native_of(stream));
      // A failure can only say that the driver is shutting down or that a kernel failed earlier.
      driver().stream_destroy(native_of(stream));
    }
  }
  delete stream;
}

void replace_native_stream(lockstep_stream* stream) {
  if (stream->origin != lockstep_stream::Origin::kOwn) return;
  ContextScope scope(stream->context);
  Handle fresh = nullptr;
  if (driver().stream_create(stream->non_blocking, stream->priority, &fresh) != kSuccess) return;
  const Handle old = stream->native.exchange(fresh);
  forget(old);
  {
    Met same;  // for the user it is the same stream
    same.identity = stream->identity;
    same.unique_known = driver().stream_unique_id(fresh, &same.unique);
    same.non_blocking = stream->non_blocking;
    Registry& all = registry();
    std::lock_guard lock(all.mutex);
    all.streams[fresh] = same;
  }
  // Where this is done, the runtime waits for a stream's work when it goes: nothing is left in
  // flight.
  driver().stream_destroy(old);
}

lockstep_code stream_synchronize(lockstep_stream* stream, lockstep_error* error) {
  ContextScope scope(stream->context);
  LaunchesWaitedFor launches(stream);
  const Result result = record_call(
      stream->device, identity_of(stream), LOCKSTEP_RECORD_SYNCHRONIZE,
      name_of(Call::kStreamSynchronize), [](lockstep_record&) {},
      [&] { return driver().stream_synchronize(native_of(stream)); });
  if (result == kSuccess) launches.succeeded();
  return result == kSuccess
             ? LOCKSTEP_OK
             : fail_native(error, Call::kStreamSynchronize, result, describe(stream));
}

lockstep_code stream_query(lockstep_stream* stream, lockstep_error* error) {
  ContextScope scope(stream->context);
  const Result result = driver().stream_query(native_of(stream));
  if (result == kSuccess) return LOCKSTEP_OK;
  if (driver().is_not_ready(result)) {
    return fail(error, LOCKSTEP_E_NOT_READY, driver().call_name(Call::kStreamQuery),
                "work on the stream has not finished");
  }
  return fail_native(error, Call::kStreamQuery, result, describe(stream));
}

lockstep_code host_function(lockstep_stream* stream, lockstep_host_function function,
                            void* user_data, lockstep_error* error) {
  if (function == nullptr) {
    return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "host_function", "the function is null");
  }
  ContextScope scope(stream->context);
  const Result result = enqueue(
      stream, LOCKSTEP_RECORD_HOST_FUNC, name_of(Call::kLaunchHostFunction), true,
      [](lockstep_record&) {},
      [&] { return driver().launch_host(function, user_data, native_of(stream)); });
  return result == kSuccess
             ? LOCKSTEP_OK
             : fail_native(error, Call::kLaunchHostFunction, result, describe(stream));
}

}  // namespace lockstep::gpu
