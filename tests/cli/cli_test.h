// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/process.h"
#include "support/temp_folder.h"

namespace lockstep::testing {

/// Runs the built `lockstep` with these arguments, without colour variables of the caller.
ProcessResult lockstep_cli(const std::vector<std::string>& arguments, ProcessOptions options = {});

/// A file of tests/data/traces.
std::string trace_path(const std::string& name);

/// Parses one JSON object and checks it against schemas/<schema>.schema.json: with python3's
/// jsonschema where it can be had, else by the members at the top level.
nlohmann::json checked_json(const std::string& text, const std::string& schema);

/// A copy of a trace that ends in the middle of its last entry.
std::string truncated_copy(const TempFolder& folder, const std::string& name);

}  // namespace lockstep::testing
