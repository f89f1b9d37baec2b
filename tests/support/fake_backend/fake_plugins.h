// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <lockstep/device.h>

#include <map>
#include <string>

#include "support/fake_backend/fake_control.h"
#include "support/temp_folder.h"

/// \file
/// Copies of the fake plugin in a folder of one test.
namespace lockstep::testing {

using FakeScriptLines = std::map<std::string, std::string>;

/// A folder of fake plugins that LOCKSTEP_BACKEND_PATH names as long as this object lives. Each
/// copy is a library of its own with a state of its own.
class FakePlugins {
 public:
  FakePlugins();
  ~FakePlugins();
  FakePlugins(const FakePlugins&) = delete;
  FakePlugins& operator=(const FakePlugins&) = delete;

  /// Adds liblockstep_backend_<name>.so and returns its path.
  std::string add(const std::string& name, const FakeScriptLines& script = {});
  /// Adds any file under a plugin's name.
  std::string add_file(const std::string& name, const std::string& source);
  std::string path_of(const std::string& name) const;
  std::string folder() const { return folder_.path().string(); }

  /// The state of a plugin that has been loaded.
  FakeControl& control(const std::string& name);

 private:
  TempFolder folder_;
};

/// A fake backend named "fake" with one device that is open.
struct FakeDevice {
  explicit FakeDevice(const FakeScriptLines& script = {});

  FakePlugins plugins;
  Device device;
  FakeControl& control;
};

}  // namespace lockstep::testing
