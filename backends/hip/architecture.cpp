// SPDX-License-Identifier: Apache-2.0
#include "architecture.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>

namespace lockstep::hip {
namespace {

struct Mach {
  std::uint32_t number;
  const char* name;
};
constexpr Mach kMachs[] = {
    {0x28, "gfx801"},          {0x29, "gfx802"},        {0x2a, "gfx803"},
    {0x2b, "gfx810"},          {0x2c, "gfx900"},        {0x2d, "gfx902"},
    {0x2e, "gfx904"},          {0x2f, "gfx906"},        {0x30, "gfx908"},
    {0x31, "gfx909"},          {0x32, "gfx90c"},        {0x33, "gfx1010"},
    {0x34, "gfx1011"},         {0x35, "gfx1012"},       {0x36, "gfx1030"},
    {0x37, "gfx1031"},         {0x38, "gfx1032"},       {0x39, "gfx1033"},
    {0x3c, "gfx805"},          {0x3d, "gfx1035"},       {0x3e, "gfx1034"},
    {0x3f, "gfx90a"},          {0x40, "gfx940"},        {0x41, "gfx1100"},
    {0x42, "gfx1013"},         {0x43, "gfx1150"},       {0x44, "gfx1103"},
    {0x45, "gfx1036"},         {0x46, "gfx1101"},       {0x47, "gfx1102"},
    {0x48, "gfx1200"},         {0x49, "gfx1250"},       {0x4a, "gfx1151"},
    {0x4b, "gfx941"},          {0x4c, "gfx942"},        {0x4e, "gfx1201"},
    {0x4f, "gfx950"},          {0x51, "gfx9-generic"},  {0x52, "gfx10-1-generic"},
    {0x53, "gfx10-3-generic"}, {0x54, "gfx11-generic"}, {0x55, "gfx1152"},
    {0x58, "gfx1153"},         {0x59, "gfx12-generic"}, {0x5f, "gfx9-4-generic"},
};

// What each release's compiler was seen to make code for, on Debian's builds; releases in between
// are taken for the older neighbour.
constexpr std::array<std::string_view, 9> kSince52 = {
    "gfx900", "gfx906", "gfx908", "gfx90a", "gfx1010", "gfx1011", "gfx1012", "gfx1030", "gfx1031"};
constexpr std::array<std::string_view, 6> kSince57 = {"gfx940",  "gfx941",  "gfx942",
                                                      "gfx1100", "gfx1101", "gfx1102"};
constexpr std::array<std::string_view, 3> kSince64 = {"gfx950", "gfx1200", "gfx1201"};

bool lists(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

Feature feature_of(std::uint32_t bits) {
  // 0: the architecture has no such feature; 1: any; 2: off; 3: on.
  return bits == 2 ? Feature::kOff : bits == 3 ? Feature::kOn : Feature::kAny;
}

const char* sign_of(Feature feature) { return feature == Feature::kOn ? "+" : "-"; }

bool fits(Feature code, Feature device) {
  return code == Feature::kAny || device == Feature::kAny || code == device;
}

}  // namespace

std::string Target::text() const {
  std::string all = base;
  if (sramecc != Feature::kAny) all += std::string(":sramecc") + sign_of(sramecc);
  if (xnack != Feature::kAny) all += std::string(":xnack") + sign_of(xnack);
  return all;
}

bool parse_target(std::string_view text, Target* target) {
  *target = {};
  const std::string_view base = text.substr(0, text.find(':'));
  if (!base.starts_with("gfx") || base.size() < 6 || base.size() > 24) return false;
  const bool plain = std::all_of(base.begin(), base.end(), [](char c) {
    return std::islower(static_cast<unsigned char>(c)) != 0 ||
           std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '-';
  });
  if (!plain) return false;
  target->base = base;
  text.remove_prefix(base.size());
  while (!text.empty()) {
    text.remove_prefix(1);  // the colon
    const std::string_view part = text.substr(0, text.find(':'));
    text.remove_prefix(part.size());
    if (part.size() < 2 || (part.back() != '+' && part.back() != '-')) return false;
    const std::string_view name = part.substr(0, part.size() - 1);
    Feature* const feature = name == "sramecc" ? &target->sramecc
                             : name == "xnack" ? &target->xnack
                                               : nullptr;
    if (feature == nullptr || *feature != Feature::kAny) return false;
    *feature = part.back() == '+' ? Feature::kOn : Feature::kOff;
  }
  return true;
}

bool runs_on(const Target& code, const Target& device) {
  if (!fits(code.sramecc, device.sramecc) || !fits(code.xnack, device.xnack)) return false;
  if (code.base == device.base) return true;
  // Generic code runs on a family; which one exactly is for the runtime to say.
  return code.base.ends_with("-generic");
}

std::string architecture_of_mach(std::uint32_t mach) {
  const auto* found = std::find_if(std::begin(kMachs), std::end(kMachs),
                                   [&](const Mach& known) { return known.number == mach; });
  return found == std::end(kMachs) ? "" : found->name;
}

Target target_of_flags(std::uint32_t flags) {
  Target target;
  target.base = architecture_of_mach(flags & 0xFFU);
  target.xnack = feature_of((flags >> 8U) & 3U);
  target.sramecc = feature_of((flags >> 10U) & 3U);
  return target;
}

bool compiler_knows(std::string_view base, const Version& version) {
  if (version.major >= 7) return true;
  return lists(kSince52, base) || (!version.before(5, 7) && lists(kSince57, base)) ||
         (!version.before(6, 4) && lists(kSince64, base));
}

std::string known_architectures(const Version& version) {
  if (version.major >= 7) return {};
  std::string all;
  const auto add = [&](std::span<const std::string_view> names) {
    for (const std::string_view name : names) {
      if (!all.empty()) all += ", ";
      all += name;
    }
  };
  add(kSince52);
  if (!version.before(5, 7)) add(kSince57);
  if (!version.before(6, 4)) add(kSince64);
  return all;
}

bool is_cuda_architecture(std::string_view architecture) { return architecture.starts_with("sm_"); }

}  // namespace lockstep::hip
