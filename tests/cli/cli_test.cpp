// SPDX-License-Identifier: Apache-2.0
#include "cli/cli_test.h"

#include <iostream>

namespace lockstep::testing {
namespace {

bool have_jsonschema() {
  static const bool have = run({"python3", "-c", "import jsonschema"}).exit_code == 0;
  if (!have) {
    static const bool said = [] {
      std::cerr << "note: python3 has no jsonschema; schemas are checked at their top level only\n";
      return true;
    }();
    (void)said;
  }
  return have;
}

void check_top_level(const nlohmann::json& value, const nlohmann::json& schema) {
  for (const auto& name : schema.at("required")) {
    EXPECT_TRUE(value.contains(name.get<std::string>())) << "missing " << name;
  }
  for (const auto& [name, member] : value.items()) {
    EXPECT_TRUE(schema.at("properties").contains(name)) << "not in the schema: " << name;
  }
}

}  // namespace

ProcessResult lockstep_cli(const std::vector<std::string>& arguments, ProcessOptions options) {
  std::vector<std::string> argv = {std::string(LOCKSTEP_TEST_BIN_DIR) + "/lockstep"};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  for (const char* name : {"NO_COLOR", "CLICOLOR_FORCE"}) {
    options.environment.emplace(name, std::nullopt);
  }
  return run(argv, options);
}

std::string trace_path(const std::string& name) {
  return std::string(LOCKSTEP_TEST_DATA_DIR) + "/traces/" + name + ".jsonl";
}

nlohmann::json checked_json(const std::string& text, const std::string& schema) {
  const std::string path = std::string(LOCKSTEP_SCHEMAS_DIR) + "/" + schema + ".schema.json";
  EXPECT_FALSE(text.empty());
  if (text.empty()) return {};
  EXPECT_EQ(text.find('\n'), text.size() - 1) << "one object on one line: " << text;
  const nlohmann::json value = nlohmann::json::parse(text);
  if (have_jsonschema()) {
    ProcessOptions options;
    options.input = text;
    const ProcessResult result =
        run({"python3", "-c",
             "import json, sys, jsonschema\n"
             "schema = json.load(open(sys.argv[1]))\n"
             "jsonschema.Draft202012Validator.check_schema(schema)\n"
             "jsonschema.Draft202012Validator(schema).validate(json.load(sys.stdin))\n",
             path},
            options);
    EXPECT_EQ(result.exit_code, 0) << result.err << text;
  } else {
    check_top_level(value, nlohmann::json::parse(read_file(path)));
  }
  return value;
}

std::string truncated_copy(const TempFolder& folder, const std::string& name) {
  const std::string bytes = read_file(trace_path(name));
  const std::size_t footer = bytes.rfind('\n', bytes.size() - 2);
  const std::string path = folder / (name + "-cut.jsonl");
  write_file(path, bytes.substr(0, footer - 20));
  return path;
}

}  // namespace lockstep::testing
