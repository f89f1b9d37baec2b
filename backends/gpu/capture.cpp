// SPDX-License-Identifier: Apache-2.0
#include "capture.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <thread>

#include "graph.h"
#include "in_flight.h"
#include "module.h"
#include "objects.h"
#include "stream.h"

namespace lockstep::gpu {

namespace {

struct Member {
  std::uint64_t identity = 0;
  lockstep_stream* stream = nullptr;  // null once destroyed
  std::string description;
  std::uint32_t nodes = 0;
  CaptureClock clock;  // what precedes its next node
};

struct Session {
  std::uint64_t native_id = 0;
  std::uint64_t graph = 0;  // identity of the graph to come
  lockstep_stream* origin = nullptr;
  std::uint64_t origin_identity = 0;
  std::thread::id thread;
  std::vector<GraphNode> nodes;
  // Does the node belong to a call of ours? One that was listed first may still be claimed: the
  // call that made it has not come back yet, or it is another library's.
  std::vector<bool> bound;
  std::vector<Member> members;  // the origin first
  std::string culprit;

  Member& member(lockstep_stream* stream) {
    const std::uint64_t identity = identity_of(stream);
    for (Member& known : members) {
      if (known.identity == identity) return known;
    }
    members.push_back({identity, stream, describe(stream), 0, {}});
    return members.back();
  }
  std::size_t find(Handle node) const {  // nodes.size() when it was not met
    const auto is_it = [&](const GraphNode& known) { return known.native == node; };
    // The newest first: it is the one that is asked for.
    const auto it = std::find_if(nodes.rbegin(), nodes.rend(), is_it);
    return it == nodes.rend() ? nodes.size()
                              : static_cast<std::size_t>(std::distance(it, nodes.rend())) - 1;
  }
  void add(Handle node, bool to_a_call) {
    nodes.push_back({node, std::nullopt, {}});
    bound.push_back(to_a_call);
  }
};

// Leaky, and touched only while a capture is open.
std::mutex& mutex() {
  static std::mutex* const instance = new std::mutex;
  return *instance;
}
std::vector<std::unique_ptr<Session>>& sessions() {
  static auto* const instance = new std::vector<std::unique_ptr<Session>>;
  return *instance;
}

Session* find_session(std::uint64_t native_id) {
  for (const auto& session : sessions()) {
    if (session->native_id == native_id) return session.get();
  }
  return nullptr;
}

// Puts the nodes that the driver lists and we have not met (a library's own calls, or calls of ours
// that another thread is about to bind) before `last`.
void add_unknown_nodes(Session& session, Handle graph, Handle last) {
  std::vector<Handle> listed;
  if (driver().graph_nodes(graph, &listed) != kSuccess) return;
  for (Handle node : listed) {
    if (node != last && session.find(node) == session.nodes.size()) session.add(node, false);
  }
}

// The node that a call of ours just made: among the stream's dependencies the one that no call has
// been bound to. Null when there is none.
Handle made_by_call(const Session& session, const CaptureInfo& info) {
  Handle listed = nullptr;
  for (std::size_t index = 0; index < info.dependency_count; ++index) {
    const Handle node = info.dependencies[index];
    const std::size_t at = session.find(node);
    if (at == session.nodes.size()) return node;
    if (!session.bound[at]) listed = node;
  }
  return listed;
}

// The streams whose work the origin has not waited for.
std::string unjoined_streams(const Session& session) {
  const Member& origin = session.members.front();
  std::string list;
  for (const Member& member : session.members) {
    if (member.identity == origin.identity) continue;
    if (clock_of(origin.clock, member.identity) >= member.nodes) continue;
    if (!list.empty()) list += ", ";
    list += member.description;
    list += member.stream == nullptr ? " (destroyed)" : "";
    list += " with " + std::to_string(member.nodes) + " captured operations";
  }
  return list;
}

std::unique_ptr<Session> take_session(const lockstep_stream* stream) {
  const std::uint64_t identity = identity_of(stream);
  auto& all = sessions();
  for (auto it = all.begin(); it != all.end(); ++it) {
    if ((*it)->origin_identity != identity) continue;
    std::unique_ptr<Session> session = std::move(*it);
    all.erase(it);
    g_state.open_captures.fetch_sub(1);
    return session;
  }
  return nullptr;
}

}  // namespace

std::uint32_t clock_of(const CaptureClock& clock, std::uint64_t stream) {
  for (const auto& [identity, nodes] : clock) {
    if (identity == stream) return nodes;
  }
  return 0;
}

void merge_clock(CaptureClock& into, const CaptureClock& from) {
  for (const auto& [identity, nodes] : from) {
    // Named again: clang 14 does not let a lambda use a structured binding.
    const auto stream = identity;
    auto known = std::find_if(into.begin(), into.end(),
                              [&](const auto& entry) { return entry.first == stream; });
    if (known == into.end()) {
      into.emplace_back(identity, nodes);
    } else {
      known->second = std::max(known->second, nodes);
    }
  }
}

bool is_capturing(const lockstep_stream* stream) {
  CaptureInfo info;
  return may_capture(stream) && driver().capture_info(native_of(stream), &info) == kSuccess &&
         info.status == LOCKSTEP_CAPTURE_ACTIVE;
}

namespace {

// The driver does not say whether it captured the call. A stream that we know in a capture does
// capture; which node it made is not known, and it is listed with those of others.
CaptureBinding bind_unanswered(const lockstep_stream* stream) {
  const std::uint64_t identity = identity_of(stream);
  std::lock_guard lock(mutex());
  for (const auto& session : sessions()) {
    for (const Member& member : session->members) {
      if (member.identity == identity) return {true, session->graph, -1};
    }
  }
  return {};
}

}  // namespace

CaptureBinding bind_capture(lockstep_stream* stream, const lockstep_record* record,
                            bool makes_node) {
  CaptureInfo info;
  if (driver().capture_info(native_of(stream), &info) != kSuccess) return bind_unanswered(stream);
  if (info.status != LOCKSTEP_CAPTURE_ACTIVE) return {};
  CaptureBinding binding{true, 0, -1};
  std::lock_guard lock(mutex());
  Session* session = find_session(info.id);
  if (session == nullptr) return binding;  // begun by somebody else
  binding.graph = session->graph;
  Member& member = session->member(stream);
  if (!makes_node) return binding;
  const Handle made = made_by_call(*session, info);
  if (made == nullptr) return binding;  // it made none: an empty copy
  std::size_t at = session->find(made);
  if (at == session->nodes.size()) {
    std::size_t count = 0;
    if (driver().graph_node_count(info.graph, &count) == kSuccess &&
        count > session->nodes.size() + 1) {
      add_unknown_nodes(*session, info.graph, made);
    }
    at = session->nodes.size();
    session->add(made, true);
  }
  session->bound[at] = true;
  binding.node = static_cast<std::int32_t>(at);
  if (record != nullptr && record->kind == LOCKSTEP_RECORD_MEMCPY) {
    session->nodes[at].recorded = *record;
  }
  ++member.nodes;
  merge_clock(member.clock, {{member.identity, member.nodes}});
  return binding;
}

void note_event_record(lockstep_event* event, lockstep_stream* stream) {
  CaptureInfo info;
  const bool capturing = driver().capture_info(native_of(stream), &info) == kSuccess &&
                         info.status == LOCKSTEP_CAPTURE_ACTIVE;
  std::lock_guard lock(mutex());
  event->capture_id = capturing ? info.id : 0;
  event->capture_clock.clear();
  if (!capturing) return;
  if (Session* session = find_session(info.id)) {
    event->capture_clock = session->member(stream).clock;
  }
}

void note_event_wait(lockstep_stream* stream, lockstep_event* event) {
  std::lock_guard lock(mutex());
  if (event->capture_id == 0) return;
  if (Session* session = find_session(event->capture_id)) {
    merge_clock(session->member(stream).clock, event->capture_clock);
  }
}

void blame_invalidated_captures(const char* call) {
  if (!captures_open()) return;
  std::lock_guard lock(mutex());
  for (const auto& session : sessions()) {
    const bool other_thread = session->thread != std::this_thread::get_id();
    // The per-thread handle would mean the calling thread's stream.
    if (session->origin->origin == lockstep_stream::Origin::kPerThread && other_thread) continue;
    if (!session->culprit.empty()) continue;
    CaptureInfo info;
    if (driver().capture_info(native_of(session->origin), &info) != kSuccess ||
        info.status != LOCKSTEP_CAPTURE_IS_INVALIDATED) {
      continue;
    }
    session->culprit = call;
    if (other_thread) session->culprit += " on another thread";
  }
}

void forget_stream(lockstep_stream* stream) {
  if (!captures_open()) return;
  std::lock_guard lock(mutex());
  for (const auto& session : sessions()) {
    for (Member& member : session->members) {
      if (member.stream == stream) member.stream = nullptr;
    }
  }
  if (stream->origin == lockstep_stream::Origin::kOwn) take_session(stream);
}

lockstep_code capture_begin(lockstep_stream* stream, std::uint32_t mode, lockstep_error* error) {
  if (mode > LOCKSTEP_CAPTURE_RELAXED) {
    return fail(
        error, LOCKSTEP_E_INVALID_ARGUMENT, "capture_begin",
        "mode has to be global (0), thread-local (1) or relaxed (2), not " + std::to_string(mode));
  }
  if (!driver().traits().captures) {
    return fail(error, LOCKSTEP_E_NOT_SUPPORTED, driver().call_name(Call::kBeginCapture),
                "this driver release does not capture kernel launches: build the graph by hand, or "
                "use a newer release");
  }
  ContextScope scope(stream->context);
  const std::lock_guard quiet(streams_asked());
  const Result result = driver().begin_capture(native_of(stream), mode);
  if (result != kSuccess) {
    const char* detail = "";
    if (stream->origin == lockstep_stream::Origin::kLegacy) {
      detail = "the legacy stream cannot capture: create a stream";
    } else if (result == 401) {
      detail = "this stream captures already: end that capture first";
    }
    return fail_native(error, Call::kBeginCapture, result, describe(stream) + ": " + detail);
  }
  CaptureInfo info;
  const Result asked = driver().capture_info(native_of(stream), &info);
  if (asked != kSuccess) {
    Handle graph = nullptr;
    driver().end_capture(native_of(stream), &graph);
    if (graph != nullptr) driver().graph_destroy(graph);
    return fail_native(error, Call::kCaptureInfo, asked);
  }
  auto session = std::make_unique<Session>();
  session->native_id = info.id;
  session->graph = recorder().next_id();
  session->origin = stream;
  session->origin_identity = identity_of(stream);
  session->thread = std::this_thread::get_id();
  session->member(stream);
  std::lock_guard lock(mutex());
  sessions().push_back(std::move(session));
  g_state.open_captures.fetch_add(1);
  return LOCKSTEP_OK;
}

lockstep_code capture_end(lockstep_stream* stream, lockstep_graph** graph, lockstep_error* error) {
  *graph = nullptr;
  ContextScope scope(stream->context);
  std::unique_ptr<Session> session;
  {
    std::lock_guard lock(mutex());
    session = take_session(stream);
  }
  Handle native = nullptr;
  const Result result = driver().end_capture(native_of(stream), &native);
  if (result == kSuccess && native != nullptr) {
    std::vector<GraphNode> nodes;
    if (session != nullptr) {
      add_unknown_nodes(*session, native, nullptr);
      nodes = std::move(session->nodes);
    } else if (const Result listed = list_nodes(native, {}, &nodes)) {
      driver().graph_destroy(native);
      return fail_native(error, Call::kGraphNodes, listed);
    }
    unload_dead_modules();
    *graph = adopt_graph(stream->device, native, session != nullptr ? session->graph : 0,
                         std::move(nodes));
    return LOCKSTEP_OK;
  }
  unload_dead_modules();
  std::string detail = describe(stream);
  if (session != nullptr) {
    if (const std::string unjoined = unjoined_streams(*session); result == 904 && !unjoined.empty())
      detail += "; never joined: " + unjoined;
    if (result == 901) {
      detail += session->culprit.empty() ? "; by a call that did not go through Lockstep"
                                         : "; by " + session->culprit;
    }
    if (!driver().traits().streams_survive_failed_capture) {
      for (const Member& member : session->members) {
        if (member.stream != nullptr && driver().stream_broken(native_of(member.stream))) {
          replace_native_stream(member.stream);
        }
      }
    }
  } else if (result == 401) {
    detail += " does not capture, or did not begin the capture it takes part in";
  }
  return fail_native(error, Call::kEndCapture, result, detail);
}

lockstep_code capture_status(lockstep_stream* stream, std::uint32_t* status, std::uint64_t* id,
                             lockstep_error* error) {
  ContextScope scope(stream->context);
  CaptureInfo info;
  const Result result = driver().capture_info(native_of(stream), &info);
  // 906: the legacy stream itself does not capture; another, blocking one does.
  if (result != kSuccess && result != 906) return fail_native(error, Call::kCaptureInfo, result);
  if (result == 906) info = {};
  if (status != nullptr) *status = info.status;
  if (id != nullptr) *id = info.id;
  return LOCKSTEP_OK;
}

lockstep_code capture_thread_mode(lockstep_device* device, std::uint32_t* mode,
                                  lockstep_error* error) {
  if (mode == nullptr || *mode > LOCKSTEP_CAPTURE_RELAXED) {
    return fail(error, LOCKSTEP_E_INVALID_ARGUMENT, "capture_thread_mode",
                "mode has to be global (0), thread-local (1) or relaxed (2)");
  }
  ContextScope scope(device->context);
  const Result result = driver().exchange_capture_mode(mode);
  return result == kSuccess ? LOCKSTEP_OK : fail_native(error, Call::kExchangeCaptureMode, result);
}

}  // namespace lockstep::gpu
