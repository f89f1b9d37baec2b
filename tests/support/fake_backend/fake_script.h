// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <dlfcn.h>
#include <fstream>
#include <map>
#include <string>

/// \file
/// How a copy of the fake plugin behaves: by its own file name, and by the lines `key=value` of the
/// file beside it that is named like it with ".script" added.
namespace lockstep::testing {

class FakeScript {
 public:
  FakeScript() {
    Dl_info info = {};
    static const char here = 0;
    if (dladdr(&here, &info) == 0) return;
    const std::string path = info.dli_fname;
    std::ifstream script(path + ".script");
    for (std::string line; std::getline(script, line);) {
      const std::size_t equals = line.find('=');
      if (equals != std::string::npos) values_[line.substr(0, equals)] = line.substr(equals + 1);
    }
    const std::string file = path.substr(path.rfind('/') + 1);
    const std::string prefix = "liblockstep_backend_";
    const std::string of_file = file.rfind(prefix, 0) == 0
                                    ? file.substr(prefix.size(), file.rfind('.') - prefix.size())
                                    : "fake";
    name_ = text("name", of_file);
  }

  const std::string& name() const { return name_; }
  std::string text(const std::string& key, const std::string& otherwise = "") const {
    const auto found = values_.find(key);
    return found == values_.end() ? otherwise : found->second;
  }
  int number(const std::string& key, int otherwise) const {
    const auto found = values_.find(key);
    return found == values_.end() ? otherwise : std::atoi(found->second.c_str());
  }

 private:
  std::map<std::string, std::string> values_;
  std::string name_;
};

}  // namespace lockstep::testing
