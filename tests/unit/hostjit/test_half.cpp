// SPDX-License-Identifier: Apache-2.0
// lockstep::half and lockstep::bfloat16 against vectors made with F16C (round to nearest even), and
// against exact arithmetic.
#include <lockstep/kernel.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <type_traits>

namespace lockstep {
namespace {

static_assert(std::is_trivial_v<half> && std::is_trivial_v<bfloat16>);

float bits(std::uint32_t value) { return std::bit_cast<float>(value); }

TEST(HalfTypes, HalfFromFloatAtTheEdges) {
  const struct {
    std::uint32_t from;
    std::uint16_t to;
  } vectors[] = {
      {0x00000000, 0x0000}, {0x80000000, 0x8000}, {0x3f800000, 0x3c00},
      {0xc0490fdb, 0xc248}, {0x477fe000, 0x7bff},  // 65504, the largest
      {0x477fefff, 0x7bff}, {0x477ff000, 0x7c00},  // 65520 rounds to infinity
      {0x7f800000, 0x7c00}, {0xff800000, 0xfc00}, {0x7f7fffff, 0x7c00},
      {0x38800000, 0x0400},                        // the smallest normal
      {0x387fe000, 0x0400}, {0x387fc000, 0x03ff},  // below it: a tie upwards, the largest subnormal
      {0x33800000, 0x0001},                        // 2^-24, the smallest subnormal
      {0x33000000, 0x0000}, {0x33000001, 0x0001},  // 2^-25: a tie to even, just above
      {0x32ffffff, 0x0000}, {0x33c00000, 0x0002}, {0x3f801000, 0x3c00},
      {0x3f803000, 0x3c02},  // ties to even
      {0x3f801001, 0x3c01}, {0x7fc00000, 0x7e00}, {0xffc00000, 0xfe00},
      {0x7f800001, 0x7e00},  // a signalling NaN becomes quiet
      {0x7fbfe000, 0x7fff}, {0x00000001, 0x0000}, {0x80000001, 0x8000}};
  for (const auto& vector : vectors)
    EXPECT_EQ(half(bits(vector.from)).bits, vector.to) << std::hex << vector.from;
}

TEST(HalfTypes, EveryHalfReturnsUnchanged) {
  for (std::uint32_t i = 0; i < 0x10000; ++i) {
    const auto pattern = static_cast<unsigned short>(i);
    const auto value = static_cast<float>(half::from_bits(pattern));
    const bool nan = (i & 0x7fff) > 0x7c00;
    ASSERT_EQ(std::isnan(value), nan) << std::hex << i;
    ASSERT_EQ(half(value).bits, nan ? (i | 0x200) : i) << std::hex << i;
    if (!nan && (i & 0x7c00) != 0x7c00) {
      const int exponent = static_cast<int>(i >> 10 & 31);
      const double mantissa = (i & 0x3ff) / 1024.0 + (exponent != 0);
      const double exact = std::ldexp(mantissa, exponent != 0 ? exponent - 15 : -14);
      ASSERT_EQ(static_cast<double>(value), (i & 0x8000) != 0 ? -exact : exact) << std::hex << i;
    }
  }
}

TEST(HalfTypes, HalfRoundsEveryMidpointToEven) {
  for (std::uint32_t i = 0; i < 0x7bff; ++i) {
    const auto low = static_cast<double>(float(half::from_bits(static_cast<unsigned short>(i))));
    const auto high =
        static_cast<double>(float(half::from_bits(static_cast<unsigned short>(i + 1))));
    const auto middle = static_cast<float>((low + high) / 2);  // exact in binary32
    const std::uint32_t even = (i & 1) != 0 ? i + 1 : i;
    ASSERT_EQ(half(middle).bits, even) << std::hex << i;
    ASSERT_EQ(half(std::nextafter(middle, 0.0f)).bits, i) << std::hex << i;
    ASSERT_EQ(half(std::nextafter(middle, 1e9f)).bits, i + 1) << std::hex << i;
  }
}

TEST(HalfTypes, Bfloat16FromFloat) {
  const struct {
    std::uint32_t from;
    std::uint16_t to;
  } vectors[] = {{0x3f800000, 0x3f80}, {0x3f808000, 0x3f80}, {0x3f818000, 0x3f82},
                 {0x3f808001, 0x3f81}, {0x7f7fffff, 0x7f80}, {0x7f800000, 0x7f80},
                 {0xff800000, 0xff80}, {0x7f800001, 0x7fc0}, {0x7fc12345, 0x7fc1},
                 {0x00000001, 0x0000}, {0x00008000, 0x0000}, {0x00008001, 0x0001},
                 {0x80000000, 0x8000}, {0xc0490fdb, 0xc049}};
  for (const auto& vector : vectors)
    EXPECT_EQ(bfloat16(bits(vector.from)).bits, vector.to) << std::hex << vector.from;
  for (std::uint32_t i = 0; i < 0x10000; ++i) {
    const auto value = static_cast<float>(bfloat16::from_bits(static_cast<unsigned short>(i)));
    ASSERT_EQ(std::bit_cast<std::uint32_t>(value), i << 16);
  }
}

TEST(HalfTypes, ArithmeticIsThatOfFloat) {
  half h(1.5f);
  h += 2.25f;
  EXPECT_EQ(h.bits, half(3.75f).bits);
  h *= half(2.0f);
  EXPECT_EQ(h.bits, half(7.5f).bits);
  EXPECT_EQ(h / half(3.0f), 2.5f);
  bfloat16 b(3.0f);
  b -= 1.0f;
  b /= 4.0f;
  EXPECT_EQ(b.bits, bfloat16(0.5f).bits);
  EXPECT_TRUE(half(1.0f) < half(2.0f));
}

}  // namespace
}  // namespace lockstep
