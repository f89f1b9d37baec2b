// SPDX-License-Identifier: Apache-2.0
// Finding the compiler, and the cache that processes share. Each test has a cache of its own.
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <gmock/gmock.h>
#include <hostjit/cache.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "jit_support.h"
#include "support/temp_folder.h"

namespace lockstep::hostjit::testing {
namespace {

using lockstep::testing::read_file;
using lockstep::testing::TempFolder;
using lockstep::testing::write_file;
using ::testing::HasSubstr;

class HostjitCache : public ::testing::Test {
 protected:
  HostjitCache() { setenv("LOCKSTEP_CACHE_DIR", (folder_ / "cache").c_str(), 1); }
  ~HostjitCache() override {
    unsetenv("LOCKSTEP_CACHE_DIR");
    unsetenv("LOCKSTEP_HOST_COMPILER");
  }

  // A compiler that writes a line to `calls` for each compilation, and that fails once `broken`
  // exists.
  void use_counting_compiler() {
    const std::string script = folder_ / "compiler";
    write_file(script,
               "#!/bin/sh\nif [ \"$1\" = --version ]; then exec c++ --version; fi\n"
               "echo call >> '" +
                   (folder_ / "calls") +
                   "'\n"
                   "[ -e '" +
                   (folder_ / "broken") + "' ] && exit 3\nexec c++ \"$@\"\n");
    chmod(script.c_str(), 0700);
    setenv("LOCKSTEP_HOST_COMPILER", script.c_str(), 1);
  }
  std::size_t calls() const {
    if (!std::filesystem::exists(folder_ / "calls")) return 0;
    const std::string lines = read_file(folder_ / "calls");
    return static_cast<std::size_t>(std::count(lines.begin(), lines.end(), '\n'));
  }

  static CompileRequest request() {
    CompileRequest request;
    request.source = "__global__ void k(int* p) { p[0] = 11; }";
    request.name_expressions = {"k"};
    return request;
  }
  static int result_of(const CompiledImage& image) {
    int value = 0;
    EXPECT_TRUE(run(Module::load_file(image.path)->find_kernel("k"), {}, {}, 0, &value).ok());
    return value;
  }

  TempFolder folder_{"hostjit"};
};

TEST_F(HostjitCache, AHitNeedsNoCompiler) {
  use_counting_compiler();
  const CompiledImage first = compile(request());
  EXPECT_FALSE(first.from_cache);
  EXPECT_EQ(calls(), 1u);
  write_file(folder_ / "broken", "");
  const CompiledImage second = compile(request());
  EXPECT_TRUE(second.from_cache);
  EXPECT_EQ(second.path, first.path);
  EXPECT_EQ(result_of(second), 11);
  EXPECT_EQ(calls(), 1u);

  CompileRequest other = request();
  other.options = {"-DX"};
  const Error error = compile_error(other);
  EXPECT_EQ(error.code(), ErrorCode::kCompileFailed);
  EXPECT_THAT(error.what(), HasSubstr("ended with code 3 and said nothing"));
}

TEST_F(HostjitCache, ADamagedImageIsMadeAgain) {
  use_counting_compiler();
  const CompiledImage first = compile(request());
  const std::string whole = read_file(first.path);
  for (const std::string& damaged :
       {std::string(), whole.substr(0, whole.size() / 2), whole.substr(0, whole.size() - 1),
        std::string(whole).replace(whole.size() / 3, 1, 1,
                                   static_cast<char>(~whole[whole.size() / 3]))}) {
    write_file(first.path, damaged);
    const CompiledImage again = compile(request());
    EXPECT_FALSE(again.from_cache);
    EXPECT_EQ(result_of(again), 11);
  }
  EXPECT_EQ(calls(), 5u);
  EXPECT_TRUE(compile(request()).from_cache);
}

TEST_F(HostjitCache, AChangedHeaderIsNoticed) {
  use_counting_compiler();
  std::filesystem::create_directories(folder_ / "my include");
  const std::string header = folder_ / "my include/value.h";
  write_file(header, "constexpr int value = 1;");
  CompileRequest with_header;
  with_header.source = "#include <value.h>\n__global__ void k(int* p) { p[0] = value; }";
  with_header.name_expressions = {"k"};
  with_header.options = {"-I", folder_ / "my include"};
  EXPECT_EQ(result_of(compile(with_header)), 1);
  EXPECT_TRUE(compile(with_header).from_cache);
  write_file(header, "constexpr int value = 2;");
  EXPECT_EQ(result_of(compile(with_header)), 2);
  EXPECT_EQ(calls(), 2u);
}

// However a header is reached: no option names these.
TEST_F(HostjitCache, AChangedHeaderThatNoOptionNamesIsNoticed) {
  use_counting_compiler();
  const std::string folder = folder_ / "system";
  std::filesystem::create_directories(folder);
  const std::string value = folder + "/value.h";
  write_file(folder + "/outer.h", "#pragma GCC system_header\n#include \"" + value + "\"\n");
  std::size_t expected = 0;
  for (const std::string& include :
       {"\"" + value + "\"", "\"" + folder + "/outer.h\"", std::string("<value.h>")}) {
    if (include.front() == '<') setenv("CPLUS_INCLUDE_PATH", folder.c_str(), 1);
    CompileRequest with_header;
    with_header.source = "#include " + include + "\n__global__ void k(int* p) { p[0] = value; }";
    with_header.name_expressions = {"k"};
    write_file(value, "constexpr int value = 1;");
    EXPECT_EQ(result_of(compile(with_header)), 1) << include;
    EXPECT_TRUE(compile(with_header).from_cache) << include;
    write_file(value, "constexpr int value = 2;");
    EXPECT_EQ(result_of(compile(with_header)), 2) << include;
    expected += 2;
    EXPECT_EQ(calls(), expected) << include;
  }
  unsetenv("CPLUS_INCLUDE_PATH");
}

TEST_F(HostjitCache, ManyProcessesMakeOneImage) {
  use_counting_compiler();
  constexpr int kProcesses = 6;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      const CompiledImage image = compile(request());
      _exit(result_of(image) == 11 ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(calls(), 1u);
  std::size_t images = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / "cache/hostjit")) {
    if (entry.path().extension() == ".so") ++images;
    EXPECT_FALSE(entry.path().filename().string().starts_with("work.")) << entry.path();
  }
  EXPECT_EQ(images, 1u);
}

TEST_F(HostjitCache, WhatKilledProgramsLeftIsRemovedAfterADay) {
  namespace fs = std::filesystem;
  const Cache cache = Cache::open();
  const fs::path old = folder_ / "cache/hostjit/work.oldone";
  const fs::path young = folder_ / "cache/hostjit/work.young1";
  const fs::path other = folder_ / "cache/hostjit/other";
  for (const fs::path& made : {old, young, other}) {
    fs::create_directory(made);
    write_file((made / "unit.cpp").string(), "");
  }
  const auto now = fs::file_time_type::clock::now();
  fs::last_write_time(young, now - std::chrono::hours(20));
  for (const fs::path& made : {old, other}) fs::last_write_time(made, now - std::chrono::hours(25));
  const Cache::WorkFolder work(cache);
  EXPECT_TRUE(fs::is_directory(work.path()));
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(young / "unit.cpp"));
  EXPECT_TRUE(fs::exists(other / "unit.cpp"));
}

TEST_F(HostjitCache, KeysTellRequestsApart) {
  const std::string first = compile(request()).path;
  CompileRequest other = request();
  other.options = {"-O1"};
  EXPECT_NE(compile(other).path, first);
  other = request();
  other.source += "\n";
  EXPECT_NE(compile(other).path, first);
  other = request();
  other.source_name = "other.cu";
  EXPECT_NE(compile(other).path, first);
  EXPECT_EQ(compile(request()).path, first);
}

TEST_F(HostjitCache, WithoutAWritableFolderThereIsAPrivateOne) {
  write_file(folder_ / "file", "");
  setenv("LOCKSTEP_CACHE_DIR", (folder_ / "file/below").c_str(), 1);
  const CompiledImage first = compile(request());
  EXPECT_THAT(first.note, HasSubstr("compiled kernels are not kept"));
  EXPECT_THAT(first.note, HasSubstr("file/below"));
  EXPECT_EQ(result_of(first), 11);
  const CompiledImage second = compile(request());
  EXPECT_EQ(second.note, "");
  EXPECT_TRUE(second.from_cache);
}

TEST_F(HostjitCache, AFolderInPlaceOfAnImageIsNamed) {
  const std::string path = compile(request()).path;
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  const Error error = compile_error(request());
  EXPECT_EQ(error.code(), ErrorCode::kNoStorage);
  EXPECT_THAT(error.what(), HasSubstr(path));
}

TEST_F(HostjitCache, WithoutAPathTheUsualFoldersAreSearched) {
  const char* path = std::getenv("PATH");
  const std::string kept = path != nullptr ? path : "/usr/bin:/bin";
  unsetenv("PATH");
  const CompiledImage image = compile(request());
  setenv("PATH", kept.c_str(), 1);
  EXPECT_FALSE(image.from_cache);
  EXPECT_EQ(result_of(image), 11);
}

TEST_F(HostjitCache, AMissingCompilerIsNamed) {
  setenv("LOCKSTEP_HOST_COMPILER", "no-such-compiler", 1);
  EXPECT_EQ(compile_error(request()).code(), ErrorCode::kNoCompiler);
  EXPECT_THAT(compile_error(request()).what(), HasSubstr("no-such-compiler: not found on PATH"));
  std::string why;
  EXPECT_FALSE(compiler_available(&why));
  EXPECT_THAT(why, HasSubstr("LOCKSTEP_HOST_COMPILER"));
  setenv("LOCKSTEP_HOST_COMPILER", "/bin/false", 1);
  EXPECT_THAT(compile_error(request()).what(), HasSubstr("--version failed with code 1"));
}

TEST_F(HostjitCache, ACompilerThatHangsIsStopped) {
  const std::string script = folder_ / "slow";
  write_file(script,
             "#!/bin/sh\n[ \"$1\" = --version ] && exec c++ --version\necho waiting\nsleep 100\n");
  chmod(script.c_str(), 0700);
  setenv("LOCKSTEP_HOST_COMPILER", script.c_str(), 1);
  CompileRequest slow = request();
  slow.timeout = std::chrono::milliseconds(300);
  const Error error = compile_error(slow);
  EXPECT_EQ(error.code(), ErrorCode::kTimeout);
  EXPECT_EQ(error.log(), "waiting\n");
}

// What a program does about its children, until the end of the test.
class ChildSignal {
 public:
  explicit ChildSignal(void (*handler)(int)) {
    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigaction(SIGCHLD, &action, &before_);
  }
  ~ChildSignal() { sigaction(SIGCHLD, &before_, nullptr); }

 private:
  struct sigaction before_ = {};
};

TEST_F(HostjitCache, AProgramMayLookAfterItsChildrenItself) {
  void (*const reap)(int) = [](int) {
    const int number = errno;
    while (waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    errno = number;
  };
  int round = 0;
  for (void (*handler)(int) : {static_cast<void (*)(int)>(SIG_IGN), reap}) {
    const ChildSignal scope(handler);
    use_counting_compiler();  // a new file: it is asked anew who it is
    CompileRequest made = request();
    made.options = {"-DROUND=" + std::to_string(++round)};
    EXPECT_EQ(result_of(compile(made)), 11);
    made.source = "__global__ void k(int* p) { p[0] = undefined_thing; }";
    const Error error = compile_error(made);
    EXPECT_EQ(error.code(), ErrorCode::kCompileFailed);
    EXPECT_THAT(error.log(), HasSubstr("undefined_thing"));
    write_file(folder_ / "broken", "");
    made.source += " ";
    // A handler and the library wait for the same child: whoever comes first has its exit code.
    const std::string what = compile_error(made).what();
    EXPECT_TRUE(what.find("made no image") != what.npos ||
                (handler == reap && what.find("ended with code 3") != what.npos))
        << what;
    std::filesystem::remove(folder_ / "broken");
  }
  const ChildSignal scope(SIG_IGN);
  const std::string silent = folder_ / "silent";
  write_file(silent, "#!/bin/sh\nexit 1\n");
  chmod(silent.c_str(), 0700);
  setenv("LOCKSTEP_HOST_COMPILER", silent.c_str(), 1);
  EXPECT_THAT(compile_error(request()).what(), HasSubstr("silent: --version said nothing"));
}

// Forked without exec, it has every descriptor of ours, those of locks too.
TEST_F(HostjitCache, AChildForkedMeanwhileKeepsNoLock) {
  const Cache cache = Cache::open();
  const auto held = [&] {
    const int file = open((folder_ / "cache/hostjit/locks/ab").c_str(), O_RDWR | O_CLOEXEC);
    EXPECT_GE(file, 0);
    const bool locked = flock(file, LOCK_EX | LOCK_NB) != 0;
    close(file);
    return locked;
  };
  pid_t child = -1;
  {
    const Cache::Lock lock(cache, "ab");
    child = fork();
    if (child == 0) {
      for (;;) pause();
    }
    EXPECT_TRUE(held());
  }
  EXPECT_FALSE(held());
  ASSERT_GT(child, 0);
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
}

TEST_F(HostjitCache, TheCompilerInheritsNoDescriptors) {
  const std::string script = folder_ / "listing";
  write_file(
      script,
      "#!/bin/sh\n[ \"$1\" = --version ] && exec c++ --version\nls -l /proc/self/fd\nexit 1\n");
  chmod(script.c_str(), 0700);
  setenv("LOCKSTEP_HOST_COMPILER", script.c_str(), 1);
  write_file(folder_ / "secret", "");
  FILE* leaked = fopen((folder_ / "secret").c_str(), "r");
  ASSERT_NE(leaked, nullptr);
  const Error error = compile_error(request());
  fclose(leaked);
  EXPECT_THAT(error.log(), HasSubstr("/dev/null"));
  EXPECT_THAT(error.log(), ::testing::Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace lockstep::hostjit::testing
