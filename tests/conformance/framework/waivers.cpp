// SPDX-License-Identifier: Apache-2.0
#include "framework/waivers.h"

#include <lockstep/error.h>

#include <array>
#include <chrono>
#include <ctime>
#include <fstream>
#include <string>
#include <toml++/toml.h>

#include "framework/runner.h"

namespace conformance {
namespace {

namespace ls = lockstep;

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw ls::Error(ls::ErrorCode::kInvalidFile, where + ": " + what);
}

/// The numbers that a version begins with; `read`, if not null, is set to how much of it they are.
std::vector<std::uint64_t> numbers(std::string_view version, std::size_t* read = nullptr) {
  std::vector<std::uint64_t> result;
  std::uint64_t current = 0;
  bool any = false;
  if (read != nullptr) *read = 0;
  for (const char c : version) {
    if (c >= '0' && c <= '9') {
      current = current * 10 + static_cast<std::uint64_t>(c - '0');
      any = true;
    } else if (c == '.' && any) {
      result.push_back(current);
      current = 0;
      any = false;
    } else {
      break;
    }
    if (read != nullptr) ++*read;
  }
  if (any) result.push_back(current);
  return result;
}

int compare(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::uint64_t x = i < a.size() ? a[i] : 0, y = i < b.size() ? b[i] : 0;
    if (x != y) return x < y ? -1 : 1;
  }
  return 0;
}

bool is_date(const std::string& text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i != 4 && i != 7 && (text[i] < '0' || text[i] > '9')) return false;
  }
  const auto number = [&](std::size_t at, std::size_t length) {
    return static_cast<unsigned>(std::stoul(text.substr(at, length)));
  };
  return std::chrono::year_month_day{std::chrono::year(static_cast<int>(number(0, 4))),
                                     std::chrono::month(number(5, 2)),
                                     std::chrono::day(number(8, 2))}
      .ok();
}

std::string today() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 16> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d", &parts);
  return text.data();
}

bool applies(const Waiver& waiver, const WaiverTarget& target) {
  return waiver.backend == target.backend && (!waiver.simulated_only || target.simulated) &&
         (waiver.versions.empty() || version_in_range(target.driver, waiver.versions));
}

Waiver read_waiver(const toml::table& table, const std::string& file) {
  Waiver waiver;
  waiver.where = file + ":" + std::to_string(table.source().begin.line);
  for (const auto& [key, value] : table) {
    const std::string name(key.str());
    const std::string where = file + ":" + std::to_string(value.source().begin.line);
    if (name == "simulated_only") {
      if (!value.is_boolean()) refuse(where, "simulated_only is true or false");
      waiver.simulated_only = value.as_boolean()->get();
      continue;
    }
    if (!value.is_string()) refuse(where, name + " is a text");
    const std::string text = value.as_string()->get();
    if (name == "case")
      waiver.pattern = text;
    else if (name == "variant")
      waiver.variant = text;
    else if (name == "kind")
      waiver.kind = text;
    else if (name == "reason")
      waiver.reason = text;
    else if (name == "link")
      waiver.link = text;
    else if (name == "backend")
      waiver.backend = text;
    else if (name == "versions")
      waiver.versions = text;
    else if (name == "expires")
      waiver.expires = text;
    else
      refuse(where, "unknown key `" + name + "`");
  }
  if (waiver.pattern.empty() || waiver.backend.empty() || waiver.reason.empty()) {
    refuse(waiver.where, "a waiver needs case, backend, kind and reason");
  }
  if (waiver.kind != "unsupported" && waiver.kind != "expected_failure") {
    refuse(waiver.where, "kind is \"unsupported\" or \"expected_failure\"");
  }
  if (!waiver.variant.empty() && waiver.variant != "eager" && waiver.variant != "graph" &&
      waiver.variant != "thread") {
    refuse(waiver.where, "variant is \"eager\", \"graph\" or \"thread\"");
  }
  if (!waiver.expires.empty() && !is_date(waiver.expires))
    refuse(waiver.where, "expires is a date like \"2027-06-30\"");
  if (!waiver.versions.empty()) {
    try {
      version_in_range("0", waiver.versions);
    } catch (const ls::Error& error) {
      refuse(waiver.where, error.what());
    }
  }
  return waiver;
}

}  // namespace

bool version_in_range(std::string_view version, std::string_view conditions) {
  const auto actual = numbers(version);
  bool all_hold = true;  // every condition is read, so that a malformed one is found at once
  std::size_t begin = 0;
  while (begin <= conditions.size()) {
    const std::size_t end = std::min(conditions.find(',', begin), conditions.size());
    std::string_view condition = conditions.substr(begin, end - begin);
    begin = end + 1;
    std::string_view sign;
    for (const std::string_view candidate : {">=", "<=", "==", "<", ">"}) {
      if (condition.substr(0, candidate.size()) == candidate) {
        sign = candidate;
        break;
      }
    }
    std::size_t read = 0;
    const auto bound = numbers(condition.substr(sign.size()), &read);
    if (sign.empty() || bound.empty() || sign.size() + read != condition.size() ||
        condition.back() == '.') {
      throw ls::Error(ls::ErrorCode::kInvalidFile,
                      "version condition `" + std::string(condition) + "` is not like >=5.2 or <6");
    }
    const int order = compare(actual, bound);
    const bool holds = sign == ">="   ? order >= 0
                       : sign == "<=" ? order <= 0
                       : sign == "==" ? order == 0
                       : sign == "<"  ? order < 0
                                      : order > 0;
    all_hold = all_hold && holds;
  }
  return all_hold;
}

Waivers Waivers::load(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) refuse(path.string(), "cannot be opened");
  std::string text;
  std::array<char, 4096> block;
  while (file.read(block.data(), block.size()), file.gcount() > 0) {
    text.append(block.data(), static_cast<std::size_t>(file.gcount()));
  }
  // A folder opens, and then cannot be read: that is not the same as no waivers.
  if (file.bad()) refuse(path.string(), "cannot be read");
  Waivers waivers;
  try {
    const toml::table document = toml::parse(text);
    for (const auto& [key, value] : document) {
      if (key.str() != "waiver" || !value.is_array_of_tables()) {
        refuse(path.string() + ":" + std::to_string(value.source().begin.line),
               "only [[waiver]] tables may stand here, not `" + std::string(key.str()) + "`");
      }
      for (const auto& element : *value.as_array()) {
        waivers.waivers_.push_back(read_waiver(*element.as_table(), path.string()));
      }
    }
  } catch (const toml::parse_error& error) {
    refuse(path.string() + ":" + std::to_string(error.source().begin.line),
           std::string(error.description()));
  }
  return waivers;
}

const Waiver* Waivers::find(const WaiverTarget& target, std::string_view name,
                            std::string_view variant) {
  for (Waiver& waiver : waivers_) {
    if (applies(waiver, target) && glob_match(waiver.pattern, name) &&
        (waiver.variant.empty() || waiver.variant == variant)) {
      waiver.used = true;
      return &waiver;
    }
  }
  return nullptr;
}

std::vector<std::string> Waivers::problems(const WaiverTarget& target) const {
  std::vector<std::string> result;
  const std::string now = today();
  for (const Waiver& waiver : waivers_) {
    if (!applies(waiver, target)) continue;
    if (!waiver.expires.empty() && waiver.expires < now) {
      result.push_back(waiver.where + ": waiver for " + waiver.pattern + " expired on " +
                       waiver.expires);
    }
    if (!waiver.used)
      result.push_back(waiver.where + ": waiver for " + waiver.pattern + " matches no case");
  }
  return result;
}

}  // namespace conformance
