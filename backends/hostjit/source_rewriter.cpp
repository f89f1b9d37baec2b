// SPDX-License-Identifier: Apache-2.0
#include "source_rewriter.h"

#include <algorithm>
#include <map>

#include "directives.h"
#include "symbol_names.h"
#include "tokenizer.h"

namespace lockstep::hostjit {
namespace {

struct Edit {
  std::size_t offset;
  std::size_t length;
  std::string text;
};

// Specifiers with an argument list that may stand before a declared name.
bool takes_arguments(std::string_view word) {
  return word == "alignas" || word == "__align__" || word == "__attribute__" ||
         word == "__launch_bounds__" || word == "__maxnreg__" || word == "__cluster_dims__" ||
         word == "decltype" || word == "noexcept";
}
bool is_alignment(std::string_view word) {
  return word == "alignas" || word == "__align__" || word == "__attribute__";
}

class Rewriter {
 public:
  Rewriter(std::string_view source, std::string_view name, std::size_t first_index)
      : source_(source), name_(name), index_(first_index), tokens_(tokenize(source)) {}

  RewrittenSource run() {
    for (at_ = 0; at_ < tokens_.size(); ++at_) visit();
    RewrittenSource result;
    result.text = apply_edits();
    for (const auto& [kernel, count] : kernel_counts_) {
      if (count.all == 1 && count.certain == 1) result.kernels.push_back(kernel);
    }
    result.global_names = std::move(global_names_);
    result.function_names = std::move(function_names_);
    result.hides_global = hides_global_;
    result.refusals = std::move(refusals_);
    return result;
  }

 private:
  struct Scope {
    bool is_namespace;
    std::string name;  // empty for extern "C", unnamed namespaces and all other braces
  };

  const Token* token(std::size_t index) const {
    return index < tokens_.size() ? &tokens_[index] : nullptr;
  }
  bool is(std::size_t index, std::string_view text) const {
    return index < tokens_.size() && tokens_[index].is(text);
  }
  bool at_namespace_scope() const {
    return std::all_of(scopes_.begin(), scopes_.end(),
                       [](const Scope& scope) { return scope.is_namespace; });
  }

  // Returns the marker to put there.
  std::string refuse(const Token& where, const std::string& text) {
    const Position position = position_of(source_, where.offset);
    const std::string marker = "lockstep refusal (" + std::to_string(++index_) + ")";
    refusals_.push_back({marker, name_ + ":" + std::to_string(position.line) + ":" +
                                     std::to_string(position.column) + ": error: " + text});
    return marker;
  }
  static std::string error_pragma(const std::string& marker) {
    return " _Pragma(\"GCC error \\\"" + marker + "\\\"\") ";
  }

  void visit() {
    const Token& here = tokens_[at_];
    if (here.kind == TokenKind::kDirective) {
      visit_directive(here);
    } else if (here.is("{")) {
      scopes_.push_back(scope_opened_at(at_));
    } else if (here.is("}")) {
      if (!scopes_.empty()) scopes_.pop_back();
    } else if (here.is("<")) {
      visit_angle();
    } else if (here.is("__shared__")) {
      visit_shared();
    } else if (here.is("__device__")) {
      visit_device();
    } else if (here.is("__launch_bounds__")) {
      visit_launch_bounds();
    } else if (here.is("__global__")) {
      name_global();
      visit_global();
    } else if (here.kind == TokenKind::kIdentifier && is(at_ + 1, "(") && at_namespace_scope()) {
      function_names_.emplace(here.text);
    }
  }

  // Every name up to the body that may be the declared one: the return type may have arguments. A
  // constant in the body tells the image's symbols of kernels from those of other functions.
  void name_global() {
    for (std::size_t i = at_ + 1; i < tokens_.size(); ++i) {
      if (tokens_[i].is("{")) {
        edits_.push_back(
            {tokens_[i].end(), 0,
             " static const char " + std::string(kKernelMark) + " __attribute__((__used__)) = 0;"});
        return;
      }
      if (tokens_[i].is(";")) return;
      const bool may_name = is(i + 1, "(") || is(i + 1, "<");
      if (may_name && tokens_[i].kind == TokenKind::kIdentifier) {
        global_names_.emplace(tokens_[i].text);
      }
    }
  }

  void visit_directive(const Token& directive) {
    const Token* after = token(at_ + 1);
    const bool followed = after != nullptr && after->kind == TokenKind::kDirective;
    conditions_.pass(directive.text, followed ? after->text : std::string_view());
    if (directive.text.find("__global__") != std::string_view::npos) hides_global_ = true;
    std::string replacement;
    if (!includes_what_is_provided(directive.text)) {
      const std::string why = why_not_included(directive.text);
      if (why.empty()) return;
      replacement = "#error " + refuse(directive, std::string(directive.text) + ": " + why);
    }
    const auto lines = std::count(directive.text.begin(), directive.text.end(), '\n');
    replacement.append(static_cast<std::size_t>(lines), '\n');
    edits_.push_back({directive.offset, directive.length, replacement});
  }

  // `<<<` starts a launch, except in `operator<<<T>`.
  void visit_angle() {
    if (!is(at_ + 1, "<") || !is(at_ + 2, "<")) return;
    const std::size_t offset = tokens_[at_].offset;
    if (tokens_[at_ + 1].offset != offset + 1 || tokens_[at_ + 2].offset != offset + 2) return;
    if (at_ > 0 && tokens_[at_ - 1].is("operator")) return;
    const std::string marker = refuse(
        tokens_[at_],
        "<<<...>>>: a kernel of the host backend cannot launch kernels; launch from the host");
    edits_.push_back({offset, 3, error_pragma(marker)});
    at_ += 2;
  }

  std::size_t declaration_begin(std::size_t index) const {
    while (index > 0) {
      const Token& before = tokens_[index - 1];
      if (before.is(";") || before.is("{") || before.is("}") ||
          before.kind == TokenKind::kDirective)
        break;
      --index;
    }
    return index;
  }

  // Index of the token after the bracket that closes the one at `open`.
  std::size_t skip_group(std::size_t open, std::string_view opening,
                         std::string_view closing) const {
    std::size_t depth = 0;
    for (std::size_t i = open; i < tokens_.size(); ++i) {
      if (tokens_[i].is(opening)) ++depth;
      if (tokens_[i].is(closing) && --depth == 0) return i + 1;
    }
    return tokens_.size();
  }

  Scope scope_opened_at(std::size_t brace) const {
    const std::size_t begin = declaration_begin(brace);
    std::size_t i = begin;
    if (is(i, "inline")) ++i;
    if (is(i, "extern") && i + 2 == brace && tokens_[i + 1].kind == TokenKind::kLiteral)
      return {true, {}};
    if (!is(i, "namespace")) return {false, {}};
    std::string name;
    for (++i; i < brace; ++i) {
      if (tokens_[i].is("[")) {
        i = skip_group(i, "[", "]") - 1;
      } else if (!tokens_[i].is("inline")) {
        name += tokens_[i].text;
      }
    }
    return {true, name};
  }

  std::string text_of(std::size_t begin, std::size_t end) const {
    if (begin >= end) return {};
    const std::size_t offset = tokens_[begin].offset;
    return std::string(source_.substr(offset, tokens_[end - 1].end() - offset));
  }

  void visit_shared() {
    const std::size_t begin = declaration_begin(at_);
    std::size_t end = at_;
    while (end < tokens_.size() && !tokens_[end].is(";") && !tokens_[end].is("{")) ++end;
    bool is_extern = false;
    for (std::size_t i = begin; i < end; ++i) {
      if (tokens_[i].is("extern")) is_extern = true;
      if (i < at_ + 4 && tokens_[i].is("static"))
        edits_.push_back({tokens_[i].offset, tokens_[i].length, "      "});
    }
    if (is_extern && is(end, ";")) {
      rewrite_dynamic_shared(begin, end);
      at_ = end;
    } else if (is(end, ";")) {
      check_shared_type(end);
    }
  }

  // Function-local thread variables may have constructors in C++; shared memory may not.
  void check_shared_type(std::size_t end) {
    std::size_t angle = 0;
    for (std::size_t i = at_ + 1; i < end; ++i) {
      if (takes_arguments(tokens_[i].text) && is(i + 1, "(")) {
        i = skip_group(i + 1, "(", ")") - 1;
        continue;
      }
      if (tokens_[i].is("<")) ++angle;
      if (tokens_[i].is(">") && angle > 0) --angle;
      const bool ends_name = is(i + 1, "[") || is(i + 1, ";") || is(i + 1, ",") || is(i + 1, "=");
      if (angle > 0 || tokens_[i].kind != TokenKind::kIdentifier || !ends_name) continue;
      edits_.push_back({tokens_[end].end(), 0,
                        " static_assert(::lockstep_hostjit::ElementOf<decltype(" +
                            std::string(tokens_[i].text) +
                            ")>::kTrivial, \"a __shared__ variable cannot have a constructor or "
                            "destructor: its memory is not initialised\");"});
      return;
    }
  }

  // `extern __shared__ T a[], b[][4];` → pointers to the block's dynamic shared memory.
  void rewrite_dynamic_shared(std::size_t begin, std::size_t end) {
    std::string type;
    std::size_t i = begin;
    std::size_t angle = 0;
    for (; i < end; ++i) {
      const Token& here = tokens_[i];
      if (here.is("extern") || here.is("__shared__") || here.kind == TokenKind::kLiteral) continue;
      if (is_alignment(here.text)) {
        i = skip_group(i + 1, "(", ")") - 1;
        continue;
      }
      if (here.is("<")) ++angle;
      if (here.is(">") && angle > 0) --angle;
      if (angle == 0 && here.kind == TokenKind::kIdentifier && is(i + 1, "[")) break;
      if (!type.empty() && i > 0 && tokens_[i - 1].end() != here.offset) type += ' ';
      type += here.text;
    }
    type += ' ';
    if (i >= end || type == " ") {
      const std::string marker =
          refuse(tokens_[begin],
                 "extern __shared__ needs the form `extern __shared__ type name[];` on the host");
      edits_.push_back({tokens_[begin].offset, 0, error_pragma(marker)});
      return;
    }
    std::string replacement;
    const bool namespace_scope = at_namespace_scope();
    while (i < end) {
      const std::string name(tokens_[i].text);
      std::size_t brackets = skip_group(i + 1, "[", "]");
      const std::size_t inner = brackets;
      while (is(brackets, "[")) brackets = skip_group(brackets, "[", "]");
      const std::string rest = text_of(inner, brackets);
      const std::string cast = "reinterpret_cast<" + type + "(*)" + rest + ">";
      if (namespace_scope) {
        const std::string hook = "lockstep_shared_hook_" + std::to_string(++index_);
        // The symbol's name tells it from a variable of the kernel's in shared memory.
        replacement += "static __thread " + type + "(*" + name + ")" + rest + " __asm__(\"" +
                       kSharedPointerPrefix + std::to_string(index_) +
                       "\"); static ::lockstep_hostjit::SharedPointer " + hook +
                       "{[](void* lockstep_memory) { " + name + " = " + cast +
                       "(lockstep_memory); }};";
      } else {
        replacement += type + "(* const " + name + ")" + rest + " = " + cast +
                       "(::lockstep_hostjit::dynamic_shared());";
      }
      if (!is(brackets, ",")) break;
      i = brackets + 1;
    }
    const std::size_t offset = tokens_[begin].offset;
    const std::size_t length = tokens_[end].end() - offset;
    const std::string_view old = source_.substr(offset, length);
    std::replace(replacement.begin(), replacement.end(), '\n', ' ');
    replacement.append(static_cast<std::size_t>(std::count(old.begin(), old.end(), '\n')), '\n');
    edits_.push_back({offset, length, replacement});
  }

  // A variable, not a function: what comes first after the specifiers decides.
  void visit_device() {
    if (!at_namespace_scope()) return;
    for (std::size_t i = at_ + 1; i < tokens_.size(); ++i) {
      const Token& here = tokens_[i];
      if (takes_arguments(here.text) && is(i + 1, "(")) {
        i = skip_group(i + 1, "(", ")") - 1;
      } else if (here.is("(") || here.is("__constant__") || here.is("__managed__")) {
        return;
      } else if (here.is(";") || here.is("=") || here.is("[") || here.is("{")) {
        break;
      }
    }
    edits_.push_back({tokens_[at_].offset, tokens_[at_].length, "__lockstep_variable__"});
  }

  // The bound becomes a constant inside the body, where it may depend on template arguments; its
  // symbol carries the kernel's name.
  void visit_launch_bounds() {
    if (!is(at_ + 1, "(")) return;
    const std::size_t after = skip_group(at_ + 1, "(", ")");
    const std::string bounds = text_of(at_ + 2, after - 1);
    for (std::size_t i = after; i < tokens_.size(); ++i) {
      if (tokens_[i].is("(")) i = skip_group(i, "(", ")") - 1;
      if (tokens_[i].is(";")) return;
      if (tokens_[i].is("{")) {
        std::string text =
            " static const unsigned lockstep_launch_bounds __attribute__((used)) = "
            "::lockstep_hostjit::first_bound(" +
            bounds + ");";
        std::replace(text.begin(), text.end(), '\n', ' ');
        edits_.push_back({tokens_[i].end(), 0, text});
        return;
      }
    }
  }

  void visit_global() {
    if (!at_namespace_scope()) return;
    const std::size_t begin = declaration_begin(at_);
    for (std::size_t i = begin; i < at_; ++i) {
      if (tokens_[i].is("template")) return;
    }
    for (std::size_t i = at_ + 1; i + 1 < tokens_.size(); ++i) {
      if (takes_arguments(tokens_[i].text) && is(i + 1, "(")) {
        i = skip_group(i + 1, "(", ")") - 1;
      } else if (tokens_[i].is(";") || tokens_[i].is("{") || tokens_[i].is("<")) {
        return;
      } else if (tokens_[i + 1].is("(") && tokens_[i].kind == TokenKind::kIdentifier) {
        std::size_t after = skip_group(i + 1, "(", ")");
        if (is(after, "noexcept")) ++after;
        if (!is(after, "{")) return;
        std::string name;
        for (const Scope& scope : scopes_) {
          if (!scope.name.empty()) name += scope.name + "::";
        }
        Count& count = kernel_counts_[name + std::string(tokens_[i].text)];
        ++count.all;
        if (!conditions_.may_leave_out()) ++count.certain;
        return;
      }
    }
  }

  std::string apply_edits() {
    std::stable_sort(edits_.begin(), edits_.end(),
                     [](const Edit& a, const Edit& b) { return a.offset < b.offset; });
    std::string text;
    std::size_t copied = 0;
    for (const Edit& edit : edits_) {
      if (edit.offset < copied) continue;
      text += source_.substr(copied, edit.offset - copied);
      text += edit.text;
      copied = edit.offset + edit.length;
    }
    text += source_.substr(copied);
    return text;
  }

  std::string_view source_;
  std::string name_;
  std::size_t index_;
  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::vector<Scope> scopes_;
  std::vector<Edit> edits_;
  std::vector<Refusal> refusals_;
  struct Count {
    int all = 0, certain = 0;
  };
  std::map<std::string, Count> kernel_counts_;
  Conditions conditions_;
  std::set<std::string, std::less<>> global_names_, function_names_;
  bool hides_global_ = false;
};

}  // namespace

RewrittenSource rewrite_source(std::string_view source, std::string_view name,
                               std::size_t first_index) {
  return Rewriter(source, name, first_index).run();
}

}  // namespace lockstep::hostjit
