// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// \file
/// Interned texts: numbers from 1, never forgotten. Reading takes no lock.
namespace lockstep::recorder {

/// Number of a text; *added is true when it is new. 0 when there is no memory left. The caller
/// holds the lock of texts.
std::uint32_t add_text(const char* text, std::size_t length, bool* added) noexcept;
bool find_text(std::uint32_t id, const char** text, std::size_t* length) noexcept;
std::uint32_t text_count() noexcept;

void lock_texts() noexcept;
void unlock_texts() noexcept;

}  // namespace lockstep::recorder
