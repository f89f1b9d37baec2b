// SPDX-License-Identifier: Apache-2.0
#include <lockstep/backend.h>
#include <lockstep/device.h>
#include <lockstep/error.h>
#include <lockstep/tracer.h>

#include <array>
#include <cstring>
#include <gmock/gmock.h>

#include "support/fake_backend/fake_plugins.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using testing::FakeDevice;
using ::testing::HasSubstr;

class Arguments : public ::testing::Test {
 protected:
  Arguments()
      : stream(fake.device.create_stream()),
        module(fake.device.compile("fake", {.kernels = {"add_one", "mixed"}})),
        add_one(module.kernel("add_one")),
        buffer(fake.device.allocate<int>(8)) {}

  template <typename Call>
  std::string refused(const Call& call) {
    const int before = fake.control.launches;
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(to_string(error.code()), to_string(ErrorCode::kInvalidArgument));
      EXPECT_EQ(fake.control.launches, before);
      return error.what();
    }
    ADD_FAILURE() << "accepted";
    return {};
  }

  FakeDevice fake;
  Stream stream;
  Module module;
  Kernel add_one;
  Buffer<int> buffer;
};

TEST_F(Arguments, RightOnesReachTheKernel) {
  stream.fill(buffer, 41);
  stream.launch(add_one, {.grid = 1, .block = 8}, buffer, 8u);
  std::vector<int> values(8);
  stream.copy_and_wait(values, buffer);
  EXPECT_EQ(values, std::vector<int>(8, 42));
  EXPECT_TRUE(fake.control.last_tags.empty());  // the kernel's own layout tells pointers
}

TEST_F(Arguments, WrongCountIsNamed) {
  EXPECT_THAT(refused([&] { stream.launch(add_one, {}, buffer); }),
              AllOf(HasSubstr("Stream::launch of kernel '_Z7add_onePij'"),
                    HasSubstr("1 argument(s) given, the kernel takes 2")));
  EXPECT_THAT(refused([&] { stream.launch(add_one, {}, buffer, 1u, 2u); }),
              HasSubstr("3 argument(s) given, the kernel takes 2"));
}

TEST_F(Arguments, WrongSizeAndPointernessNameTheArgument) {
  EXPECT_THAT(refused([&] { stream.launch(add_one, {}, buffer, std::uint64_t{8}); }),
              HasSubstr("argument 1 is a value of 8 bytes, the kernel takes a value of 4 bytes"));
  EXPECT_THAT(refused([&] { stream.launch(add_one, {}, std::uint64_t{8}, 8u); }),
              HasSubstr("argument 0 is a value of 8 bytes, the kernel takes a pointer of 8 bytes"));
  EXPECT_THAT(refused([&] {
                stream.launch(module.kernel("mixed"), {}, buffer, 1u, std::uint8_t{1},
                              buffer.data(), std::uint64_t{});
              }),
              HasSubstr("argument 3 is a pointer of 8 bytes, the kernel takes a value of 8 bytes"));
}

// REP-19: argument sizes, alignment and bytes are kept, launched or as a graph's node.
TEST_F(Arguments, BytesOfMixedArgumentsAreKept) {
  struct Pair {
    char c;
    int i;
  };
  Pair pair;
  std::memset(&pair, 0, sizeof(pair));
  pair.c = 'x';
  pair.i = -5;
  const Kernel mixed = module.kernel("mixed");
  const auto check = [&] {
    const auto& last = fake.control.last_arguments;
    ASSERT_EQ(last.size(), 5u);
    const auto bytes = [](const auto& value) {
      const auto* first = reinterpret_cast<const std::byte*>(&value);
      return std::vector<std::byte>(first, first + sizeof(value));
    };
    int* const pointer = buffer.data();
    EXPECT_EQ(last[0], bytes(pointer));
    EXPECT_EQ(last[1], bytes(std::uint32_t{0xfffffffe}));
    EXPECT_EQ(last[2], bytes(std::uint8_t{200}));
    EXPECT_EQ(last[3], bytes(0.1));
    EXPECT_EQ(last[4], bytes(pair));
    fake.control.last_arguments.clear();
  };
  stream.launch(mixed, {}, buffer, 0xfffffffeu, std::uint8_t{200}, 0.1, pair);
  check();
  Graph graph = fake.device.create_graph();
  {
    double x = 0.1;
    graph.add_kernel({}, mixed, {}, buffer, 0xfffffffeu, std::uint8_t{200}, x, pair);
    x = 7;  // nodes own their copies
  }
  graph.instantiate().launch(stream);
  check();
  stream
      .capture([&](StreamRef& s) {
        s.launch(mixed, {}, buffer, 0xfffffffeu, std::uint8_t{200}, 0.1, pair);
      })
      .instantiate()
      .launch(stream);
  check();
}

TEST_F(Arguments, CallersTagsAreGivenWhereTheLayoutDoesNotTellPointers) {
  stream.launch(module.kernel("untagged"), {}, buffer, 3u);
  EXPECT_EQ(fake.control.last_tags, std::vector<std::uint8_t>({1, 0}));
  EXPECT_THAT(refused([&] { stream.launch(module.kernel("untagged"), {}, buffer, 3.0); }),
              HasSubstr("argument 1 is a value of 8 bytes, the kernel takes anything of 4 bytes"));
}

TEST_F(Arguments, NullptrIsAPointer) {
  const Kernel untagged = module.kernel("untagged");
  stream.launch(untagged, {}, nullptr, 3u);
  EXPECT_EQ(fake.control.last_tags, std::vector<std::uint8_t>({1, 0}));
  ASSERT_EQ(fake.control.last_arguments.size(), 2u);
  EXPECT_EQ(fake.control.last_arguments[0], std::vector<std::byte>(8));
  const detail::ArgumentPack<1> pack(nullptr);  // as any kernel of a known layout takes it
  EXPECT_EQ(pack.arguments()[0].kind, KernelArgument::Kind::kPointer);
  EXPECT_EQ(pack.arguments()[0].owner, nullptr);
}

// A launch is compared with one that did fit before it is looked at closely.
TEST_F(Arguments, LaterOnesAreCheckedLikeTheFirst) {
  stream.launch(add_one, {}, buffer, 8u);
  EXPECT_THAT(refused([&] { stream.launch(add_one, {}, buffer); }),
              HasSubstr("1 argument(s) given, the kernel takes 2"));
  EXPECT_THAT(refused([&] { stream.launch(add_one, {}, buffer, std::uint64_t{8}); }),
              HasSubstr("argument 1 is a value of 8 bytes, the kernel takes a value of 4 bytes"));
  EXPECT_THAT(refused([&] { stream.launch(add_one, {}, std::uint64_t{8}, 8u); }),
              HasSubstr("argument 0 is a value of 8 bytes, the kernel takes a pointer of 8 bytes"));
  const std::array<KernelArgument, 2> half = {
      KernelArgument{&buffer, 8, KernelArgument::Kind::kPointer}, KernelArgument{nullptr, 4}};
  EXPECT_THAT(refused([&] { stream.launch_arguments(add_one, {}, half); }),
              HasSubstr("argument 1 has no value"));
  stream.launch(add_one, {}, buffer, 7u);
  ASSERT_EQ(fake.control.last_arguments.size(), 2u);
  EXPECT_EQ(fake.control.last_arguments[1][0], std::byte{7});
  EXPECT_EQ(fake.control.launches, 2);
}

TEST_F(Arguments, TagsAreThoseOfEachLaunch) {
  const Kernel untagged = module.kernel("untagged");
  struct Padded {
    std::uint16_t s;
    std::uint8_t c;
  };
  const Padded padded{1, 2};
  stream.launch(untagged, {}, buffer, 3u);
  EXPECT_EQ(fake.control.last_tags, std::vector<std::uint8_t>({1, 0}));
  stream.launch(untagged, {}, std::uint64_t{16}, padded);
  EXPECT_EQ(fake.control.last_tags, std::vector<std::uint8_t>({0, 2}));
  // Like the first, and nobody wants to know.
  stream.launch(untagged, {}, buffer, 4u);
  EXPECT_TRUE(fake.control.last_tags.empty());
  const LaunchTrace trace;
  stream.launch(untagged, {}, buffer, 4u);
  EXPECT_EQ(fake.control.last_tags, std::vector<std::uint8_t>({1, 0}));
  stream.launch(untagged, {}, std::uint64_t{16}, padded);
  EXPECT_EQ(fake.control.last_tags, std::vector<std::uint8_t>({0, 2}));
}

TEST_F(Arguments, UnknownLayoutTakesWhatIsGiven) {
  EXPECT_EQ(module.kernel("opaque").parameters(), std::nullopt);
  stream.launch(module.kernel("opaque"), {}, buffer, 3.0);
  EXPECT_EQ(fake.control.last_arguments.size(), 2u);
  std::vector<std::uint32_t> values(100);
  std::vector<KernelArgument> many;
  for (std::uint32_t i = 0; i < values.size(); ++i) {
    values[i] = i;
    many.push_back({&values[i], sizeof(std::uint32_t)});
  }
  stream.launch_arguments(module.kernel("opaque"), {}, many);
  ASSERT_EQ(fake.control.last_arguments.size(), 100u);
  EXPECT_EQ(fake.control.last_arguments[99][0], std::byte{99});
}

TEST_F(Arguments, BuffersOfAnotherBackendAreRefused) {
  testing::FakePlugins others;
  others.add("elsewhere");
  const Buffer<int> foreign = Device::open("elsewhere").allocate<int>(8);
  EXPECT_THAT(refused([&] { stream.launch(add_one, {}, foreign, 8u); }),
              HasSubstr("argument 0 is a buffer of elsewhere:0"));
  EXPECT_THAT(refused([&] { stream.copy(buffer, foreign); }),
              HasSubstr("Stream::copy with a buffer of elsewhere:0"));
  EXPECT_THAT(refused([&] { stream.fill(foreign, 1); }), HasSubstr("a buffer of elsewhere:0"));
  const Device elsewhere = Device::open("elsewhere");
  EXPECT_THAT(refused([&] { stream.wait(elsewhere.create_event()); }),
              HasSubstr("an event of elsewhere:0"));
  const Buffer<int> pinned = elsewhere.allocate_pinned<int>(8);
  pinned.span()[7] = 5;
  stream.copy(buffer, pinned);
  EXPECT_EQ(fake.control.copies, 1);
}

// BIG-01: one typed error, from a launch and from a node.
TEST_F(Arguments, LimitsOfTheDeviceAreNamed) {
  const Kernel nothing = module.kernel("nothing");
  Graph graph = fake.device.create_graph();
  const std::vector<std::pair<LaunchConfig, std::string>> bad = {
      {{.grid = {1, 65536, 1}}, "grid.y is 65536, the device's limit is 65535"},
      {{.grid = {1, 1, 65536}}, "grid.z is 65536, the device's limit is 65535"},
      {{.grid = {2147483648u, 1, 1}}, "grid.x is 2147483648, the device's limit is 2147483647"},
      {{.grid = {0, 1, 1}}, "grid.x is 0"},
      {{.block = {1, 0, 1}}, "block.y is 0"},
      {{.block = {1, 1, 65}}, "block.z is 65, the device's limit is 64"},
      {{.block = {64, 32, 1}}, "a block of 2048 threads exceeds the device's limit of 1024"},
      {{.block = {513, 1, 1}}, "exceeds the kernel's own limit of 512"},
      {{.shared_bytes = 49153}, "49153 bytes of dynamic shared memory exceed the 49024"},
  };
  for (const auto& row : bad) {
    // Named apart: clang 14 does not let a lambda use a structured binding.
    const LaunchConfig& config = row.first;
    const std::string& words = row.second;
    EXPECT_THAT(refused([&] { stream.launch(nothing, config); }), HasSubstr(words));
    EXPECT_THAT(refused([&] { graph.add_kernel({}, nothing, config); }), HasSubstr(words));
  }
  EXPECT_EQ(graph.node_count(), 0u);
  stream.launch(nothing, {.grid = {1, 65535, 1}});
  stream.launch(nothing, {.grid = {2147483647, 1, 1}});
  EXPECT_EQ(fake.control.launches, 2);
}

TEST_F(Arguments, SharedMemoryLimitIsRaisedUpToTheDevices) {
  const Kernel nothing = module.kernel("nothing");
  nothing.set_max_dynamic_shared(65536 - 128);
  EXPECT_EQ(nothing.max_dynamic_shared(), 65536u - 128u);
  stream.launch(nothing, {.shared_bytes = 65000});
  EXPECT_EQ(fake.control.launches, 1);
  EXPECT_THAT(refused([&] { nothing.set_max_dynamic_shared(65536); }),
              HasSubstr("exceed the device's 65536 bytes"));
}

TEST_F(Arguments, SizesOfCopiesHaveToAgree) {
  std::vector<int> seven(7);
  EXPECT_THAT(refused([&] { stream.copy(buffer, seven); }),
              HasSubstr("the destination has 32 bytes, the source 28"));
  EXPECT_THROW(buffer.subview(5, 4), Error);
  EXPECT_EQ(buffer.subview(5, 3).data(), buffer.data() + 5);
  EXPECT_THROW(buffer.span(), Error);
  EXPECT_EQ(fake.device.allocate_pinned<int>(3).span().size(), 3u);
}

// MEM-03: what a set covers is checked before anything is written.
TEST_F(Arguments, FillsAreChecked) {
  FillRegion region;
  region.destination = reinterpret_cast<char*>(buffer.data()) + 2;
  region.extent = {1, 1, 1};
  region.value_size = 4;
  EXPECT_THAT(refused([&] { stream.fill(region); }), HasSubstr("not aligned to its values of 4"));
  region.destination = buffer.data();
  region.value_size = 3;
  EXPECT_THAT(refused([&] { stream.fill(region); }), HasSubstr("a value of 3 bytes"));
  region.value_size = 2;
  region.extent = {4, 2, 1};
  region.pitch = 6;
  EXPECT_THAT(refused([&] { stream.fill(region); }), HasSubstr("smaller than a row of 8 bytes"));
  region.destination = nullptr;
  EXPECT_THAT(refused([&] { stream.fill(region); }), HasSubstr("destination is null"));
  EXPECT_EQ(fake.control.sets, 0);
  // MEM-05: nothing to do is fine, whatever the pointers.
  stream.fill(buffer.subview(0, 0), 5);
  stream.copy(CopyRegion());
  EXPECT_EQ(fake.control.sets, 0);
}

TEST_F(Arguments, PluginErrorsBecomeErrors) {
  testing::FakeFailure failure;
  failure.slot = "launch";
  failure.code = LOCKSTEP_E_LAUNCH_FAILED;
  failure.call = "fakeLaunch";
  failure.native_name = "FAKE_BROKE";
  failure.native_code = 719;
  failure.message = "the kernel trapped";
  fake.control.fail_next(failure);
  try {
    stream.launch(add_one, {}, buffer, 8u);
    ADD_FAILURE() << "launched";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kLaunchFailed);
    EXPECT_EQ(error.context().native_code, 719);
    EXPECT_EQ(error.context().native_name, "FAKE_BROKE");
    EXPECT_EQ(error.context().call, "fakeLaunch");
    EXPECT_EQ(error.context().where, "fake:0");
    EXPECT_EQ(error.context().stream, "#" + std::to_string(stream.identity()));
    EXPECT_THAT(error.what(),
                HasSubstr("Stream::launch of kernel '_Z7add_onePij' on fake:0, stream #"));
    EXPECT_THAT(error.what(), HasSubstr("the kernel trapped (fakeLaunch: FAKE_BROKE, 719)"));
  }
  failure.code = 77;  // no code of ours
  fake.control.fail_next(failure);
  try {
    stream.launch(add_one, {}, buffer, 8u);
    ADD_FAILURE() << "launched";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInternal);
  }
}

TEST_F(Arguments, OutOfMemorySaysWhatIsFree) {
  try {
    fake.device.allocate<double>(std::size_t{1} << 20);
    ADD_FAILURE() << "allocated";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
    EXPECT_THAT(error.what(), HasSubstr("8388608 bytes of device memory (1000 of 1048576 bytes"));
  }
  EXPECT_THROW(fake.device.allocate<double>(SIZE_MAX / 4), Error);
  EXPECT_TRUE(fake.device.allocate<double>(0).empty());
}

TEST_F(Arguments, CompilerLogIsInTheMessage) {
  try {
    fake.device.compile("bad source", {.kernels = {"f"}, .source_name = "mine.cu"});
    ADD_FAILURE() << "compiled";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCompilationFailed);
    EXPECT_THAT(error.what(), HasSubstr("'mine.cu'"));
    EXPECT_THAT(error.what(), HasSubstr("kernel.cu(1): expected a declaration"));
  }
  try {
    module.kernel("absent");
    ADD_FAILURE() << "found";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_THAT(error.what(), HasSubstr("compiled for: add_one, mixed"));
  }
}

}  // namespace
}  // namespace lockstep
