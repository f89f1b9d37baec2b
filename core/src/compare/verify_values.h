// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/verify.h>

#include <cstddef>
#include <string>
#include <vector>

/// \file
/// Level L4: bytes of outputs, from two eager runs and one replay.
namespace lockstep::verifying {

/// What outputs hold before the two eager runs. Bytes that hold the one after the first run and
/// the other after the second were written by neither.
constexpr std::byte kFirstPoison{0xa5};
constexpr std::byte kSecondPoison{0x5a};

/// One piece of memory, as the host read it after each run.
struct ComparedMemory {
  std::string name;      ///< "output 0"
  bool poisoned = true;  ///< false: in-place memory, whose first content is restored instead
  std::vector<std::byte> first_eager, second_eager, replay;
  std::vector<std::byte> before;  ///< what was restored; empty where poisoned
};

/// Before replay an output holds the complement of what eager wrote, so that every byte that
/// replay does not write is found.
std::vector<std::byte> complement(const std::vector<std::byte>& bytes);

/// Appends what differs, and what could not be compared. True when all outputs agree.
bool compare_values(const std::vector<ComparedMemory>& memories,
                    std::vector<VerifyFinding>& findings);

}  // namespace lockstep::verifying
