// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <xxhash.h>

#include "cache.h"
#include "compiler.h"
#include "embedded.h"
#include "hostjit.h"
#include "options.h"
#include "source_rewriter.h"
#include "stack_usage.h"
#include "tail_generator.h"

namespace lockstep::hostjit {
namespace {

namespace fs = std::filesystem;

// Editors leave a mark at the beginning of a file that compilers take only there.
std::string_view without_byte_order_mark(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  return text;
}

class KeyBuilder {
 public:
  KeyBuilder() : state_(XXH3_createState()) { XXH3_128bits_reset(state_); }
  ~KeyBuilder() { XXH3_freeState(state_); }
  KeyBuilder(const KeyBuilder&) = delete;
  KeyBuilder& operator=(const KeyBuilder&) = delete;

  void add(std::string_view part) {
    const std::uint64_t size = part.size();
    XXH3_128bits_update(state_, &size, sizeof size);
    XXH3_128bits_update(state_, part.data(), part.size());
  }
  template <class Parts>
  void add_all(const Parts& parts) {
    add(std::to_string(parts.size()));
    for (const auto& part : parts) add(part);
  }
  std::string finish() const {
    const XXH128_hash_t hash = XXH3_128bits_digest(state_);
    char text[33];
    std::snprintf(text, sizeof text, "%016llx%016llx", static_cast<unsigned long long>(hash.high64),
                  static_cast<unsigned long long>(hash.low64));
    return text;
  }

 private:
  XXH3_state_t* state_;
};

struct Unit {
  std::string text;
  std::vector<Header> headers;
  std::vector<std::string> expressions;
  std::vector<Refusal> refusals;
};

void check_header_name(const std::string& name) {
  const fs::path path(name);
  const bool climbs = name.find("..") != std::string::npos;
  if (name.empty() || path.is_absolute() || climbs || name.find('\n') != std::string::npos) {
    throw Error(ErrorCode::kInvalidOption,
                "'" + name + "' cannot be the name of a header in memory: it has to be relative");
  }
}

// `ns::scale<float, 3>` → `scale`.
std::string_view unqualified(std::string_view expression) {
  std::string_view name = expression.substr(0, expression.find('<'));
  while (name.ends_with(' ')) name.remove_suffix(1);
  const std::size_t colon = name.rfind(':');
  return colon == std::string_view::npos ? name : name.substr(colon + 1);
}

// What the texts at hand say of functions: C++ itself forgets that one was declared __global__.
struct Functions {
  std::set<std::string, std::less<>> global_names, function_names;
  bool complete = true;  // false when kernels may be declared in ways that cannot be seen here

  void add(const RewrittenSource& source) {
    global_names.insert(source.global_names.begin(), source.global_names.end());
    function_names.insert(source.function_names.begin(), source.function_names.end());
    complete = complete && !source.hides_global;
  }
  void check(std::string_view expression) const {
    const std::string_view name = unqualified(expression);
    if (!complete || global_names.contains(name) || !function_names.contains(name)) return;
    throw Error(ErrorCode::kCompileFailed,
                "'" + std::string(expression) +
                    "' is no kernel: it is not declared __global__. Declare it so, or name one "
                    "that is");
  }
};

// Headers of the user's own folders and macros of the command line may declare kernels too.
bool has_unseen_texts(const CompileRequest& request) {
  return std::any_of(request.options.begin(), request.options.end(), [](const std::string& option) {
    return option.starts_with("-I") || option.starts_with("--include-path") ||
           option.find("__global__") != std::string::npos;
  });
}

Unit make_unit(const CompileRequest& request, const std::string& macros) {
  Unit unit;
  Functions functions;
  functions.complete = !has_unseen_texts(request);
  const auto rewrite = [&](std::string_view text, const std::string& name, std::size_t index) {
    RewrittenSource rewritten = rewrite_source(without_byte_order_mark(text), name, index);
    unit.refusals.insert(unit.refusals.end(), rewritten.refusals.begin(), rewritten.refusals.end());
    functions.add(rewritten);
    return rewritten;
  };
  const RewrittenSource main = rewrite(request.source, request.source_name, 0);
  for (std::size_t i = 0; i < request.headers.size(); ++i) {
    const Header& header = request.headers[i];
    check_header_name(header.name);
    unit.headers.push_back(
        {header.name, "#line 1 " + string_literal(header.name) + "\n" +
                          rewrite(header.text, header.name, (i + 1) * 1000).text});
  }
  std::set<std::string> seen;
  for (const std::string& expression : request.name_expressions) {
    std::string checked = checked_expression(expression);
    functions.check(checked);
    if (seen.insert(normalized_expression(checked)).second)
      unit.expressions.push_back(std::move(checked));
  }
  if (request.discover_kernels) {
    for (const std::string& kernel : main.kernels) {
      if (seen.insert(kernel).second) unit.expressions.push_back(kernel);
    }
  }
  unit.text = "#define LOCKSTEP_HOSTJIT_WARP_SIZE " + std::to_string(request.warp_size) +
              "\n#include \"lockstep_hostjit/prelude.h\"\n#include \"lockstep_hostjit/tail.h\"\n" +
              macros + "#line 1 " + string_literal(request.source_name) + "\n" + main.text +
              generate_tail(unit.expressions);
  return unit;
}

// What the source has no right to use says so itself: what the compiler says of the rest, which may
// need it, would only hide that.
std::string compile_unit(const CompilerInfo& compiler, const std::vector<std::string>& options,
                         const std::string& folder, const CompileRequest& request,
                         const Unit& unit) {
  try {
    return run_compiler(compiler, options, folder, request.timeout);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kCompileFailed) throw;
    std::string refused;
    for (const Refusal& refusal : unit.refusals) {
      if (error.log().find(refusal.marker) != std::string::npos) refused += refusal.message + "\n";
    }
    if (refused.empty()) throw;
    throw Error(ErrorCode::kCompileFailed, "the host backend cannot run this source:\n" + refused,
                refused);
  }
}

std::string make_key(const CompileRequest& request, const Unit& unit,
                     const std::vector<std::string>& options, const CompilerInfo& compiler) {
  KeyBuilder key;
  key.add("sealed with stack and all headers");  // images of other kinds are not found
  key.add(unit.text);
  key.add(request.source_name);
  for (const Header& header : unit.headers) {
    key.add(header.name);
    key.add(header.text);
  }
  for (const EmbeddedFile& file : embedded_files()) key.add(file.text);
  key.add_all(options);
  key.add(compiler.identity);
  key.add(cpu_identity());
  for (const char* variable : {"CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH"}) {
    const char* value = secure_getenv(variable);
    key.add(value != nullptr ? value : "");
  }
  return key.finish();
}

void write_file(const fs::path& path, std::string_view text) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  std::ofstream file(path, std::ios::binary);
  file.write(text.data(), static_cast<std::streamsize>(text.size()));
  file.close();
  if (!file) throw Error(ErrorCode::kNoStorage, path.string() + ": could not be written");
}

void write_unit(const fs::path& folder, const CompileRequest& request, const Unit& unit) {
  // Diagnostics quote lines from here; written first, so that no file of ours is replaced.
  const fs::path name(request.source_name);
  if (name.filename() == name && !request.source_name.empty() && name != ".." && name != ".")
    write_file(folder / name, request.source);
  for (const Header& header : unit.headers) write_file(folder / header.name, header.text);
  for (const EmbeddedFile& file : embedded_files()) write_file(folder / file.name, file.text);
  write_file(folder / "unit.cpp", unit.text);
}

// The headers that a make rule lists, without those of the work folder.
std::vector<std::string> read_dependencies(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  std::vector<std::string> found;
  std::string word;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && i + 1 < text.size() && (text[i + 1] == ' ' || text[i + 1] == '#')) {
      word += text[++i];
    } else if (c == '$' && i + 1 < text.size() && text[i + 1] == '$') {
      word += text[++i];
    } else if (c == ' ' || c == '\n' || c == '\\' || c == '\t') {
      if (word.starts_with("/")) found.push_back(word);
      word.clear();
    } else {
      word += c;
    }
  }
  return found;
}

}  // namespace

std::vector<std::byte> CompiledImage::read() const {
  auto bytes = read_file(path);
  if (!bytes) {
    throw Error(ErrorCode::kBadImage,
                path + " cannot be read any more; was the cache emptied? Compile again");
  }
  return *std::move(bytes);
}

CompiledImage compile(const CompileRequest& request) {
  const TranslatedOptions options = translate_options(request.options);
  const Unit unit = make_unit(request, options.macros);
  const CompilerInfo compiler = find_compiler();
  const Cache cache = Cache::open();
  const std::string key = make_key(request, unit, options.arguments, compiler);

  CompiledImage image;
  image.note = cache.note();
  image.from_cache = true;
  if (auto path = cache.find(key)) {
    image.path = *std::move(path);
    return image;
  }
  const Cache::Lock lock(cache, key);
  if (auto path = cache.find(key)) {  // another process made it while we waited
    image.path = *std::move(path);
    return image;
  }
  image.from_cache = false;
  const Cache::WorkFolder work(cache);
  write_unit(work.path(), request, unit);
  image.log = compile_unit(compiler, options.arguments, work.path(), request, unit);
  const std::string file = work.path() + "/image.so";
  seal_image(file, read_dependencies(work.path() + "/dependencies"),
             stack_bytes_of_unit(work.path()));
  image.path = cache.publish(file, key);
  return image;
}

}  // namespace lockstep::hostjit
