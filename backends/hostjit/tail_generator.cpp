// SPDX-License-Identifier: Apache-2.0
#include "tail_generator.h"

#include <cstdio>

#include "hostjit.h"

namespace lockstep::hostjit {
namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace

std::string string_literal(std::string_view text) {
  std::string literal = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      literal += '\\';
      literal += c;
    } else if (byte < 0x20) {
      char octal[5];
      std::snprintf(octal, sizeof octal, "\\%03o", byte);
      literal += octal;
    } else {
      literal += c;
    }
  }
  return literal + "\"";
}

std::string normalized_expression(std::string_view expression) {
  std::string result;
  bool blank = false;
  for (const char c : expression) {
    if (c == ' ' || c == '\t') {
      blank = true;
      continue;
    }
    if (blank && !result.empty() && is_word(result.back()) && is_word(c)) result += ' ';
    blank = false;
    result += c;
  }
  std::size_t begin = result.starts_with("&") ? 1 : 0;
  if (std::string_view(result).substr(begin).starts_with("::")) begin += 2;
  return result.substr(begin);
}

std::string checked_expression(std::string_view expression) {
  std::string_view name = trimmed(expression);
  if (name.starts_with("&")) name = trimmed(name.substr(1));
  if (name.empty()) throw Error(ErrorCode::kInvalidOption, "a kernel name expression is empty");
  if (name.find_first_of(";{}#\"\\\n\r") != std::string_view::npos) {
    throw Error(ErrorCode::kInvalidOption, "'" + std::string(expression) +
                                               "' is not the name of a kernel; write for example "
                                               "saxpy, ns::saxpy or scale<float, 3>");
  }
  return std::string(name);
}

std::string generate_tail(const std::vector<std::string>& expressions) {
  // The user's macros hold here, too: only names that begin with `lockstep_` are safe.
  std::string text = "\n";
  for (std::size_t i = 0; i < expressions.size(); ++i) {
    text += "#line 1 " + string_literal("name expression '" + expressions[i] + "'") + "\n";
    text += "static constexpr auto lockstep_kernel_" + std::to_string(i) + " = &" + expressions[i] +
            ";\n";
  }
  text +=
      "#line 1 \"lockstep tail\"\nstatic const ::lockstep_hostjit_kernel_entry lockstep_kernels[] "
      "= {\n";
  for (std::size_t i = 0; i < expressions.size(); ++i) {
    text += "::lockstep_hostjit_entry_of<lockstep_kernel_" + std::to_string(i) + ">(" +
            string_literal(expressions[i]) + "),\n";
  }
  text +=
      "::lockstep_hostjit_kernel_entry{}};\n"
      "extern \"C\" __attribute__((__visibility__(\"default\"), __used__)) const "
      "::lockstep_hostjit_image_table lockstep_hostjit_table = "
      "{::lockstep_hostjit_abi_magic, ::lockstep_hostjit_abi_version, " +
      std::to_string(expressions.size()) + ", lockstep_kernels};\n";
  return text;
}

}  // namespace lockstep::hostjit
