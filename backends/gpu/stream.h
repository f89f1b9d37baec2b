// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "objects.h"

namespace lockstep::gpu {

lockstep_code stream_create(lockstep_device* device, const lockstep_stream_desc* desc,
                            lockstep_stream** stream, lockstep_error* error);
lockstep_code stream_special(lockstep_device* device, std::uint32_t which, lockstep_stream** stream,
                             lockstep_error* error);
lockstep_code stream_from_native(lockstep_device* device, void* native, lockstep_stream** stream,
                                 lockstep_error* error);
void stream_destroy(lockstep_stream* stream);
lockstep_code stream_synchronize(lockstep_stream* stream, lockstep_error* error);
lockstep_code stream_query(lockstep_stream* stream, lockstep_error* error);
// Gives an own stream a new native one, where a failed capture leaves the old one broken.
void replace_native_stream(lockstep_stream* stream);

lockstep_code event_create(lockstep_device* device, std::uint32_t flags, lockstep_event** event,
                           lockstep_error* error);
lockstep_code event_from_native(lockstep_device* device, void* native, lockstep_event** event,
                                lockstep_error* error);
void event_destroy(lockstep_event* event);
lockstep_code event_record(lockstep_event* event, lockstep_stream* stream, lockstep_error* error);
lockstep_code event_query(lockstep_event* event, lockstep_error* error);
lockstep_code event_synchronize(lockstep_event* event, lockstep_error* error);
lockstep_code event_elapsed(lockstep_event* begin, lockstep_event* end, double* milliseconds,
                            lockstep_error* error);
lockstep_code stream_wait_event(lockstep_stream* stream, lockstep_event* event,
                                lockstep_error* error);
lockstep_code host_function(lockstep_stream* stream, lockstep_host_function function,
                            void* user_data, lockstep_error* error);

}  // namespace lockstep::gpu
