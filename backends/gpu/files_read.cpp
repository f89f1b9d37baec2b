// SPDX-License-Identifier: Apache-2.0
#include "files_read.h"

#include <algorithm>
#include <cctype>
#include <iterator>

namespace lockstep::gpu {
namespace {

// Options of NVRTC and of clang (hipRTC) that name no file.
constexpr std::string_view kAlone[] = {
    "-G",
    "--device-debug",
    "-g",
    "-lineinfo",
    "--generate-line-info",
    "-w",
    "--disable-warnings",
    "-use_fast_math",
    "--use_fast_math",
    "-ffast-math",
    "-default-device",
    "--device-as-default-execution-space",
    "-restrict",
    "--restrict",
    "-ewp",
    "--extensible-whole-program",
    "-dc",
    "--device-c",
    "-dw",
    "--device-w",
    "-extra-device-vectorization",
    "--extra-device-vectorization",
    "-device-int128",
    "--device-int128",
    "-device-float128",
    "--device-float128",
    "-disable-optimizer-consts",
    "-no-source-include",
    "--no-source-include",
    "-err-no",
    "--display-error-number",
    "--no-display-error-number",
    "-minimal",
    "--minimal",
    "-no-cache",
    "--no-cache",
    "-dlto",
    "--dlink-time-opt",
    "-mcumode",
    "-mno-cumode",
    "-mtgsplit",
    "-mno-tgsplit",
    "-mwavefrontsize64",
    "-mno-wavefrontsize64",
    "-munsafe-fp-atomics",
    "-mno-unsafe-fp-atomics",
    "-fgpu-flush-denormals-to-zero",
    "-O",
    "-O0",
    "-O1",
    "-O2",
    "-O3",
    "-Os",
    "-Oz",
    "-Ofast",
};
// The value follows at once, or behind the name without its '=' as the next option.
constexpr std::string_view kWithValue[] = {
    "-std=",
    "--std=",
    "-arch=",
    "--gpu-architecture=",
    "--offload-arch=",
    "-maxrregcount=",
    "--maxrregcount=",
    "-rdc=",
    "--relocatable-device-code=",
    "-ftz=",
    "--ftz=",
    "-prec-sqrt=",
    "--prec-sqrt=",
    "-prec-div=",
    "--prec-div=",
    "-fmad=",
    "--fmad=",
    "-ffp-contract=",
    "-ffp-model=",
    "-fdenormal-fp-math=",
    "-fdenormal-fp-math-f32=",
    "-fno-",  // switches something off
    "-diag-error=",
    "--diag-error=",
    "-diag-suppress=",
    "--diag-suppress=",
    "-diag-warn=",
    "--diag-warn=",
    "-builtin-move-forward=",
    "--builtin-move-forward=",
    "-builtin-initializer-list=",
    "--builtin-initializer-list=",
    "-modify-stack-limit=",
    "--modify-stack-limit=",
    "-split-compile=",
    "--split-compile=",
    "-version-ident=",
    "--version-ident=",
    "-mcode-object-version=",
    "-mprintf-kind=",
    "-ferror-limit=",
};
// Macros, with the value behind them or as the next option.
constexpr std::string_view kMacros[] = {"--define-macro", "--undefine-macro", "-D", "-U"};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool leaves_files_alone(std::string_view option) {
  if (std::find(std::begin(kAlone), std::end(kAlone), option) != std::end(kAlone)) return true;
  const auto begins = [&](std::string_view name) { return option.starts_with(name); };
  if (std::any_of(std::begin(kWithValue), std::end(kWithValue), begins)) return true;
  // -Wp, -Wa, and -Wl, hand something to another program.
  return begins("-W") && option.find(',') == std::string_view::npos;
}

// Lines that a backslash continues are one; blanks behind it are allowed by both compilers.
std::string spliced(std::string_view text) {
  std::string joined;
  joined.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    const std::size_t mark = text.substr(at, 3) == "\?\?/" ? 3 : text[at] == '\\' ? 1 : 0;
    if (mark != 0) {
      std::size_t end = text.find_first_not_of(" \t\v\f\r", at + mark);
      if (end != std::string_view::npos && text[end] == '\n') {
        at = end;
        continue;
      }
    }
    joined += text[at];
  }
  return joined;
}

// Finds what may read a file in a text whose lines are spliced.
class Finder {
 public:
  Finder(std::string_view text, const std::vector<std::string_view>& given, bool own_folders_only)
      : text_(text), given_(given), own_folders_only_(own_folders_only) {}

  std::string find() {
    for (std::size_t at = 0; at < text_.size(); ++at) {
      std::size_t next = at;
      if (text_[at] == '#') {
        next = at + 1;
      } else if (text_.substr(at, 2) == "%:") {
        next = at + 2;
      } else if (text_.substr(at, 3) == "\?\?=") {
        next = at + 3;
      } else if (is_word(text_[at]) && (at == 0 || !is_word(text_[at - 1]))) {
        if (!allows_word(at)) return excerpt(at);
        continue;
      } else {
        continue;
      }
      if (!allows_directive(next)) return excerpt(at);
    }
    return {};
  }

 private:
  std::size_t skip_blanks(std::size_t at) const {
    while (at < text_.size()) {
      if (text_[at] == ' ' || text_[at] == '\t' || text_[at] == '\v' || text_[at] == '\f') {
        ++at;
      } else if (text_.substr(at, 2) == "/*") {
        const std::size_t end = text_.find("*/", at + 2);
        at = end == std::string_view::npos ? text_.size() : end + 2;
      } else {
        break;
      }
    }
    return at;
  }
  std::string_view word_at(std::size_t at) const {
    std::size_t end = at;
    while (end < text_.size() && is_word(text_[end])) ++end;
    return text_.substr(at, end - at);
  }
  std::string excerpt(std::size_t at) const {
    return std::string(text_.substr(at, std::min<std::size_t>(text_.find('\n', at) - at, 80)));
  }

  bool allows_directive(std::size_t at) const {
    at = skip_blanks(at);
    const std::string_view word = word_at(at);
    if (word == "embed") return false;
    if (word != "include" && word != "include_next" && word != "import") return true;
    return is_known(skip_blanks(at + word.size()));
  }
  bool allows_word(std::size_t at) const {
    const std::string_view word = word_at(at);
    // In assembler text, too.
    if (word == "__has_embed" || word == "incbin") return false;
    if (word == "include" && at > 0 && text_[at - 1] == '.') return false;
    if (word != "__has_include" && word != "__has_include_next") return true;
    at = skip_blanks(at + word.size());
    // Alone, it asks for the operator itself.
    return at >= text_.size() || text_[at] != '(' || is_known(skip_blanks(at + 1));
  }
  // Is it a header that was given, or one of the compiler's own?
  bool is_known(std::size_t at) const {
    if (at >= text_.size() || (text_[at] != '"' && text_[at] != '<')) return false;  // a macro
    const bool quoted = text_[at] == '"';
    const std::size_t end = text_.find_first_of(quoted ? "\"\n" : ">\n", at + 1);
    if (end == std::string_view::npos || text_[end] == '\n') return true;  // does not compile
    const std::string_view name = text_.substr(at + 1, end - at - 1);
    if (std::find(given_.begin(), given_.end(), name) != given_.end()) return true;
    return !quoted && own_folders_only_ && !name.starts_with('/') &&
           name.find("..") == std::string_view::npos;
  }

  const std::string_view text_;
  const std::vector<std::string_view>& given_;
  const bool own_folders_only_;
};

}  // namespace

std::string option_that_may_read(const std::vector<std::string>& options) {
  for (std::size_t index = 0; index < options.size(); ++index) {
    const std::string& option = options[index];
    const auto* const macro =
        std::find_if(std::begin(kMacros), std::end(kMacros),
                     [&](std::string_view name) { return option.starts_with(name); });
    if (macro != std::end(kMacros)) {
      if (option == *macro) ++index;  // the next one is its value
      continue;
    }
    const bool value_next =
        std::any_of(std::begin(kWithValue), std::end(kWithValue), [&](std::string_view name) {
          return name.ends_with('=') && option == name.substr(0, name.size() - 1);
        });
    if (value_next && index + 1 < options.size() && !options[index + 1].starts_with('-') &&
        !options[index + 1].starts_with('@')) {
      ++index;
      continue;
    }
    if (!leaves_files_alone(option)) return option;
  }
  return {};
}

std::string text_that_may_read(std::string_view text, const std::vector<std::string_view>& given,
                               bool own_folders_only) {
  const std::string joined = spliced(text);
  return Finder(joined, given, own_folders_only).find();
}

}  // namespace lockstep::gpu
