// SPDX-License-Identifier: Apache-2.0
#include <lockstep/error.h>
#include <lockstep/trace_diff.h>
#include <lockstep/trace_file.h>

#include <gmock/gmock.h>
#include <ostream>
#include <random>

#include "support/trace_entries.h"

namespace lockstep {
namespace {

using namespace testing_support;
using testing::HasSubstr;

constexpr const char* kHeader = "{\"lockstep_trace\":1,\"producer\":\"t\"}\n";
constexpr const char* kKernel =
    "{\"kind\":\"kernel\",\"name\":\"saxpy\",\"grid\":[4,1,1],\"block\":[256,1,1],"
    "\"shared_mem_bytes\":0,\"stream\":0,\"hash\":\"5fc5bd52734b29ed\"}\n";

/// Reads these bytes as a file and says what came of it: an error, or the number of entries.
class Reading {
 public:
  explicit Reading(const std::string& bytes) {
    TemporaryFolder folder;
    write_bytes(folder / "t.jsonl", bytes);
    try {
      trace_ = read_trace(folder / "t.jsonl");
      code_ = ErrorCode::kOk;
    } catch (const Error& error) {
      code_ = error.code();
      what_ = error.what();
      where_ = error.context().where;
    }
  }
  ErrorCode code_;
  std::string what_, where_;
  Trace trace_;
};

struct Damage {
  const char* name;
  std::string bytes;
  int line;
  const char* says;

  friend void PrintTo(const Damage& damage, std::ostream* to) { *to << damage.name; }
};

std::string entry(const std::string& keys) { return kHeader + ("{" + keys + "}\n"); }

std::string nested(int depth) {
  return entry("\"kind\":\"mark\",\"x\":" + std::string(static_cast<std::size_t>(depth), '[') +
               std::string(static_cast<std::size_t>(depth), ']'));
}

std::vector<Damage> damages() {
  const std::string h = kHeader, k = kKernel;
  return {
      {"NotJson", h + "nonsense\n", 2, "not JSON"},
      {"NotAnObject", h + "[1]\n", 2, "object"},
      {"EmptyLine", h + "\n" + k, 2, "not JSON"},
      {"NoKind", h + "{\"name\":\"x\"}\n", 2, "neither an entry"},
      {"KindOfWrongType", h + "{\"kind\":3}\n", 2, "\"kind\" must be a string"},
      {"NotATrace", "{\"kind\":\"mark\"}\n", 1, "the first line is not its header"},
      {"Prose", "# A page\nof words\n", 1,
       ": not a Lockstep trace (the first line is not its header)"},
      {"OneLineOfProse", "words", 1, "not a Lockstep trace"},
      {"HeaderCut", "{\"lockstep_trace\":1\n", 1, "not a trace header: not JSON"},
      {"LaterVersion", "{\"lockstep_trace\":2}\n", 1, "version 2"},
      {"SecondHeader", h + h, 2, "second header"},
      {"NameMissing", entry("\"kind\":\"kernel\",\"grid\":[1,1,1],\"block\":[1,1,1]"), 2, "name"},
      {"GridMissing", entry("\"kind\":\"kernel\",\"name\":\"k\",\"block\":[1,1,1]"), 2, "grid"},
      {"GridTooShort", entry("\"kind\":\"kernel\",\"name\":\"k\",\"grid\":[1,1],\"block\":[1,1,1]"),
       2, "three"},
      {"GridTooLarge",
       entry("\"kind\":\"kernel\",\"name\":\"k\",\"grid\":[4294967296,1,1],\"block\":[1,1,1]"), 2,
       "\"grid\" must be a whole number from 0 to 4294967295"},
      {"GridNegative",
       entry("\"kind\":\"kernel\",\"name\":\"k\",\"grid\":[-1,1,1],\"block\":[1,1,1]"), 2, "grid"},
      {"GridFraction",
       entry("\"kind\":\"kernel\",\"name\":\"k\",\"grid\":[1.5,1,1],\"block\":[1,1,1]"), 2, "grid"},
      {"NumberTooLarge", entry("\"kind\":\"mark\",\"seq\":99999999999999999999"), 2, "JSON"},
      {"FlagOfWrongType", entry("\"kind\":\"mark\",\"captured\":1"), 2, "true or false"},
      {"Direction", entry("\"kind\":\"memcpy\",\"name\":\"c\",\"direction\":\"up\",\"bytes\":1"), 2,
       "HtoD, DtoH, DtoD or HtoH"},
      {"ExtentDisagrees",
       entry("\"kind\":\"memcpy\",\"name\":\"c\",\"direction\":\"HtoD\",\"bytes\":5,"
             "\"extent\":[2,2,1]"),
       2, "does not cover 5 bytes"},
      {"ExtentOverflows",
       entry("\"kind\":\"memcpy\",\"name\":\"c\",\"direction\":\"HtoD\",\"bytes\":0,"
             "\"extent\":[4294967296,4294967296,1]"),
       2, "does not cover"},
      {"ValueSize",
       entry("\"kind\":\"memset\",\"name\":\"s\",\"bytes\":8,\"value\":0,\"value_size\":3"), 2,
       "1, 2 or 4"},
      {"ValueTooLarge",
       entry("\"kind\":\"memset\",\"name\":\"s\",\"bytes\":8,\"value\":256,\"value_size\":1"), 2,
       "does not fit"},
      {"HashDisagrees",
       h + k + entry("").substr(h.size()).replace(0, 3, k.substr(0, k.size() - 5)) + "00\"}\n", 3,
       "fields hash to 5fc5bd52734b29ed"},
      {"HashNotHex", entry("\"kind\":\"mark\",\"hash\":\"xyz\""), 2, "16 hex digits"},
      {"KeyTwice", entry("\"kind\":\"mark\",\"stream\":1,\"stream\":2"), 2, "stands twice"},
      {"HeaderKeyTwice", "{\"lockstep_trace\":1,\"pid\":1,\"pid\":2}\n", 1, "\"pid\" stands twice"},
      {"HeaderVersionTwice", "{\"lockstep_trace\":1,\"lockstep_trace\":1}\n", 1, "stands twice"},
      {"MetaTwice", h + "{\"meta\":{},\"meta\":{}}\n", 2, "\"meta\" stands twice"},
      {"MetaKeyTwice", h + "{\"meta\":{\"driver\":\"1\",\"driver\":\"2\"}}\n", 2, "driver"},
      {"MetaUnknownKeyTwice", h + "{\"meta\":{\"x\":1,\"x\":1}}\n", 2, "\"x\" stands twice"},
      {"DeviceKeyTwice", h + "{\"meta\":{\"devices\":[{\"ordinal\":0,\"ordinal\":1}]}}\n", 2,
       "\"ordinal\" stands twice"},
      {"StreamKeyTwice", h + "{\"define\":\"stream\",\"stream\":1,\"stream\":2}\n", 2,
       "\"stream\" stands twice"},
      {"DefineTwice", h + "{\"define\":\"stream\",\"define\":\"graph\",\"stream\":1}\n", 2,
       "\"define\" stands twice"},
      {"NodesTwice", h + "{\"define\":\"graph\",\"graph\":0,\"nodes\":[],\"nodes\":[]}\n", 2,
       "\"nodes\" stands twice"},
      {"NodeKeyTwice",
       h + "{\"define\":\"graph\",\"graph\":0,\"nodes\":[{\"kind\":\"mark\",\"t\":1,\"t\":1}]}\n",
       2, "\"t\" stands twice"},
      {"FooterKeyTwice", h + "{\"end\":true,\"entries\":0,\"entries\":0}\n", 2,
       "\"entries\" stands twice"},
      {"EndTwice", h + "{\"end\":true,\"end\":true,\"entries\":0}\n", 2, "\"end\" stands twice"},
      {"UnknownKeyTwice", entry("\"kind\":\"mark\",\"x\":1,\"y\":2,\"x\":1"), 2,
       "\"x\" stands twice"},
      {"KeyOfAnotherKindTwice", entry("\"kind\":\"mark\",\"grid\":1,\"grid\":2"), 2,
       "\"grid\" stands twice"},
      {"ArgumentKeyTwice",
       entry(
           "\"kind\":\"memcpy\",\"name\":\"c\",\"bytes\":1,\"source\":{\"buffer\":1,\"buffer\":2}"),
       2, "\"source\" must name one of"},
      {"OffsetTwice",
       entry("\"kind\":\"memcpy\",\"name\":\"c\",\"bytes\":1,"
             "\"source\":{\"buffer\":1,\"offset\":2,\"offset\":2}"),
       2, "\"offset\" stands twice"},
      {"TwoNames", entry("\"kind\":\"mark\",\"name\":\"a\",\"name_hex\":\"61\""), 2, "one name"},
      {"NameHexOdd", entry("\"kind\":\"mark\",\"name_hex\":\"6\""), 2, "two hex digits"},
      {"NotUtf8", entry("\"kind\":\"mark\",\"name\":\"\xff\""), 2, "not JSON"},
      {"ControlCharacter", entry("\"kind\":\"mark\",\"name\":\"\x01\""), 2, "not JSON"},
      {"TooDeep", nested(5000), 2, "not JSON"},
      {"DefineUnknown", h + "{\"define\":\"city\"}\n", 2, "city"},
      {"StreamTwice",
       h + "{\"define\":\"stream\",\"stream\":1}\n{\"define\":\"stream\",\"stream\":1}\n", 3,
       "stream 1 is defined twice"},
      {"ReplacesNothing", h + "{\"define\":\"stream\",\"stream\":0,\"replaces\":9}\n", 2,
       "stream 0 replaces 9, which is no provisional stream"},
      {"ReplacesAnOrdinaryStream",
       h + "{\"define\":\"stream\",\"stream\":9}\n{\"define\":\"stream\",\"stream\":0,\"replaces\":"
           "9}\n",
       3, "no provisional stream"},
      {"ReplacesTwice",
       h + "{\"define\":\"stream\",\"stream\":9,\"provisional\":true}\n"
           "{\"define\":\"stream\",\"stream\":0,\"replaces\":9}\n"
           "{\"define\":\"stream\",\"stream\":1,\"replaces\":9}\n",
       4, "stream 1 replaces 9, which is replaced already"},
      {"ReplacesNoNumber", h + "{\"define\":\"stream\",\"stream\":0,\"replaces\":-1}\n", 2,
       "must be the number of a stream"},
      {"ProvisionalNotTrue", h + "{\"define\":\"stream\",\"stream\":0,\"provisional\":1}\n", 2,
       "\"provisional\" must be true"},
      {"ProvisionalAndReplaces",
       h + "{\"define\":\"stream\",\"stream\":0,\"provisional\":true,\"replaces\":1}\n", 2,
       "exclude each other"},
      {"GraphTwice",
       h + "{\"define\":\"graph\",\"graph\":0,\"nodes\":[]}\n{\"define\":\"graph\",\"graph\":0,"
           "\"nodes\":[]}\n",
       3, "graph 0 version 0 is defined twice"},
      {"EdgeOutOfRange", h + "{\"define\":\"graph\",\"graph\":0,\"nodes\":[],\"edges\":[[0,1]]}\n",
       2, "[0,1]"},
      {"EdgesHaveACycle",
       h + "{\"define\":\"graph\",\"graph\":0,\"nodes\":[{\"kind\":\"mark\"}],\"edges\":[[0,0]]}\n",
       2, "cycle"},
      {"ProgrammaticEdge",
       h + "{\"define\":\"graph\",\"graph\":0,\"nodes\":[],\"edges\":[],\"programmatic\":[0]}\n", 2,
       "programmatic"},
      {"FooterMiscounts", h + k + "{\"end\":true,\"entries\":2}\n", 3,
       "the footer counts 2 entries, the file has 1"},
      {"BehindTheFooter", h + "{\"end\":true,\"entries\":0}\n" + k, 3, "after the footer"},
      {"HalfALineBehindTheFooter", h + "{\"end\":true,\"entries\":0}\n{", 3, "after the footer"},
  };
}

class DamagedLines : public testing::TestWithParam<Damage> {};

TEST_P(DamagedLines, AreErrorsThatNameTheLine) {
  const Reading reading(GetParam().bytes);
  EXPECT_EQ(reading.code_, ErrorCode::kInvalidFile) << reading.what_;
  EXPECT_THAT(reading.what_, HasSubstr("t.jsonl:" + std::to_string(GetParam().line) + ": "));
  EXPECT_THAT(reading.what_, HasSubstr(GetParam().says));
  EXPECT_THAT(reading.where_, HasSubstr(":" + std::to_string(GetParam().line)));
}

INSTANTIATE_TEST_SUITE_P(Lines, DamagedLines, testing::ValuesIn(damages()),
                         [](const auto& parameter) { return parameter.param.name; });

TEST(Damage, MissingLastLineFeedIsTruncation) {
  const std::string whole = std::string(kHeader) + kKernel + "{\"end\":true,\"entries\":1}";
  EXPECT_FALSE(Reading(whole).trace_.footer.present);
  EXPECT_TRUE(Reading(whole + "\n").trace_.footer.present);
}

TEST(Damage, ShortFilesSayWhatTheyAre) {
  EXPECT_EQ(Reading("").code_, ErrorCode::kTruncatedFile);
  EXPECT_EQ(Reading("{\"lockstep_tr").code_, ErrorCode::kTruncatedFile);
  EXPECT_EQ(Reading("\x28\xb5").code_, ErrorCode::kTruncatedFile);
  EXPECT_EQ(Reading("\x7f"
                    "ELF")
                .code_,
            ErrorCode::kInvalidFile);
}

TEST(Damage, HugeLinesAreReadWhole) {
  const std::string name(5 << 20, 'n');
  const Reading reading(entry("\"kind\":\"mark\",\"name\":\"" + name + "\""));
  ASSERT_EQ(reading.code_, ErrorCode::kOk) << reading.what_;
  EXPECT_EQ(reading.trace_.entries[0].name, name);
}

TEST(Damage, ChangedFieldUnderAnOldHash) {
  std::string bytes = read_bytes(recording("torch-streams"));
  const std::size_t at = bytes.find("\"grid\":[1,1,1]");
  bytes[at + 8] = '2';
  const Reading reading(bytes);
  EXPECT_EQ(reading.code_, ErrorCode::kInvalidFile);
  EXPECT_THAT(reading.what_, HasSubstr("t.jsonl:3: \"hash\""));
  TemporaryFolder folder;
  write_bytes(folder / "t.jsonl", bytes);
  TraceReaderOptions unchecked;
  unchecked.check_hashes = false;
  EXPECT_EQ(read_trace(folder / "t.jsonl", unchecked).entries.size(), 29u);
}

/// Every prefix of `whole` is truncated, or an error, and never equal to the whole.
void cut_everywhere(const std::string& whole, const Trace& original) {
  MemoryFile file;
  const auto path = file.path();
  std::size_t truncated = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    file.assign(std::string_view(whole).substr(0, size));
    try {
      const Trace trace = read_trace(path);
      ASSERT_FALSE(trace.footer.present) << "cut at " << size;
      ASSERT_LE(trace.entries.size(), original.entries.size());
      for (std::size_t i = 0; i < trace.entries.size(); ++i) {
        ASSERT_EQ(trace.entries[i].semantic_hash, original.entries[i].semantic_hash);
      }
      ASSERT_FALSE(diff(trace, original).equal) << "cut at " << size;
      ++truncated;
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::kTruncatedFile) << "cut at " << size << error.what();
    }
  }
  EXPECT_GT(truncated, 0u);
}

class CutRecordings : public testing::TestWithParam<const char*> {};

TEST_P(CutRecordings, PlainAtEveryByte) {
  const auto path = recording(GetParam());
  cut_everywhere(read_bytes(path), read_trace(path));
}

TEST_P(CutRecordings, CompressedAtEveryByte) {
  TemporaryFolder folder;
  const Trace trace = read_trace(recording(GetParam()));
  TraceWriterOptions options;
  options.flush_bytes = 4096;  // several frames
  write_trace(folder / "whole.jsonl.zst", trace, options);
  cut_everywhere(read_bytes(folder / "whole.jsonl.zst"), trace);
}

INSTANTIATE_TEST_SUITE_P(Traces, CutRecordings,
                         testing::Values("gpt2-fwd-b1-bf16-l2", "gpt2-fwd-b4-bf16-l2",
                                         "mlp-eager-b64-fp32", "mlp-eager-b8-fp32-again",
                                         "mlp-eager-b8-fp32", "mlp-graph-b8-fp32", "torch-streams",
                                         "triton-softmax"),
                         [](const auto& parameter) {
                           std::string name = parameter.param;
                           name.erase(std::remove(name.begin(), name.end(), '-'), name.end());
                           return name;
                         });

TEST(Damage, ConcatenatedFramesAreOneFile) {
  TemporaryFolder folder;
  const Trace trace = read_trace(recording("torch-streams"));
  TraceWriterOptions options;
  options.flush_bytes = 512;
  write_trace(folder / "a.jsonl.zst", trace, options);
  EXPECT_EQ(read_trace(folder / "a.jsonl.zst").entries, trace.entries);
  // Another file behind it is something after the footer.
  write_bytes(folder / "b.jsonl.zst",
              read_bytes(folder / "a.jsonl.zst") + read_bytes(folder / "a.jsonl.zst"));
  EXPECT_THROW(read_trace(folder / "b.jsonl.zst"), Error);
}

TEST(Damage, EveryFlippedBitOfACompressedFileIsNoticed) {
  TemporaryFolder folder;
  const auto path = folder / "a.jsonl.zst";
  const Trace trace = read_trace(recording("triton-softmax"));
  write_trace(path, trace);
  const std::string whole = read_bytes(path);
  MemoryFile file;
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    file.assign(flipped);
    try {
      const Trace read = read_trace(file.path());
      // A few bits of a frame header say nothing about its content.
      ASSERT_TRUE(!read.footer.present || read.entries == trace.entries) << "bit " << bit;
    } catch (const Error& error) {
      ASSERT_THAT(error.code(), testing::AnyOf(ErrorCode::kInvalidFile, ErrorCode::kTruncatedFile))
          << "bit " << bit;
    }
  }
}

TEST(Damage, FlippedBitsOfPlainFilesNeverCrash) {
  std::mt19937_64 random(4711);
  MemoryFile file;
  const std::string whole = read_bytes(recording("mlp-graph-b8-fp32"));
  std::size_t refused = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string flipped = whole;
    for (std::uint64_t flips = 1 + random() % 3; flips > 0; --flips) {
      char& byte = flipped[random() % flipped.size()];
      byte = static_cast<char>(byte ^ (1 << (random() % 8)));
    }
    file.assign(flipped);
    try {
      view(read_trace(file.path()));
    } catch (const Error& error) {
      ++refused;
      ASSERT_THAT(error.code(), testing::AnyOf(ErrorCode::kInvalidFile, ErrorCode::kTruncatedFile))
          << error.what();
    }
  }
  EXPECT_GT(refused, 2000u);
}

TEST(Damage, RandomBytesNeverCrash) {
  std::mt19937_64 random(1234);
  MemoryFile file;
  const std::string starts[] = {"", kHeader, "\x28\xb5\x2f\xfd", "\x50\x2a\x4d\x18"};
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = starts[round % 4];
    for (std::uint64_t count = random() % 300; count > 0; --count) {
      bytes.push_back(static_cast<char>(random()));
    }
    file.assign(bytes);
    bool whole = false;
    try {
      whole = read_trace(file.path()).footer.present;
    } catch (const Error& error) {
      ASSERT_THAT(error.code(), testing::AnyOf(ErrorCode::kInvalidFile, ErrorCode::kTruncatedFile));
    }
    EXPECT_FALSE(whole);
  }
}

}  // namespace
}  // namespace lockstep
