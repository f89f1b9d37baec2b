// SPDX-License-Identifier: Apache-2.0
#include <lockstep/lockstep.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <dlfcn.h>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

// Order among streams, captures and code that is not ours, under whichever HIP runtime the plugin
// finds: one mode a run, which prints "MODE: ok" or says what was not as expected.
namespace {

namespace ls = lockstep;
using namespace std::chrono_literals;

constexpr const char* kSource = R"(
extern "C" __global__ void add_one(int* values) { values[threadIdx.x] += 1; }
)";

void expect(bool holds, const std::string& what) {
  if (holds) return;
  std::cout << "not as expected: " << what << std::endl;
  std::_Exit(1);  // streams may wait for what never comes
}
template <typename Body>
std::string code_of(const Body& body) {
  try {
    body();
    return "ok";
  } catch (const ls::Error& error) {
    return std::string(ls::to_string(error.code())) + ": " + error.what();
  }
}

// The runtime's own functions, as another library of the process calls them.
template <typename... Arguments>
void native(const char* name, Arguments... arguments) {
  static void* const library = [] {
    const char* named = std::getenv("LOCKSTEP_HIP_LIBRARY");
    void* found = named != nullptr ? dlopen(named, RTLD_NOW) : nullptr;
    for (const char* soname : {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"}) {
      if (found == nullptr) found = dlopen(soname, RTLD_NOW | RTLD_NOLOAD);
    }
    return found;
  }();
  expect(library != nullptr, "the plugin's runtime is in the process");
  void* const function = dlsym(library, name);
  expect(function != nullptr, name);
  const int result = reinterpret_cast<int (*)(Arguments...)>(function)(arguments...);
  expect(result == 0, std::string(name) + " answered " + std::to_string(result));
}

// Holds up a stream until it is opened.
class Gate {
 public:
  explicit Gate(const ls::StreamRef& stream) {
    stream.host_function([open = open_] {
      while (!open->load()) std::this_thread::sleep_for(1ms);
    });
  }
  ~Gate() { open(); }
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;
  void open() { *open_ = true; }

 private:
  std::shared_ptr<std::atomic<bool>> open_ = std::make_shared<std::atomic<bool>>(false);
};

struct Job {
  ls::Device device = ls::Device::open("hip:0");
  ls::Stream stream = device.create_stream(), other = device.create_stream(),
             third = device.create_stream();
  ls::Event event = device.create_event();
  ls::Buffer<int> values = device.allocate<int>(256);
  ls::Kernel add_one = device.compile(kSource, {.kernels = {"add_one"}}).kernel("add_one");

  Job() {
    stream.fill(values, 0);
    stream.synchronize();
  }
  void launch(const ls::StreamRef& on) { on.launch(add_one, {.grid = 1, .block = 256}, values); }
  ls::GraphExec exec() {
    ls::Graph graph = device.create_graph();
    graph.add_kernel({}, add_one, {.grid = 1, .block = 256}, values);
    return graph.instantiate();
  }
  int value() {
    std::vector<int> host(256);
    third.copy_and_wait(host, values);
    return host.back();
  }
};

// Time enough for work that was let through by mistake. What is right waits for ever.
void let_wrong_work_run() { std::this_thread::sleep_for(100ms); }

// An event of ours that other code records: only the runtime knows.
void foreign_records() {
  Job job;
  Gate gate(job.other);
  native("hipEventRecord", job.event.native_handle(), job.other.native_handle());
  expect(!job.event.query(), "an event that others recorded is asked of the runtime");
  job.stream.wait(job.event);
  job.launch(job.stream);
  let_wrong_work_run();
  expect(job.value() == 0, "a stream waits for an event that others recorded");
  gate.open();
  job.event.synchronize();
  job.stream.synchronize();
  expect(job.value() == 1, "the work behind the wait");
}
void foreign_records_after_a_capture() {
  Job job;
  job.stream.begin_capture();
  job.launch(job.stream);
  job.stream.record(job.event);
  (void)job.stream.end_capture();
  Gate gate(job.other);
  native("hipEventRecord", job.event.native_handle(), job.other.native_handle());
  expect(!job.event.query(), "an event that others recorded again is asked of the runtime");
  job.stream.wait(job.event);
  gate.open();
  job.event.synchronize();
  job.stream.synchronize();
}

// hipStreamDestroy waits for the stream's work; what that waits for comes from who dropped it.
void dropped_streams() {
  Job job;
  ls::Stream dropped = job.device.create_stream();
  Gate gate(dropped);
  job.launch(dropped);
  dropped = ls::Stream();
  ls::Event event = job.device.create_event();
  const ls::Stream made = job.device.create_stream();
  made.record(event);
  job.stream.wait(event);
  job.stream.synchronize();
  gate.open();
  job.device.synchronize();
  expect(job.value() == 1, "the dropped stream's work was done");
}
// 5.7 reads the stream that an event was recorded on when it waits for the event.
void event_of_a_dropped_stream() {
  Job job;
  for (int round = 0; round < 50; ++round) {
    ls::Stream dropped = job.device.create_stream();
    job.launch(dropped);
    dropped.record(job.event);
    dropped = ls::Stream();
    job.event.synchronize();
    expect(job.event.query(), "reached");
  }
  expect(job.value() == 50, "the dropped streams' work was done");
}
// 7.2 has packets under way behind copies that it staged, when all that it knows of is done.
void dropped_streams_of_staged_copies() {
  Job job;
  std::vector<int> large(std::size_t{1} << 18);
  const auto to = job.device.allocate<int>(large.size());
  for (int round = 1; round <= 3; ++round) {
    ls::Stream dropped = job.device.create_stream();
    for (int i = 0; i < 5; ++i) {
      large.back() = 10 * round + i;
      dropped.copy_and_wait(to, large);
    }
    dropped = ls::Stream();
    int last = 0;
    job.stream.copy(std::span(&last, 1), to.subview(large.size() - 1, 1));
    job.stream.synchronize();
    expect(last == 10 * round + 4, "what was copied before the stream went");
  }
}
void dropped_stream_beside_a_host_function() {
  Job job;
  ls::Stream dropped = job.device.create_stream();
  job.launch(dropped);
  dropped.synchronize();
  Gate gate(job.other);
  dropped = ls::Stream();
  gate.open();
  job.device.synchronize();
  expect(job.value() == 1, "the dropped stream's work was done");
}
void dropped_stream_of_a_capture() {
  Job job;
  ls::Stream forked = job.device.create_stream();
  Gate gate(forked);
  job.stream.begin_capture();
  job.stream.record(job.event);
  forked.wait(job.event);
  job.launch(forked);
  forked = ls::Stream();
  const std::string end = code_of([&] { (void)job.stream.end_capture(); });
  expect(end.find("illegal during capture") == 0, "unjoined: " + end);
  gate.open();
  job.device.synchronize();
  expect(job.value() == 0, "nothing captured was executed");
}

// Launches of one executable follow each other, whichever streams and threads they come by.
void launches_by_threads() {
  Job job;
  const ls::GraphExec exec = job.exec();
  constexpr int kRounds = 100;
  const auto work = [&](const ls::Stream& stream) {
    for (int i = 0; i < kRounds; ++i) exec.launch(stream);
    stream.synchronize();
  };
  std::thread thread([&] { work(job.stream); });
  work(job.other);
  thread.join();
  expect(job.value() == 2 * kRounds, "launches: " + std::to_string(job.value()));
}
void launches_on_per_thread_streams() {
  Job job;
  const ls::GraphExec exec = job.exec();
  Gate gate(job.device.per_thread_stream());
  exec.launch(job.device.per_thread_stream());
  std::thread([&] {
    const ls::StreamRef mine = job.device.per_thread_stream();
    exec.launch(mine);
    let_wrong_work_run();
    expect(job.value() == 0, "a launch waits for one on the per-thread stream of another thread");
    gate.open();
    mine.synchronize();
  }).join();
  expect(job.value() == 2, "launches");
}
void launches_after_a_borrowed_stream() {
  Job job;
  const ls::GraphExec exec = job.exec();
  for (int round = 0; round < 3; ++round) {
    void* borrowed = nullptr;
    native("hipStreamCreateWithFlags", &borrowed, 1U);
    exec.launch(ls::StreamRef::from_native(job.device, borrowed));
    native("hipStreamSynchronize", borrowed);
    native("hipStreamDestroy", borrowed);
  }
  exec.launch(job.stream);
  job.stream.synchronize();
  expect(job.value() == 4, "launches");
}
// The runtime is told to refuse the second one.
void launches_again_after_a_failure() {
  Job job;
  const ls::GraphExec exec = job.exec();
  Gate gate(job.stream);
  exec.launch(job.stream);
  expect(code_of([&] { exec.launch(job.other); }) != "ok", "the second launch fails");
  exec.launch(job.other);
  gate.open();
  job.other.synchronize();
  expect(job.value() == 2, "launches");
}
void launches() {
  Job job;
  const ls::GraphExec exec = job.exec();
  exec.launch(job.stream);
  exec.launch(job.other);
  job.other.synchronize();
  expect(job.value() == 2, "launches");
}

// Events recorded on a stream before it captures; the runtime takes them for captured.
void recorded_before_a_capture() {
  Job job;
  job.stream.record(job.event);
  job.stream.synchronize();
  job.stream.begin_capture();
  job.launch(job.stream);
  std::thread([&] {
    expect(job.event.query(), "reached before the capture");
    job.event.synchronize();
    job.other.wait(job.event);
    job.launch(job.other);
    job.other.synchronize();
  }).join();
  expect(job.stream.capture_status() == ls::CaptureStatus::kActive, "the capture goes on");
  ls::GraphExec exec = job.stream.end_capture().instantiate();
  exec.launch(job.stream);
  job.stream.synchronize();
  expect(job.value() == 2, "one launch outside and one in the graph");
}
void pending_before_a_capture() {
  Job job;
  Gate gate(job.stream);
  const ls::Event owner = job.device.create_event();
  const ls::Event borrowed = ls::Event::from_native(job.device, owner.native_handle());
  job.stream.record(job.event);
  job.stream.record(borrowed);
  job.stream.begin_capture();
  job.launch(job.stream);
  const std::string refusal = "the stream that the event was recorded on captures now";
  std::string waited[2];
  std::thread thread([&] {
    const ls::Event* const events[] = {&job.event, &borrowed};
    for (const ls::Event* event : events) {
      expect(!event->query(), "not reached");
      const std::string joins = code_of([&] { job.other.wait(*event); });
      expect(joins.find("not supported") == 0 && joins.find(refusal) != joins.npos, joins);
    }
    for (int i : {0, 1}) waited[i] = code_of([&] { events[i]->synchronize(); });
  });
  let_wrong_work_run();
  gate.open();
  thread.join();
  for (const std::string& what : waited) {  // 7.2 waits
    expect(what == "ok" || (what.find("not supported") == 0 && what.find(refusal) != what.npos),
           what);
  }
  expect(job.stream.capture_status() == ls::CaptureStatus::kActive, "the capture goes on");
  const ls::Graph graph = job.stream.end_capture();
  expect(graph.node_count() == 1, "one node");
  job.event.synchronize();
  borrowed.synchronize();
  job.other.wait(job.event);
}
// Somebody asks all the time, while captures begin and end.
void polled_while_capturing() {
  Job job;
  std::atomic<bool> stop{false};
  std::atomic<int> asked{0};
  job.stream.record(job.event);
  std::thread thread([&] {
    while (!stop.load()) {
      (void)job.event.query();
      ++asked;
    }
  });
  for (int round = 0; round < 300 || asked.load() < 300; ++round) {
    job.launch(job.stream);
    job.stream.record(job.event);
    job.stream.begin_capture();
    job.launch(job.stream);
    const std::string end = code_of([&] { (void)job.stream.end_capture(); });
    if (end != "ok") stop = true;
    expect(end == "ok", "round " + std::to_string(round) + ": " + end);
  }
  stop = true;
  thread.join();
}

// What 5.2 of AMD's runtime writes behind the end of is refused; where not, it is right.
void short_set_node() {
  Job job;
  const ls::Buffer<unsigned char> bytes = job.device.allocate<unsigned char>(64);
  job.stream.fill(bytes, static_cast<unsigned char>(0x77));
  job.stream.synchronize();
  ls::FillRegion region;
  region.destination = bytes.data() + 3;
  region.extent = {3, 1, 1};
  region.value = 0x11;
  region.value_size = 1;
  ls::Graph graph = job.device.create_graph();
  const std::string added = code_of([&] { graph.add_fill({}, region); });
  if (job.device.driver().rfind("5.2", 0) == 0) {
    expect(added.find("not supported") == 0 && added.find("multiple of 8") != added.npos, added);
    region.extent = {5, 1, 1};
    graph.add_fill({}, region);
  } else {
    expect(added == "ok", added);
  }
  const ls::GraphExec exec = graph.instantiate();
  exec.launch(job.stream);
  std::vector<unsigned char> host(64);
  job.stream.copy_and_wait(host, bytes);
  for (std::size_t i = 0; i < host.size(); ++i) {
    const bool inside = i >= 3 && i < 3 + region.extent.width;
    expect(host[i] == (inside ? 0x11 : 0x77), "byte " + std::to_string(i));
  }
}

void native_devices() {
  for (const int ordinal : {0, 1}) {
    const ls::Device device = ls::Device::open("hip:" + std::to_string(ordinal));
    const auto handle = reinterpret_cast<std::intptr_t>(device.native_handle());
    expect(handle == ordinal, "hip:" + std::to_string(ordinal) + " is " + std::to_string(handle));
  }
}

struct Mode {
  const char* name;
  void (*run)();
};
constexpr Mode kModes[] = {
    {"foreign_records", foreign_records},
    {"foreign_records_after_a_capture", foreign_records_after_a_capture},
    {"dropped_streams", dropped_streams},
    {"event_of_a_dropped_stream", event_of_a_dropped_stream},
    {"dropped_streams_of_staged_copies", dropped_streams_of_staged_copies},
    {"dropped_stream_beside_a_host_function", dropped_stream_beside_a_host_function},
    {"dropped_stream_of_a_capture", dropped_stream_of_a_capture},
    {"launches", launches},
    {"launches_by_threads", launches_by_threads},
    {"launches_on_per_thread_streams", launches_on_per_thread_streams},
    {"launches_after_a_borrowed_stream", launches_after_a_borrowed_stream},
    {"launches_again_after_a_failure", launches_again_after_a_failure},
    {"recorded_before_a_capture", recorded_before_a_capture},
    {"pending_before_a_capture", pending_before_a_capture},
    {"polled_while_capturing", polled_while_capturing},
    {"short_set_node", short_set_node},
    {"native_devices", native_devices},
};

}  // namespace

int main(int argc, char** argv) {
  const std::string wanted = argc == 2 ? argv[1] : "";
  try {
    for (const Mode& mode : kModes) {
      if (wanted != mode.name) continue;
      mode.run();
      std::cout << mode.name << ": ok\n";
      return 0;
    }
  } catch (const ls::Error& error) {
    std::cout << wanted << ": " << ls::to_string(error.code()) << ": " << error.what() << std::endl;
    std::_Exit(5);
  }
  std::cerr << "usage: hip_order_program MODE\n";
  return 2;
}
