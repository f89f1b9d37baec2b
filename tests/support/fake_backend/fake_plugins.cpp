// SPDX-License-Identifier: Apache-2.0
#include "support/fake_backend/fake_plugins.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <stdexcept>

namespace lockstep::testing {

FakePlugins::FakePlugins() { setenv("LOCKSTEP_BACKEND_PATH", folder_.path().c_str(), 1); }

FakePlugins::~FakePlugins() { unsetenv("LOCKSTEP_BACKEND_PATH"); }

std::string FakePlugins::path_of(const std::string& name) const {
  return folder_ / ("liblockstep_backend_" + name + ".so");
}

std::string FakePlugins::add(const std::string& name, const FakeScriptLines& script) {
  std::string lines;
  for (const auto& [key, value] : script) lines += key + "=" + value + "\n";
  const std::string path = add_file(name, LOCKSTEP_FAKE_BACKEND);
  write_file(path + ".script", lines);
  return path;
}

std::string FakePlugins::add_file(const std::string& name, const std::string& source) {
  std::filesystem::copy_file(source, path_of(name));
  return path_of(name);
}

FakeControl& FakePlugins::control(const std::string& name) {
  void* library = dlopen(path_of(name).c_str(), RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) throw std::runtime_error("fake plugin " + name + " is not loaded");
  const auto function = reinterpret_cast<FakeControlFunction>(dlsym(library, "fake_control"));
  return *function();
}

namespace {

Device open_fake(FakePlugins& plugins, const FakeScriptLines& script) {
  plugins.add("fake", script);
  return Device::open("fake");
}

}  // namespace

FakeDevice::FakeDevice(const FakeScriptLines& script)
    : device(open_fake(plugins, script)), control(plugins.control("fake")) {}

}  // namespace lockstep::testing
