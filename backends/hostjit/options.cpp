// SPDX-License-Identifier: Apache-2.0
#include "options.h"

#include <filesystem>
#include <optional>
#include <string_view>

#include "hostjit.h"
#include "tail_generator.h"

namespace lockstep::hostjit {
namespace {

constexpr const char* kKnown =
    "known are -D -U -I -std= -O0..-O3 -g -G -w -W... -march= -mcpu= -ffp-contract= -fmad= "
    "-use_fast_math -ffast-math, and options that choose a GPU, which are ignored";

// Options that matter to a GPU compiler only.
bool is_ignored(std::string_view option) {
  for (const std::string_view ignored : {"-arch=",
                                         "--gpu-architecture=",
                                         "--offload-arch=",
                                         "-lineinfo",
                                         "--generate-line-info",
                                         "-default-device",
                                         "--device-as-default-execution-space",
                                         "-maxrregcount=",
                                         "--maxrregcount=",
                                         "-rdc=",
                                         "--relocatable-device-code=",
                                         "-ewp",
                                         "--extensible-whole-program",
                                         "-restrict",
                                         "--restrict",
                                         "-ftz=",
                                         "--ftz=",
                                         "-prec-sqrt=",
                                         "--prec-sqrt=",
                                         "-prec-div=",
                                         "--prec-div=",
                                         "--extra-device-vectorization",
                                         "-extra-device-vectorization"}) {
    if (ignored.back() == '=' ? option.starts_with(ignored) : option == ignored) return true;
  }
  return false;
}

class Translator {
 public:
  explicit Translator(const std::vector<std::string>& options) : options_(options) {}

  TranslatedOptions run() {
    for (at_ = 0; at_ < options_.size(); ++at_) {
      if (!translate(options_[at_])) {
        throw Error(ErrorCode::kInvalidOption,
                    "the host compiler backend does not know the option '" + options_[at_] + "'; " +
                        kKnown);
      }
    }
    std::vector<std::string> arguments = {"-std=" + standard_, optimization_, architecture_,
                                          "-ffp-contract=" + contract_};
    arguments.insert(arguments.end(), arguments_.begin(), arguments_.end());
    return {std::move(arguments), std::move(macros_)};
  }

 private:
  // `-D X`, `-DX`, `--define-macro=X`, `--define-macro X`.
  std::optional<std::string> value_of(const std::string& option, std::string_view short_form,
                                      std::string_view long_form) {
    if (option == short_form || option == long_form) {
      if (at_ + 1 >= options_.size()) {
        throw Error(ErrorCode::kInvalidOption, "the option '" + option + "' lacks its value");
      }
      return options_[++at_];
    }
    if (option.starts_with(std::string(long_form) + "="))
      return option.substr(long_form.size() + 1);
    if (!short_form.empty() && option.starts_with(short_form)) {
      return option.substr(short_form.size());
    }
    return std::nullopt;
  }

  void set_standard(const std::string& standard) {
    static constexpr std::string_view kStandards[] = {"03", "11", "14", "17",
                                                      "20", "2a", "23", "2b"};
    for (const std::string_view known : kStandards) {
      if (standard == "c++" + std::string(known) || standard == "gnu++" + std::string(known)) {
        // The prelude needs C++17; every older program is one of those too.
        const bool older = known == "03" || known == "11" || known == "14";
        standard_ = older ? "c++17" : standard;
        return;
      }
    }
    throw Error(ErrorCode::kInvalidOption,
                "unknown language standard '" + standard + "'; use c++17, c++20 or c++23");
  }

  // Reserved names and NDEBUG choose what the headers of the system do, which ours include: they
  // are left to the compiler. Our own texts use no other name as it comes.
  static bool is_for_system_headers(std::string_view macro) {
    return macro.starts_with("_") || macro.substr(0, macro.find('=')) == "NDEBUG";
  }

  // As the compiler takes it: `X` is 1, and what stands behind the end of a line does not count.
  void define(const std::string& macro) {
    if (is_for_system_headers(macro)) {
      arguments_.push_back("-D" + macro);
      return;
    }
    std::string text = macro.substr(0, macro.find('\n'));
    const std::size_t equal = text.find('=');
    if (equal == std::string::npos) {
      text += " 1";
    } else {
      text[equal] = ' ';
    }
    // The comment keeps a backslash at the end from joining lines.
    add_line("-D" + macro, "#define " + text + " /**/");
  }
  void undefine(const std::string& macro) {
    if (is_for_system_headers(macro)) {
      arguments_.push_back("-U" + macro);
    } else {
      add_line("-U" + macro, "#undef " + macro.substr(0, macro.find('\n')));
    }
  }
  void add_line(const std::string& option, const std::string& directive) {
    macros_ += "#line 1 " + string_literal("option '" + option + "'") + "\n" + directive + "\n";
  }

  static bool flag_value(const std::string& option) {
    const std::string value = option.substr(option.find('=') + 1);
    if (value == "true" || value == "1") return true;
    if (value == "false" || value == "0") return false;
    throw Error(ErrorCode::kInvalidOption, "the option '" + option + "' takes true or false");
  }

  bool translate(const std::string& option) {
    if (option == "-arch" || option == "--gpu-architecture" || option == "--offload-arch") {
      ++at_;
      return true;
    }
    if (is_ignored(option)) return true;
    if (auto value = value_of(option, "-D", "--define-macro")) {
      define(*value);
    } else if (auto undefined = value_of(option, "-U", "--undefine-macro")) {
      undefine(*undefined);
    } else if (auto folder = value_of(option, "-I", "--include-path")) {
      // The compiler runs in a folder of its own.
      arguments_.push_back("-I" + std::filesystem::absolute(*folder).string());
    } else if (option.starts_with("-std=") || option.starts_with("--std=")) {
      set_standard(option.substr(option.find('=') + 1));
    } else if (option == "-O0" || option == "-O1" || option == "-O2" || option == "-O3") {
      optimization_ = option;
    } else if (option.starts_with("-march=") || option.starts_with("-mcpu=")) {
      architecture_ = option;
    } else if (option == "-ffp-contract=off" || option == "-ffp-contract=fast" ||
               option == "-ffp-contract=on") {
      contract_ = option.substr(option.find('=') + 1);
    } else if (option.starts_with("-fmad=") || option.starts_with("--fmad=")) {
      contract_ = flag_value(option) ? "fast" : "off";
    } else if (option == "-use_fast_math" || option == "--use_fast_math" ||
               option == "-ffast-math") {
      arguments_.emplace_back("-ffast-math");
      contract_ = "fast";
    } else if (option == "-g" || option == "-G" || option == "--device-debug") {
      arguments_.emplace_back("-g");
    } else if (option == "-w" || option == "--disable-warnings") {
      arguments_.emplace_back("-w");
    } else if (option.starts_with("-W") && !option.starts_with("-Wl,") &&
               !option.starts_with("-Wa,") && !option.starts_with("-Wp,")) {
      arguments_.push_back(option);
    } else {
      return false;
    }
    return true;
  }

  const std::vector<std::string>& options_;
  std::size_t at_ = 0;
  std::string standard_ = "c++17";
  std::string optimization_ = "-O3";
#if defined(__aarch64__)
  std::string architecture_ = "-mcpu=native";
#else
  std::string architecture_ = "-march=native";
#endif
  std::string contract_ = "off";
  std::vector<std::string> arguments_;
  std::string macros_;
};

}  // namespace

TranslatedOptions translate_options(const std::vector<std::string>& options) {
  return Translator(options).run();
}

}  // namespace lockstep::hostjit
